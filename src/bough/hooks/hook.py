"""Advisers: what remembers across steps, and is asked about every batch before anyone is credited."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bough.lazy import Tensor, torch
from bough.tree import Floats, Rewarded, StageError, Task, derive, describe, is_column

Teacher: TypeAlias = Callable[[Task], Awaitable[tuple[str, ...]]]
"""How the environment's oracle solves a task; () when it does not."""

Item = TypeVar("Item")


@runtime_checkable
class BatchHook(Protocol):
    """Stands between reward and credit, and keeps what it learns from one step to the next.

    It may add estimates to the trees for a credit rule to read (a critic of its own, a tracker of tasks), or change the
    trees (a path of an earlier step in place of one of this). What it keeps goes into every checkpoint, and what it
    draws at random comes from the seed that it is given, so that a resumed run is the same.

    A step calls `advise` once for each round of rollouts, and `observe` once, at its end. With `Run.staleness` the
    tasks of the next step are drawn before that.
    """

    @property
    def ready(self) -> bool:
        """Whether credit can build on its advice. Until all are ready the policy is not updated."""
        ...

    def advise(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The batch with what it knows about it. It may learn from the batch first.

        Trees of an earlier step (`is_replayed`) say nothing about what the policy does now.
        """
        ...

    def observe(self, moved: Callable[[], float]) -> Mapping[str, float]:
        """Take note that the step is over; returns metrics.

        Args:
            moved: Computes how far the update has moved the policy: the mean over the batch's tokens of an estimate of
                the divergence, nats. 0 when there was none.
        """
        ...

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Everything that it must not forget."""
        ...

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `state` gave, bit for bit."""
        ...


@runtime_checkable
class TaskSampler(Protocol):
    """An adviser that also says which tasks to train on."""

    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        """[n] > 0: how likely each task, given by id, should be drawn; None when all are alike."""
        ...


@runtime_checkable
class TaskRewriter(Protocol):
    """An adviser that also says where the tasks of a batch begin, or puts others in their place."""

    async def begin(self, tasks: Sequence[Task], teacher: Teacher, seed: int) -> list[Task]:
        """As many tasks as were drawn. One that begins elsewhere has an id of its own (`Task.after`)."""
        ...


@runtime_checkable
class HookRecipe(Protocol):
    """The settings of an adviser: a frozen dataclass.

    A hook that adds estimates declares them in a constant `gives: ClassVar[frozenset[Need]]`, as
    `frozenset({estimate("NAME")})`. A rule that needs an estimate which no hook gives is refused.
    """

    def build(self, *, vocab_tokens: int, device: str, seed: int) -> BatchHook:
        """The adviser at the start of a run.

        Args:
            vocab_tokens: Tokens are below this.
            device: Where the policy is.
            seed: Of what is random in its making.
        """
        ...


class Hooks:
    """The advisers of a run, asked in order."""

    def __init__(self, recipes: Sequence[HookRecipe], *, vocab_tokens: int, device: str, seed: int) -> None:
        self._members = {
            f"adviser_{place}_{type(recipe).__name__}": recipe.build(
                vocab_tokens=vocab_tokens, device=device, seed=derive(seed, "adviser", place)
            )
            for place, recipe in enumerate(recipes)
        }

    @property
    def ready(self) -> bool:
        """Whether all are."""
        return all(each.ready for each in self._members.values())

    @property
    def memories(self) -> dict[str, "HookState"]:
        """What a checkpoint keeps of each."""
        return {name: HookState(each) for name, each in self._members.items()}

    def advise(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The batch after each had its say."""
        advised = list(rewarded)
        for name, each in self._members.items():
            advised = _all(name, "advise", each.advise(advised, derive(seed, name)), Rewarded)
        return advised

    def observe(self, moved: Callable[[], float]) -> dict[str, float]:
        """The step is over."""
        metrics: dict[str, float] = {}
        for each in self._members.values():
            metrics |= each.observe(moved)
        return metrics

    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        """[n]: the product of what the choosers say, summing to 1; None when there is none."""
        said = {name: each.weigh(tasks) for name, each in self._members.items() if isinstance(each, TaskSampler)}
        weights = [_weights(name, each, len(tasks)) for name, each in said.items() if each is not None]
        if not weights:
            return None
        weight = np.prod(weights, axis=0)
        return weight / weight.sum()

    async def begin(self, tasks: Sequence[Task], teacher: Teacher, seed: int) -> list[Task]:
        """The tasks that are played in the place of those that were drawn."""
        begun = list(tasks)
        for name, each in self._members.items():
            if isinstance(each, TaskRewriter):
                begun = _all(name, "begin", await each.begin(begun, teacher, derive(seed, name)), Task)
                if len(begun) != len(tasks):
                    raise StageError(
                        f"{name}.begin: got {len(begun)} tasks for {len(tasks)}; need as many as were drawn"
                    )
        return begun


def _all(name: str, call: str, returned: object, kind: type[Item]) -> list[Item]:
    """Check that an adviser returned a list of `kind`."""
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
    """What an adviser keeps, as the tensors of a checkpoint."""

    def __init__(self, adviser: BatchHook) -> None:
        self._adviser = adviser

    def state(self) -> dict[str, Tensor]:
        """A copy of everything."""
        return {name: torch.as_tensor(np.array(value)) for name, value in self._adviser.state().items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave."""
        self._adviser.load_state({name: value.numpy() for name, value in state.items()})
