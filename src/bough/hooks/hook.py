"""Batch hooks: they keep state across steps and change or annotate every batch before credit."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bough.ask import QueryClient
from bough.hooks.distinct import refuse_repeats
from bough.lazy import Tensor, torch
from bough.tree import AgentAction, Floats, Rewarded, StageError, Task, derive, describe, is_column

Teacher: TypeAlias = Callable[[Task], Awaitable[tuple[AgentAction, ...]]]
"""Returns the oracle's solution of a task; () without a solution."""

Texts: TypeAlias = Sequence[NDArray[np.int32]]
"""Tokens of n texts."""

Item = TypeVar("Item")


@runtime_checkable
class BatchHook(Protocol):
    """Runs between reward and credit, and keeps state across steps.

    It may add estimates to the trees for a credit rule (an own critic, a tracker of tasks), or change the trees
    (replace a path by one of an earlier step). Its state is part of every checkpoint, and its random numbers come from
    the given seed, so that a resumed run is the same.

    A step calls `transform` once for each round of rollouts, and `observe` once, at its end. With
    `Execution.staleness` the tasks of the next step are drawn before that.
    """

    @property
    def ready(self) -> bool:
        """Whether credit can use its estimates. Until all hooks are ready the policy is not updated."""
        ...

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Return the batch with estimates or changes. A hook may update its state from the batch first.

        Trees of an earlier step (`Tree.replayed`) are no samples of the present policy.
        """
        ...

    def observe(self, moved: Callable[[], float]) -> Mapping[str, float]:
        """End the step; returns metrics.

        Args:
            moved: Computes the divergence of the policy caused by the update: the mean over the batch's tokens of an
                estimate in nats. 0 without an update.
        """
        ...

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The complete state."""
        ...

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`, bit for bit."""
        ...


@runtime_checkable
class TaskSampler(Protocol):
    """A hook that also sets the sampling weights of tasks."""

    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        """[n] > 0: sampling weights of the tasks, given by id; None for equal weights."""
        ...


@runtime_checkable
class TaskRewriter(Protocol):
    """A hook that also changes the start of a batch's tasks, or replaces tasks."""

    async def rewrite(self, tasks: Sequence[Task], teacher: Teacher, seed: int) -> list[Task]:
        """The same number of tasks. A task with another start has an id of its own (`Task.after`)."""
        ...


class PolicyCopy(Protocol):
    """A copy of the policy that a hook trains."""

    def logprobs(self, rewarded: Sequence[Rewarded]) -> list[Floats]:
        """By tree, [T]: the log-probabilities of its sampled tokens on counted paths; nan elsewhere."""
        ...

    def step(self, rewarded: Sequence[Rewarded], weight: Sequence[Floats]) -> float:
        """One optimizer step that lowers the sum of weight * log-probability; returns the norm of its gradient.

        Args:
            rewarded: The trees.
            weight: By tree, [T]: the weight of each token.
        """
        ...

    def states(self, texts: Texts) -> Tensor:
        """[n, W]: the last hidden states of n texts, without gradients."""
        ...

    def step_states(self, texts: Texts, loss: Callable[[Tensor, Tensor], Tensor]) -> float:
        """One optimizer step that lowers a loss on last hidden states; returns the loss.

        Args:
            texts: n texts.
            loss: Called with the states [m, W] and the indices [m] of some texts; returns the sum of their losses.
        """
        ...

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Weights and moments."""
        ...

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`, bit for bit."""
        ...


def _no_states(texts: Texts, first: Sequence[int]) -> Floats:
    del texts, first
    raise StageError("PolicyAccess.mean_states: got no policy; need a run")


def _no_tokens(text: str) -> Sequence[int]:
    raise StageError(f"PolicyAccess.tokens: got the text {text!r} and no policy; need a run")


def _no_conversation(system: str, question: str, answer: str) -> tuple[Sequence[int], Sequence[int]] | None:
    del system, question
    raise StageError(f"PolicyAccess.conversation: got the answer {answer!r} and no policy; need a run")


def _no_copy(learning_rate: float, clip_norm: float) -> PolicyCopy:
    del learning_rate, clip_norm
    raise StageError("PolicyAccess.copy: got no policy; need a run")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAccess:
    """What a hook can compute with the policy.

    Attributes:
        reference_states: [n, W], the last hidden states of n texts under the frozen reference policy; not before the
            first batch, and for recipes that need `REFERENCE`.
        attention: By text, [t, t] of its t tokens: the present policy's attention, the mean over layers and heads.
        text: The text of tokens.
        stored_trees: The rewarded trees of a file, or of all files of a folder or of the directory of a run.
        copy: A copy of the present policy, for AdamW with a learning rate and a largest norm of the gradient.
        mean_states: [n, W], the means of the present policy's last hidden states over n texts, each from its token
            with this number on.
        tokens: The tokens of a text.
        conversation: The tokens of a prompt of a system prompt and a question, and those of an answer to it with its
            stop token; None when both together exceed the model's context.
        steps: Reinforcement steps of the run.
    """

    reference_states: Callable[[Texts], Tensor]
    attention: Callable[[Texts], list[NDArray[np.float32]]]
    text: Callable[[Sequence[int]], str]
    stored_trees: Callable[[Path], list[Rewarded]]
    copy: Callable[[float, float], PolicyCopy] = _no_copy
    mean_states: Callable[[Texts, Sequence[int]], Floats] = _no_states
    tokens: Callable[[str], Sequence[int]] = _no_tokens
    conversation: Callable[[str, str, str], tuple[Sequence[int], Sequence[int]] | None] = _no_conversation
    steps: int = 0


@runtime_checkable
class PolicyReader(Protocol):
    """A hook that also computes with the policy."""

    def attach(self, access: PolicyAccess) -> None:
        """Called once, before the first batch."""
        ...


@runtime_checkable
class ModelAsker(Protocol):
    """A hook that also asks the models of roles, in `rewrite`."""

    def attach_models(self, ask: QueryClient) -> None:
        """Called once, before the first batch. Equal queries are sent once, also after a resume."""
        ...


@runtime_checkable
class HookRecipe(Protocol):
    """The settings of a hook: a frozen dataclass.

    A hook that adds estimates declares them in a constant `gives: ClassVar[frozenset[Need]]`, as
    `frozenset({estimate("NAME")})`. A rule that needs an estimate which no hook gives is refused.
    """

    def build(self, *, vocab_tokens: int, device: str, seed: int) -> BatchHook:
        """The hook's state at the start of a run.

        Args:
            vocab_tokens: Size of the vocabulary.
            device: The policy's device.
            seed: Seed of the initial state.
        """
        ...


class Hooks:
    """The hooks of a run, called in order."""

    def __init__(self, recipes: Sequence[HookRecipe], *, vocab_tokens: int, device: str, seed: int) -> None:
        """Build the hooks.

        Raises:
            ValueError: when two of them write the same channel or estimate.
        """
        refuse_repeats(recipes)
        self._members = {
            f"adviser_{place}_{type(recipe).__name__}": recipe.build(
                vocab_tokens=vocab_tokens, device=device, seed=derive(seed, "adviser", place)
            )
            for place, recipe in enumerate(recipes)
        }

    @property
    def ready(self) -> bool:
        """Whether all hooks are ready."""
        return all(each.ready for each in self._members.values())

    @property
    def members(self) -> tuple[BatchHook, ...]:
        """The hooks, in order."""
        return tuple(self._members.values())

    @property
    def memories(self) -> dict[str, "HookState"]:
        """The state of each hook for a checkpoint."""
        return {name: HookState(each) for name, each in self._members.items()}

    def attach(self, access: PolicyAccess) -> None:
        """Give the policy to the hooks that compute with it."""
        for each in self._members.values():
            if isinstance(each, PolicyReader):
                each.attach(access)

    def attach_models(self, ask: QueryClient) -> None:
        """Give the models to every `ModelAsker`."""
        for each in self._members.values():
            if isinstance(each, ModelAsker):
                each.attach_models(ask)

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The batch after `transform` of every hook."""
        advised = list(rewarded)
        for name, each in self._members.items():
            advised = _all(name, "transform", each.transform(advised, derive(seed, name)), Rewarded)
        return advised

    def observe(self, moved: Callable[[], float]) -> dict[str, float]:
        """End the step in every hook; returns their metrics."""
        metrics: dict[str, float] = {}
        for each in self._members.values():
            metrics |= each.observe(moved)
        return metrics

    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        """[n]: the normalised product of the weights of all task samplers; None without samplers."""
        by_hook = {name: each.weigh(tasks) for name, each in self._members.items() if isinstance(each, TaskSampler)}
        weights = [_weights(name, each, len(tasks)) for name, each in by_hook.items() if each is not None]
        if not weights:
            return None
        weight = np.prod(weights, axis=0)
        return weight / weight.sum()

    @property
    def rewrites(self) -> bool:
        """Whether a hook rewrites tasks."""
        return any(isinstance(each, TaskRewriter) for each in self._members.values())

    async def rewrite(self, tasks: Sequence[Task], teacher: Teacher, seed: int) -> list[Task]:
        """The tasks after `rewrite` of every task rewriter."""
        begun = list(tasks)
        for name, each in self._members.items():
            if isinstance(each, TaskRewriter):
                begun = _all(name, "rewrite", await each.rewrite(begun, teacher, derive(seed, name)), Task)
                if len(begun) != len(tasks):
                    raise StageError(
                        f"{name}.rewrite: got {len(begun)} tasks for {len(tasks)}; need as many as were drawn"
                    )
        return begun


def _all(name: str, call: str, returned: object, kind: type[Item]) -> list[Item]:
    """Check that a hook returned a list of `kind`."""
    items = list(cast("Sequence[object]", returned)) if isinstance(returned, Sequence) else [returned]
    found = [item for item in items if isinstance(item, kind)]
    if len(found) < len(items):
        wrong = next(item for item in items if not isinstance(item, kind))
        raise StageError(f"{name}.{call}: got {describe(wrong)}; need a list of {kind.__name__}")
    return found


def _weights(name: str, returned: object, count: int) -> Floats:
    if not is_column(returned, count) or not np.all(np.isfinite(returned) & (returned > 0)):
        raise StageError(f"{name}.weigh: got {describe(returned)}; need {count} finite numbers above 0, one a task")
    return returned


class HookState:
    """The state of a hook, as the tensors of a checkpoint."""

    def __init__(self, hook: BatchHook) -> None:
        self._hook = hook

    def state(self) -> dict[str, Tensor]:
        """A copy of the state."""
        return {name: torch.as_tensor(np.array(value)) for name, value in self._hook.state().items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`."""
        self._hook.load_state({name: value.numpy() for name, value in state.items()})
