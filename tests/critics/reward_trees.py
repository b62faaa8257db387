"""Trees whose steps are good or bad by their action, and so can be scored on other tasks."""

import numpy as np
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.tree import Outcome, Tree, TruncatedBy

GOOD, BAD = 7, 8
"""An action that keeps the task solvable, and one that makes it unsolvable."""


def forked(task: str = "task", *, prompt: tuple[int, ...] = (1, 2), abandoned: bool = False) -> Tree:
    """Two branches at the prompt, two below each; only the first of the four paths succeeds."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=prompt)]

    def add(parent: int, action: int, success: bool | None) -> int:
        nodes.append(N(parent=parent, kind=ACTION, tokens=(action,), value=float(action)))
        outcome = Outcome.OPEN if success is None else Outcome.TERMINATED
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(3,), outcome=outcome, success=success))
        return len(nodes) - 1

    for first in (GOOD, BAD):
        place = add(0, first, None)
        add(place, GOOD, first == GOOD)
        add(place, BAD, False)
        if abandoned:
            nodes.append(
                N(parent=place, kind=ACTION, tokens=(9,), outcome=Outcome.TRUNCATED, truncated_by=TruncatedBy.EXPLORER)
            )
    return build(*nodes, task=task)


def many(count: int, seed: int = 0) -> list[Tree]:
    """Trees of tasks with prompts at random."""
    rng = np.random.default_rng(seed)
    return [forked(f"task-{at}", prompt=tuple(rng.integers(10, 30, size=4).tolist())) for at in range(count)]
