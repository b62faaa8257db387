"""What every check of an environment works on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from bough.env import Branching, EnvFault, Replay, Split
from bough.evaluate.envs.timed import TimedEnv
from bough.evaluate.envs.walks import Walk, Walks
from bough.piece import Above, AtLeast, piece
from bough.tree import Task

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@piece
class CheckSizes:
    """How much the checks of an environment play.

    Attributes:
        tasks: Tasks of each split that the oracle solves; fewer where a split has fewer.
        walks: Random walks that are compared, stepped twice, and played in other processes.
        steps: Maximum number of steps of a walk.
        episodes: Episodes in a row for memory and open files. More find smaller leaks.
        processes: Fresh processes, each with another seed of Python's string hashes.
        seconds: Each check begins no new item after this time, and reports how many it did.
        call_s: Deadline of one call of the environment.
        seed: Seed of tasks and actions.

    Raises:
        ValueError: when a number is out of its range.
    """

    tasks: Annotated[int, AtLeast(1)] = 20
    walks: Annotated[int, AtLeast(1)] = 12
    steps: Annotated[int, AtLeast(1)] = 20
    episodes: Annotated[int, AtLeast(8)] = 100
    processes: Annotated[int, AtLeast(1)] = 2
    seconds: Annotated[float, Above(0)] = 60.0
    call_s: Annotated[float, Above(0)] = 60.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An environment under test, with its tasks and random walks.

    Attributes:
        env: The environment.
        sizes: How much is played.
        tasks: The tasks of each split that has any.
        walks: Random walks.
        turns: Turns of a path in training; None for any number.
        wrapped: The environment in `Replay` where its branching is `NONE`, else the environment itself.
    """

    env: TimedEnv
    sizes: CheckSizes
    tasks: Mapping[Split, tuple[Task, ...]]
    walks: Walks
    turns: int | None = None
    wrapped: TimedEnv = field(init=False)

    def __post_init__(self) -> None:
        env = self.env
        if env.env.branching is Branching.NONE:
            env = TimedEnv(env=Replay(env=env.env, keep=1), deadline_s=env.deadline_s, took_ms=env.took_ms)
        object.__setattr__(self, "wrapped", env)

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """The tasks of all splits, one split after the other."""
        return tuple(task for tasks in self.tasks.values() for task in tasks)

    def branching_walk(self, walk: Walk) -> Walk:
        """A walk whose states can be stepped again: the same one, or its actions played again in `Replay`.

        Raises:
            EnvFault: when the environment gives fewer steps than before.
        """
        if self.wrapped is self.env:
            return walk
        states = [self.wrapped.start(walk.task)]
        steps = [self.wrapped.step(states[-1], walk.actions[0])] if walk.actions else []
        for action in walk.actions[1:]:
            steps.append(self.wrapped.step(steps[-1].state, action))
        states += [step.state for step in steps]
        if len(states) != len(walk.states):
            raise EnvFault(f"task {walk.task.id} gave {len(states)} states; need {len(walk.states)} as before")
        return Walk(
            task=walk.task, actions=walk.actions, states=tuple(states), steps=tuple(steps), siblings=walk.siblings
        )
