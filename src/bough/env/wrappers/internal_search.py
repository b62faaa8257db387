"""Actions with a written search before them: a small game tree in one line, and the action it leads to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from bough.env.env import Branching, Oracle, State, Step, seats_of
from bough.env.wrappers.wrapper import Wrapper
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task, action_text

MOVE = "move:"
"""The action follows the last one of these in a text."""
MAX_DEPTH = 100
"""Levels of a tree; deeper ones do not fit a text."""
MAX_TURNS = 500
"""Turns of the oracle's play from a state at the last level; longer plays are valued by their rewards so far."""


@piece
class InternalSearch(Wrapper):
    """Board games by internal search (arXiv 2412.12119): an action is a game tree in one line, then the move.

    The text after the last "move:" is the action of the inner environment; a text without it is the whole action. What
    stands before it is the agent's own search, which no one checks: rewards decide whether it helps. The oracle writes
    a minimax search, which the warm-up teaches:

        a [b 1, c -1] -1, d [e 0, f 1] 0 move: d

    Action a can be answered by b or c. Values are payoffs of the seat that writes; that of a is the lowest of b and c,
    since another seat chooses between them, and d is best. A state after the last level is valued by the oracle's play
    to the end. The oracle considers the `width` best actions of each state for the seat that acts there.

    The inner environment has an oracle, lists admissible actions, and has no chance: a tree would reveal its outcomes.
    States are those of the inner environment, so scripts for it act in this one, too. Limits on the tokens of an action
    have to leave room for the tree.

    Attributes:
        env: The inner environment, of texts.
        depth: Levels of the oracle's tree, 1 to 100.
        width: Actions of each state in the oracle's tree, at least 1.
    """

    depth: Annotated[int, Between(1, MAX_DEPTH)] = 2
    width: Annotated[int, AtLeast(1)] = 2

    @property
    def deviations(self) -> Mapping[str, str]:
        """The oracle plays all seats."""
        return dict.fromkeys(["oracle", "oracle after random actions"], "perfect play of all seats can end in a draw")

    @property
    def instructions(self) -> str:
        """The inner environment's instructions, and the form of an answer."""
        return (
            f"{self.env.instructions} First write your search in one line: each move, the replies to it in brackets, "
            f"and its value for you. Then write {MOVE} and your move."
        )

    @property
    def seats(self) -> Mapping[str, str]:
        """The inner environment's seats."""
        return seats_of(self.env)

    def start(self, task: Task) -> State:
        """Returns the inner environment's first state."""
        return self.env.start(task)

    def step(self, state: State, action: str) -> Step:
        """Executes the move at the end of a text. `Step.info` has the number of characters of its tree."""
        before, _, move = action.rpartition(MOVE)
        step = self.env.step(state, move.strip())
        return replace(step, info={**step.info, "searched_characters": len(before.strip())})

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the next action, with its tree; None where the inner oracle has no plan or no action is admissible.

        Raises:
            ValueError: when the inner environment does not list its admissible actions, or cannot step a state twice.
        """
        if not isinstance(self.env, Oracle) or not self.env.plan(state):
            return None
        if self.env.branching is Branching.NONE:
            raise ValueError(
                f"InternalSearch.env: got {self.env!r:.200}; need a state to be stepped twice; wrap it in Replay"
            )
        found = self._children(state, state.seat, self.depth)
        if not found:
            return None
        best = max(found, key=lambda each: each[2])
        return (f"{_line(found)} {MOVE} {best[0]}",)

    def _children(self, state: State, seat: str, depth: int) -> list[tuple[str, str, float]]:
        """The best actions of a state: each with the tree below it in one line, and its value for a seat."""
        if state.admissible is None:
            raise ValueError(f"InternalSearch: got {self.env!r:.200}; need one that lists admissible actions")
        steps = {move: self.env.step(state, move) for move in state.admissible}
        sign = 1 if state.seat == seat else -1
        guess = {move: _payoff(step, seat) + self._played_out(step, seat) for move, step in steps.items()}
        best = sorted(guess, key=lambda move: -sign * guess[move])[: self.width]
        found: list[tuple[str, str, float]] = []
        for move in sorted(best, key=[*guess].index):
            step = steps[move]
            inner = step.outcome is Outcome.OPEN and depth > 1
            below = self._children(step.state, seat, depth - 1) if inner else []
            if not below:
                found.append((move, "", guess[move]))
                continue
            choose = max if step.state.seat == seat else min
            found.append((move, _line(below), _payoff(step, seat) + choose(each[2] for each in below)))
        return found

    def _played_out(self, step: Step, seat: str) -> float:
        """The sum of a seat's rewards after a step, when the oracle plays for all seats."""
        total = 0.0
        for _ in range(MAX_TURNS):
            plan = self.env.plan(step.state) if step.outcome is Outcome.OPEN and isinstance(self.env, Oracle) else None
            if not plan:
                break
            step = self.env.step(step.state, action_text(plan[0]))
            total += _payoff(step, seat)
        return total


def _payoff(step: Step, seat: str) -> float:
    return step.payoffs.get(seat, 0.0) if step.payoffs else step.reward


def _line(found: list[tuple[str, str, float]]) -> str:
    return ", ".join(f"{move} [{below}] {value:g}" if below else f"{move} {value:g}" for move, below, value in found)
