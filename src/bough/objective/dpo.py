"""DPO and its settings for turns of a tree."""

from typing import Annotated, Literal

from bough.lazy import torch
from bough.needs import PATHS, REFERENCE, TEACHER_TURNS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Anchor, Pairs, rstar_pairs
from bough.piece import Above, piece


@piece
class Dpo:
    """DPO (arXiv 2305.18290): pairs of paths or answers by advantage, against a reference; needs path view.

    With margin = (log p - log reference) of the winner minus that of the loser, each summed over its tokens, and z =
    beta * margin:

        loss = mean over pairs of - (1 - smoothing) * log sigmoid(z) - smoothing * log sigmoid(-z)

    Two pairs, each of one token a side, with log p and log reference of winner and loser:

        log p        -1 -2       -3 -1
        reference    -1.5 -1.5   -2 -2
        margin        1          -2           loss at beta .1: (.644397 + .798139) / 2 = .721268

    The paper trains on a fixed set of pairs; here they are newly sampled. Each pair of the optimizer step
    weighs the same, so tied tasks have no weight, and with `choice="all"` large mixed groups weigh most. Trinity-RFT
    0.6.0 adds up the log-probabilities of all pairs before the sigmoid, .744397 above: its loss has one fused pair.

    Metrics: `pairs`, their number; `pair_accuracy`, the share of them with z > 0; `pair_margin`, mean z.

    Attributes:
        beta: Strength of the pull to the reference, > 0.
        smoothing: Assumed probability that a preference is reversed, in [0, .5) (conservative DPO, E.
            Mitchell, 2023); or "visits", for each pair by the search's visit counts of its sides
            (`PreferencePairs.label_smoothing`).
        pairs: Selects the preference pairs.
        reference: The reference of the log ratios: the frozen reference "policy", or the "rollout" policy, by
            its log-probabilities as logged, without a second model (Agent Q, arXiv 2408.07199).
    """

    beta: Annotated[float, Above(0)] = 0.1
    smoothing: float | Literal["visits"] = 0.0
    pairs: Pairs = Pairs()
    reference: Anchor = "policy"

    def __post_init__(self) -> None:
        if self.smoothing != "visits" and not 0 <= self.smoothing < 0.5:
            raise ValueError(f"Dpo.smoothing: got {self.smoothing}; need a number from 0 to below 0.5, or 'visits'")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths and, unless the rollout policy is the reference, the reference's log-probabilities."""
        return frozenset({PATHS, REFERENCE} if self.reference == "policy" else {PATHS})

    @property
    def gives(self) -> frozenset[Need]:
        """A pair can have a teacher's turn on either side."""
        return frozenset({TEACHER_TURNS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "Dpo")
        margin = self.beta * pairs.margin(columns, self.reference)
        label_smoothing = pairs.label_smoothing() if self.smoothing == "visits" else self.smoothing
        wrong = -(1 - label_smoothing) * torch.nn.functional.logsigmoid(
            margin
        ) - label_smoothing * torch.nn.functional.logsigmoid(-margin)
        return pairs.loss(pairs.mean(wrong), margin)


def step_dpo(beta: float = 0.1) -> Dpo:
    """Step-DPO (arXiv 2406.18629): DPO on answers to one context, best over worst; needs trees that fork."""
    return Dpo(beta=beta, pairs=Pairs(unit="turn"))


def mcts_dpo(beta: float = 0.1, smoothing: float | Literal["visits"] = "visits") -> Dpo:
    """MCTS-DPO (arXiv 2405.00451): DPO on answers to one context, best over second best; needs trees that fork.

    Among equally good responses one is best, and the second is the best of the worse ones. Each pair is smoothed by
    the search's visit counts of its two sides; without a search there is no smoothing.
    """
    return Dpo(beta=beta, smoothing=smoothing, pairs=Pairs(unit="turn", choice="best_second"))


def agent_q_dpo(beta: float = 0.1, gap: float = 0.2) -> Dpo:
    """Agent Q (arXiv 2408.07199): DPO on answers to one context against logged rollouts; needs trees that fork.

    Experimental: the threshold of the gap could not be checked.
    """
    return Dpo(beta=beta, pairs=Pairs(unit="turn", choice="all", gap=gap), reference="rollout")


def tp_llama(beta: float = 0.1) -> Dpo:
    """TP-LLaMA (arXiv 2406.07115): DPO on steps of good paths over failed siblings; needs `Process(label="hard")`."""
    return Dpo(beta=beta, pairs=Pairs(unit="turn", choice="all"))


def rstar(beta: float = 0.1, gap: float = 0.5) -> Dpo:
    """Pairs of rStar-Math (arXiv 2501.04519): a context's two best responses over the two worst; needs trees that fork.

    Values of a pair differ by `gap` or more, in units of values in [-1, 1]. The paper trains a process preference model
    on such pairs (`process_preference`); here they train the policy. Its filter by edit distance works on texts:
    `bough export --min-edit-distance 20`. The released code (microsoft/rStar, `extra_rm_file.py`) also requires that
    the mean value along the best path to a correct end exceeds that along the worst path to a wrong one; this is not
    reproduced.
    """
    return Dpo(beta=beta, pairs=rstar_pairs(gap))
