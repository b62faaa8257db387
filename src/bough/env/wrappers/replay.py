"""Branching for every deterministic environment: restart the task and replay the actions."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Annotated

from bough.env.env import Branching, EnvFault, Oracle, State, Step, seats_of, waits_of
from bough.env.state_value import value_of
from bough.env.wrappers.wrapper import Wrapper
from bough.piece import AtLeast, piece
from bough.tree import AgentAction, Observation, Outcome, Task, action_record


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayState:
    """The value of a state of `Replay`: a task, the actions from its start, and what they lead to.

    Attributes:
        task: The task.
        actions: From its start.
        observation: What the inner environment showed; a message may be added to that of a `State`.
        key: The inner environment's key of the state.
    """

    task: Task
    actions: tuple[AgentAction, ...] = ()
    observation: Observation
    key: str

    @property
    def name(self) -> str:
        """Equal for equal states: the key of the live states."""
        return json.dumps([self.task.id, self.task.seed, *map(action_record, self.actions)])


@piece
class Replay(Wrapper):
    """Makes the states of an environment plain values by replaying actions.

    The newest state of an episode stays alive inside, so stepping it needs no replay. Any other state is
    reached by restarting the task and replaying its actions, which `Step.replayed_steps` counts.

    Attributes:
        env: A deterministic environment, usually of branching `NONE`.
        keep: Maximum number of live states; the least recently used is dropped first.
    """

    keep: Annotated[int, AtLeast(0, "0 (replay always) or more")] = 64
    _live: OrderedDict[str, State] = field(
        default_factory=OrderedDict[str, State], init=False, repr=False, compare=False
    )
    # Guards the live states, as an environment that waits is called by several threads.
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def __reduce__(self) -> "tuple[partial[Replay], tuple[()]]":
        # Live states cannot be pickled; a copy replays.
        return partial(Replay, env=self.env, keep=self.keep), ()

    @property
    def branching(self) -> Branching:
        """`REPLAY`: states are reached by replay."""
        return Branching.REPLAY

    @property
    def waits(self) -> bool:
        """Whether the inner environment waits."""
        return waits_of(self.env)

    @property
    def seats(self) -> Mapping[str, str]:
        """The inner environment's seats."""
        return seats_of(self.env)

    def start(self, task: Task) -> State:
        """Returns the first state of a task."""
        inner = self.env.start(task.copy())
        played = ReplayState(task=task, observation=inner.observation, key=inner.key)
        self._retain(played, inner)
        return replace(inner, value=played)

    def step(self, state: State, action: AgentAction) -> Step:
        """Executes an action in any state that this environment, or a copy of it, has returned.

        Raises:
            EnvFault: when a replay of the same actions gives another state.
        """
        played = value_of(state, ReplayState, "Replay")
        inner, replayed = self._reach(played)
        step = self.env.step(inner, action)
        reached, actions = step.state, (*played.actions, action)
        after = ReplayState(task=played.task, actions=actions, observation=reached.observation, key=reached.key)
        if step.outcome == Outcome.OPEN:
            self._retain(after, step.state)
        return replace(step, state=replace(step.state, value=after), replayed_steps=replayed + step.replayed_steps)

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the inner oracle's plan; None too when the inner environment is no `Oracle`."""
        if not isinstance(self.env, Oracle):
            return None
        played = value_of(state, ReplayState, "Replay")
        inner, _ = self._reach(played)
        self._retain(played, inner)
        return self.env.plan(inner)

    def close(self) -> None:
        """Drops the live states, and closes the inner environment."""
        with self._lock:
            self._live.clear()
        super().close()

    def _retain(self, played: ReplayState, inner: State) -> None:
        with self._lock:
            self._live[played.name] = inner
            self._live.move_to_end(played.name)
            dropped = [self._live.popitem(last=False) for _ in range(len(self._live) - self.keep)]
        # The end of a state may call a server, which is not to hold up other threads.
        dropped.clear()

    def _reach(self, played: ReplayState) -> tuple[State, int]:
        """Returns the inner state, removed from the live ones, and the number of replayed steps."""
        with self._lock:
            inner = self._live.pop(played.name, None)
        if inner is not None:
            return inner, 0
        inner = self.env.start(played.task.copy())
        for action in played.actions:
            inner = self.env.step(inner, action).state
        if (inner.observation, inner.key) != (played.observation, played.key):
            raise EnvFault(
                f"Replay: {type(self.env).__name__} is not deterministic: playing the {len(played.actions)} actions of "
                f"task {played.task.id} again led to {inner.observation!r} (key {inner.key!r}); need "
                f"{played.observation!r} (key {played.key!r}) as before. Draw from the task's seed alone"
            )
        return inner, len(played.actions)
