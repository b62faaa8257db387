"""Episodes of environments from other libraries, which are changed in place."""

import math
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from typing import Any, cast

from bough.env.env import EnvFault, Split
from bough.env.splits import draw_instances, instance_task
from bough.tree import Task
from bough.usercode.address import address_of

SEEDS = 2**31
"""Seeds of episodes are below this."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Live:
    """An episode that is changed in place. It is closed at its end, or when no state of it is left.

    Attributes:
        handle: The other library's object.
        close: Called once with the object.
        steps: Number of actions that it has executed.
        totals: The sum of rewards so far, by seat.
    """

    handle: Any
    close: InitVar[Callable[[Any], object]]
    steps: int = 0
    totals: dict[str, float] = field(default_factory=dict[str, float])
    _end: Callable[[], object] = field(init=False, repr=False)

    def __post_init__(self, close: Callable[[Any], object]) -> None:
        self._end = weakref.finalize(self, close, self.handle)

    def end(self) -> None:
        """Closes the episode; safe to call twice."""
        self._end()

    @contextmanager
    def closed_on_error(self) -> Generator[None]:
        """Closes the episode when the block raises: its present state is unknown then."""
        try:
            yield
        except BaseException:
            self.end()
            raise


@dataclass(frozen=True, slots=True)
class Position:
    """The value of a state: a position in an episode; only the newest one can be stepped.

    Attributes:
        live: The episode.
        steps: Number of actions executed before this state.
        turns: Number of actions given, executed or not.
    """

    live: Live
    steps: int = 0
    turns: int = 0

    def take(self, name: str) -> Any:
        """The object that the next action changes.

        Raises:
            EnvFault: when a later state of the episode exists.
        """
        if self.live.steps != self.steps:
            raise EnvFault(f"{name}: got a state that is not the newest one; need Replay(env=...) to branch")
        return self.live.handle

    def after(self, *, executed: bool) -> "Position":
        """The position after an action."""
        if executed:
            self.live.steps += 1
        return Position(self.live, self.live.steps, self.turns + 1)


def seeded_tasks(name: str, split: Split, count: int, seed: int) -> list[Task]:
    """`count` tasks that are seeds of episodes; a hash of the seed decides its split."""
    seeds = draw_instances(
        name=name,
        split=split,
        count=count,
        seed=seed,
        propose=lambda rng: rng.randrange(SEEDS),
        content=str,
        accept=lambda each: each >= 0,
    )
    return [instance_task(name=name, content=str(each), data={"seed": each}) for each in seeds]


def seed_of(name: str, task: Task) -> int:
    """The seed of a task's episode.

    Raises:
        ValueError: when the task has none.
    """
    seed = task.data.get("seed")
    if not isinstance(seed, int):
        raise ValueError(f"{name}: task {task.id} got the seed {seed!r}; need data={{'seed': INTEGER}}")
    return seed


def optional_address(function: Callable[..., Any] | None) -> str:
    """The address of a function; "" for None."""
    return "" if function is None else address_of(function)


def object_field(name: str, value: object) -> dict[str, Any]:
    """A JSON object of a server's reply.

    Raises:
        EnvFault: when the value is of another type.
    """
    if not isinstance(value, dict):
        raise EnvFault(f"{name}: got {value!r:.200}; need a JSON object")
    return cast("dict[str, Any]", value)


def reward_and_done(name: str, reply: Mapping[str, Any]) -> tuple[float, bool]:
    """The fields "reward" and "done" of a server's reply; 0.0 and False where they are missing or null.

    Raises:
        EnvFault: when the reward is no finite number, or done is no boolean.
    """
    reward, done = reply.get("reward"), reply.get("done")
    try:
        number = 0.0 if reward is None else float(reward) if isinstance(reward, int | float) else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise EnvFault(f"{name}: got the reward {reward!r:.200}; need a finite number or null")
    if done is not None and not isinstance(done, bool):
        raise EnvFault(f"{name}: got done={done!r:.200}; need true or false")
    return number, bool(done)
