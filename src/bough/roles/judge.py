"""A judge of paths that is trained beside the policy, on its own verifications."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias, cast

import numpy as np

from bough.appraise import Verifications
from bough.appraise.path_fields import path_steps
from bough.appraise.verification import Verification
from bough.config.config import ConfigError
from bough.hooks import HookRecipe
from bough.hooks.hook import BatchHook, HookSetup, PolicyCopy
from bough.hooks.hook_state import LazyPart
from bough.lazy import Tensor
from bough.needs import Need, appraised
from bough.piece import Above, AtLeast, piece
from bough.rollout import NodeDraft, TreeBuilder
from bough.store import Checkpoint
from bough.tree import Kind, Outcome, Rewarded, Source, Task, Ternary, Tree, Verdict

Agreement: TypeAlias = Literal["success", "majority"]

WEIGHTS = "model/weights/"
"""The beginning of the names of the weights in the state."""


@piece
class TrainedJudge:
    """A generative judge with weights of its own: it imitates the verifications that turn out right.

    The judge is a copy of the policy after its warm-up, with an optimizer of its own; a policy with adapters has a
    second set of adapters. Each batch it is trained on verifications of `Verifications`, the question as context and
    the answer as target:

        loss = - mean over the tokens of the chosen answers of log judge

    By `agreement`, an answer is chosen if

        success     its verdict on the result is the environment's: StepORLM (arXiv 2509.22558)
        majority    all its verdicts, on the result and each step, are the majority's: SPARK (2512.03244)

    The model that answers is that of the role of `verifications`. With `JudgeWeights` it is this judge, which so
    evolves with the policy: it verifies the paths of a step with the weights after the step before. With another
    model this judge learns from that one; `FrozenCheckpoint(run=..., judge=true)` is the judge for a later run.

    Metrics: `judge/answers` that were parsed, `judge/chosen` of them; `judge/loss` before the first update of the step.

    Attributes:
        verifications: The questions; those of the run.
        agreement: The answers that it imitates.
        learning_rate: AdamW's.
        clip_norm: Largest norm of the gradient.
        updates: Optimizer steps on each batch.
        alone: Whether the policy is not updated, and only the judge is trained.
    """

    verifications: Verifications = field(default_factory=Verifications)
    agreement: Agreement = "success"
    learning_rate: Annotated[float, Above(0, "a finite number above 0")] = 1e-4
    clip_norm: Annotated[float, Above(0, "a finite number above 0")] = 1.0
    updates: Annotated[int, AtLeast(1)] = 1
    alone: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """The columns of the verifications."""
        return frozenset({appraised(self.verifications.column), appraised(self.verifications.steps)})

    def build(self, setup: HookSetup) -> "TrainedJudgeState":
        """A state without a model: the policy is copied at the first batch."""
        return TrainedJudgeState(self, setup)


@dataclass(slots=True, kw_only=True)
class TrainedJudgeData:
    """The state of the hook.

    Attributes:
        model: The trained copy of the policy, which is copied at the first batch.
        updates: Optimizer steps so far.
    """

    model: LazyPart[PolicyCopy]
    updates: int = 0


class TrainedJudgeState(BatchHook[TrainedJudge]):
    """The trained copy of the policy."""

    def __init__(self, settings: TrainedJudge, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: TrainedJudgeData = TrainedJudgeData(
            model=LazyPart(lambda: setup.policy.copy(settings.learning_rate, settings.clip_norm))
        )

    @property
    def ready(self) -> bool:
        """Whether the policy is updated too."""
        return not self.settings.alone

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Train the judge on the chosen verifications of the batch, whose trees do not change."""
        model = self.data.model()
        chosen = [each for each in (self._tree(*found) for found in self._chosen(rewarded)) if each is not None]
        self._count("judge/chosen", len(chosen))
        total = sum(int(each.tree.sampled.sum()) for each in chosen)
        weight = [np.where(each.tree.sampled, -1.0 / total, 0.0) for each in chosen]
        for number in range(self.settings.updates if chosen else 0):
            if number == 0:
                logprob = np.concatenate(model.logprobs(chosen))
                self.metrics["judge/loss"] = float(-np.nansum(logprob) / total)
            model.step(chosen, weight)
            self.data.updates += 1
        return list(rewarded)

    def _count(self, name: str, number: int) -> None:
        self.metrics[name] = self.metrics.get(name, 0.0) + number

    def _chosen(self, rewarded: Sequence[Rewarded]) -> Iterator[tuple[str, str]]:
        """The questions and answers that the judge imitates."""
        asks = self.settings.verifications
        for tree in (each.tree for each in rewarded if not each.tree.replayed):
            for leaf, steps in path_steps(tree).items():
                texts = cast("Mapping[str, list[str]]", tree.info[leaf]).get(f"appraisal {asks.column}", [])
                parsed = [(text, asks.parsed(text, len(steps))) for text in texts]
                known = [(text, found) for text, found in parsed if found is not None]
                self._count("judge/answers", len(known))
                right = [text for text, found in known if self._agrees(tree, leaf, steps, found)]
                if right:
                    question = asks.question(tree, leaf, steps).prompt
                    yield from ((question, text) for text in right)

    def _agrees(self, tree: Tree, leaf: int, steps: Sequence[int], found: Verification) -> bool:
        """Whether the judge imitates a verification of the path to a leaf."""
        each, final = found
        if self.settings.agreement == "success":
            return bool(tree.success[leaf] == Ternary.YES) == final
        asks = self.settings.verifications
        results, on_steps = tree.appraisals[asks.column], tree.appraisals[asks.steps]
        known = results.verdict[leaf] == Verdict.OK and bool((on_steps.verdict[steps] == Verdict.OK).all())
        return known and (*on_steps.value[steps], results.value[leaf]) == (*map(float, each), float(final))

    def _tree(self, question: str, answer: str) -> Rewarded | None:
        """A conversation as a tree, with the answer as sampled tokens; None beyond the model's context."""
        found = self.setup.policy.conversation(self.settings.verifications.system, question, answer)
        if found is None:
            return None
        prompt, written = found
        builder = TreeBuilder(Task(id="judge"))
        root = builder.add(NodeDraft(parent=-1, kind=Kind.PROMPT, tokens=prompt))
        action = NodeDraft(parent=root, kind=Kind.ACTION, tokens=written, logprobs=[0.0] * len(written))
        action.source, action.outcome = Source.SAMPLED, Outcome.TERMINATED
        builder.add(action)
        return Rewarded(tree=builder.done(), channels={})


def judge_weights(hooks: Sequence[HookRecipe], checkpoint: Checkpoint) -> Mapping[str, Tensor]:
    """The weights of the judge in a checkpoint of a run with these hooks.

    Raises:
        ConfigError: when no hook trains a judge, or none is trained yet.
    """
    places = [place for place, each in enumerate(hooks) if isinstance(each, TrainedJudge)]
    weights = weights_in(checkpoint.tensors(f"adviser_{places[0]}_TrainedJudge")) if places else {}
    if not weights:
        raise ConfigError("FrozenCheckpoint.judge: got a run without a trained judge; need the hook TrainedJudge")
    return weights


def weights_in(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the judge in the state of the hook, by name; empty before its first batch."""
    return {name.removeprefix(WEIGHTS): each for name, each in state.items() if name.startswith(WEIGHTS)}
