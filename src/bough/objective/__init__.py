"""Objectives: losses on columns of trained tokens, in pure torch. No tree, no text, no model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int

from bough.lazy import Tensor
from bough.tree.needs import Need


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walk:
    """Whose tokens these are, in the path view. Ids ascend: the tokens of a path, and of a turn, lie together.

    Attributes:
        path: [M] int64, 0 to P - 1.
        turn: [M] int64, number of the turn among all turns of all paths.
        task: [P] int64: paths of one task may be compared.
        fork: [turns] int64: turns with the same number were written in answer to the very same context.
        path_of_turn: [turns] int64, the path that each turn is of.
        answer: [turns] int64; turns with the same number are the same words in answer to the very same context: one
            turn that paths share, or one that was written twice. None when no two turns are.
        visits: [turns], how often a search came to the place that each turn led to; 0 where none counted. None when
            there was no search.
        end: [P] int64: 1 for a path that ended with success, -1 without, 0 where the explorer stopped. None when
            unknown.
    """

    path: Int[Tensor, " M"]
    turn: Int[Tensor, " M"]
    task: Int[Tensor, " P"]
    fork: Int[Tensor, " K"]
    path_of_turn: Int[Tensor, " K"]
    answer: Int[Tensor, " K"] | None = None
    visits: Float[Tensor, " K"] | None = None
    end: Int[Tensor, " P"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Head:
    """What one head of a critic says of the state before each token.

    Attributes:
        value: [M]; carries a gradient.
        old: [M], what it said before the update.
        goal: [M], what it should have said; nan where nothing is known.
        scale: One over the part of the optimizer batch, by share, that has a goal: `share * scale` are the weights of a
            mean over the tokens with a goal.
    """

    value: Float[Tensor, " M"]
    old: Float[Tensor, " M"]
    goal: Float[Tensor, " M"]
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """M trained tokens: of one micro-batch, each once; or of whole paths, each once for every path through it.

    The second is the path view. An objective that looks at more than one token at a time asks for it (need `PATHS`),
    and then sees all paths of an optimizer step at once, whatever the micro-batches.

    Attributes:
        logprob: [M], of the policy being trained, at the sampling temperature; carries a gradient.
        behaviour: [M], log-probability under the policy that sampled the token.
        gain: [M] >= 0, as in `Credited`.
        lose: [M] <= 0, as in `Credited`.
        share: [M], the weight of each token in the mean over the whole optimizer batch, not this micro-batch; so
            losses and metrics of micro-batches add up.
        entropy: [M] nats, of the distribution of `logprob`; carries a gradient. Need `ENTROPY`.
        reference: [M], log-probability under the frozen reference policy. Need `REFERENCE`.
        old: [M], log-probability that the learner itself computes with the weights before the update; differs from
            `behaviour` where the engine computes differently, or sampled with older weights. Need `OLD_LOGPROBS`.
        usual_entropy: [M] nats, mean entropy of earlier steps at the same turn; nan in the first. Need
            `MEAN_TURN_ENTROPY`.
        values: By the name of a head. Need `CRITIC`.
        expert: [M] bool, tokens that a demonstration wrote; they have no behaviour, gain 1, and shares of their own
            that sum to 1. None when there are none. Need `DEMONSTRATIONS`.
        walk: The path view's ids. Need `PATHS`.
        progress: Share of the training that is done, in [0, 1].
    """

    logprob: Float[Tensor, " M"]
    behaviour: Float[Tensor, " M"]
    gain: Float[Tensor, " M"]
    lose: Float[Tensor, " M"]
    share: Float[Tensor, " M"]
    entropy: Float[Tensor, " M"] | None = None
    reference: Float[Tensor, " M"] | None = None
    old: Float[Tensor, " M"] | None = None
    usual_entropy: Float[Tensor, " M"] | None = None
    values: Mapping[str, Head] = field(default_factory=dict[str, Head])
    expert: Bool[Tensor, " M"] | None = None
    walk: Walk | None = None
    progress: float = 0.0

    @property
    def advantage(self) -> Float[Tensor, " M"]:
        """[M]: gain and lose in one; the advantage itself in the path view."""
        return self.gain + self.lose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loss:
    """A loss and what there is to report about it.

    Attributes:
        value: Scalar to minimise.
        metrics: Scalars without gradient, by name, each a share-weighted sum, so that micro-batches add up.
    """

    value: Float[Tensor, ""]
    metrics: Mapping[str, Float[Tensor, ""]]


@runtime_checkable
class Objective(Protocol):
    """A loss: a frozen dataclass whose fields are its hyperparameters.

    Where the paths through a token disagree about it, `gain` and `lose` are its means over them, and a loss must treat
    the two apart: f(gain) + g(lose), which then is the mean over paths of the ordinary loss. One that can't, because
    it is not linear in the advantage, needs `PATHS`.

    One that pulls at sampled tokens also where nothing gains or loses (a divergence, an entropy bonus) says so by a
    field or constant `regularises`.
    """

    @property
    def needs(self) -> frozenset[Need]:
        """Which optional columns it reads, as values of `bough.tree.needs`; those of objectives in its fields aside."""
        ...

    def __call__(self, columns: Columns) -> Loss:
        """The loss; a sum over tokens weighted by `share`, so that the losses of micro-batches add up."""
        ...


# Last, because every piece takes `Columns` and returns a `Loss`.
from bough.objective.aepo import Aepo  # noqa: E402
from bough.objective.chord import Chord  # noqa: E402
from bough.objective.cispo import Cispo  # noqa: E402
from bough.objective.corrections import Mis, Reject, Tis  # noqa: E402
from bough.objective.dpo import Dpo, agent_q_dpo, mcts_dpo, rstar, step_dpo, tp_llama  # noqa: E402
from bough.objective.entropy import Entropy  # noqa: E402
from bough.objective.epo import Epo  # noqa: E402
from bough.objective.gspo import gspo  # noqa: E402
from bough.objective.imitation import Imitation  # noqa: E402
from bough.objective.inpo import Inpo  # noqa: E402
from bough.objective.kl import Kl  # noqa: E402
from bough.objective.opmd import Opmd  # noqa: E402
from bough.objective.orpo import Orpo  # noqa: E402
from bough.objective.pairs import Pairs  # noqa: E402
from bough.objective.ppo import PpoClip, loop_clip  # noqa: E402
from bough.objective.rec import Rec  # noqa: E402
from bough.objective.reinforce import Reinforce  # noqa: E402
from bough.objective.sapo import Sapo  # noqa: E402
from bough.objective.selfplay import SelfPlay  # noqa: E402
from bough.objective.sft_mix import SftMix  # noqa: E402
from bough.objective.share import Share  # noqa: E402
from bough.objective.simpo import SimPo  # noqa: E402
from bough.objective.sppo import Sppo  # noqa: E402
from bough.objective.step_apo import StepApo  # noqa: E402
from bough.objective.sum import Sum, add  # noqa: E402
from bough.objective.take import take  # noqa: E402
from bough.objective.topr import Topr  # noqa: E402
from bough.objective.tpo import Tpo  # noqa: E402
from bough.objective.value import ValueClip  # noqa: E402
from bough.objective.wdpo import WDpo  # noqa: E402

__all__ = [
    "Aepo",
    "Chord",
    "Cispo",
    "Columns",
    "Dpo",
    "Entropy",
    "Epo",
    "Imitation",
    "Inpo",
    "Kl",
    "Loss",
    "Mis",
    "Need",
    "Objective",
    "Opmd",
    "Orpo",
    "Pairs",
    "PpoClip",
    "Rec",
    "Reinforce",
    "Reject",
    "Sapo",
    "SelfPlay",
    "SftMix",
    "Share",
    "SimPo",
    "Sppo",
    "StepApo",
    "Sum",
    "add",
    "Tis",
    "Topr",
    "Tpo",
    "ValueClip",
    "WDpo",
    "agent_q_dpo",
    "gspo",
    "loop_clip",
    "mcts_dpo",
    "rstar",
    "step_dpo",
    "take",
    "tp_llama",
]
