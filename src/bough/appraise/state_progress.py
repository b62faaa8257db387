"""Progress from the environment's states: by the oracle's plans, or by a function of the user."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.hop_progress import states_of
from bough.needs import ORACLE, Need, appraised
from bough.tree import AgentAction, Entry, StageError, Tree, Verdict


@runtime_checkable
class AskStates(Protocol):
    """Replays the actions of trees, and asks the environment's oracle."""

    async def states(self, tree: Tree) -> Mapping[int, Any]:
        """The environment's `State` by node, of the nodes that a turn begins from.

        A state that a replay does not reach again is missing, and so are those after it.
        """
        ...

    async def plan(self, state: Any) -> Sequence[AgentAction] | None:
        """The oracle's actions from a `State` to success; None where there are none."""
        ...


@runtime_checkable
class Potential(Protocol):
    """How near a state is to success: a function of the user's."""

    def __call__(self, state: Any) -> float | None:
        """The potential of the environment's `State`, higher is nearer; None where it is unknown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProgress:
    """Progress of the state before each action, by the oracle's plans, or by a function of states.

    With d actions from the state to success in the oracle's plan, and d0 from the first state of the task, the value at
    an action is

        1 - d / d0, at least 0        0 where the oracle has no plan

        d0 4, d 4 3 2 3 1:    0  .25  .5  .25  .75

    `PotentialShaping` reads it. With `potential` the value is that of the function, which gets the environment's
    `State`: a state without a value is unknown, and a path with one has no shaping. The actions of a tree are replayed;
    where the environment answers with another state than when the tree grew, the state is unknown.

    Cost: an environment step for each turn, and a plan for each state.

    Attributes:
        column: Name of the column.
        potential: A function of states, such as `file.py:nearness()`; None for the oracle's plans.
    """

    column: str = "progress"
    potential: Potential | None = None

    @property
    def needs(self) -> frozenset[Need]:
        """An oracle, without a function of states."""
        remedy = "potential=..., a function of states, or another world"
        return frozenset({ORACLE.or_else(remedy)} if self.potential is None else ())

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The progress of the state before each action, at the action.

        Raises:
            StageError: when `ask` has no environment, or the function returns no finite number.
        """
        if not isinstance(ask, AskStates):
            raise StageError(f"StateProgress: got {type(ask).__name__} without states; need a run with an environment")
        return {self.column: [await self._tree(tree, ask) for tree in trees]}

    async def _tree(self, tree: Tree, ask: AskStates) -> dict[int, Entry]:
        places, states = states_of(tree), await ask.states(tree)
        value = {place: await self._value(states, place, ask) for place in places}
        return {act: _entry(value[place]) for place, actions in places.items() for act in actions}

    async def _value(self, states: Mapping[int, Any], place: int, ask: AskStates) -> float | None:
        if place not in states:
            return None
        if self.potential is None:
            first, here = await ask.plan(states[0]), await ask.plan(states[place])
            return plan_progress(None if first is None else len(first), None if here is None else len(here))
        found = self.potential(states[place])
        if found is not None and not math.isfinite(found):
            raise StageError(f"StateProgress.potential: got {found}; need a finite number, or None where it is unknown")
        return found


def plan_progress(first: int | None, here: int | None) -> float:
    """1 - d / d0, at least 0, of the lengths of plans from the first state and from this one; None without a plan."""
    if here is None or not first:
        return 0.0
    return max(0.0, 1.0 - here / first)


def _entry(value: float | None) -> Entry:
    return Entry(verdict=Verdict.REFUSED) if value is None else Entry(value=value, verdict=Verdict.OK, votes=1)
