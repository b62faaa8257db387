"""Random walks: the episodes on which the checks rest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from bough.env import EnvFault, Oracle, State, Step
from bough.evaluate.envs.actor import RandomActor, takes_calls
from bough.evaluate.envs.comparison import state_record, step_record
from bough.evaluate.envs.timed import TimedEnv, within
from bough.tree import AgentAction, Outcome, Task
from bough.tree.seeds import derive


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """An episode of random actions, after a random part of the oracle's plan where there is one.

    Attributes:
        task: The task.
        actions: [n] The actions.
        states: [n + 1] The states; `states[i]` is the one in which `actions[i]` was executed.
        steps: [n] The steps.
        siblings: [n] Another action for each state.
    """

    task: Task
    actions: tuple[AgentAction, ...]
    states: tuple[State, ...]
    steps: tuple[Step, ...]
    siblings: tuple[AgentAction, ...]

    @property
    def records(self) -> list[dict[str, object]]:
        """[n + 1] The first state and all steps, as JSON data."""
        return [state_record(self.states[0]), *map(step_record, self.steps)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Walks:
    """The walks of a check.

    Attributes:
        walks: Those without a fault, up to the first fault.
        fault: The first fault, with the task and the actions that led to it; "" without any.
        known: Actions that the oracle planned.
    """

    walks: tuple[Walk, ...]
    fault: str = ""
    known: tuple[AgentAction, ...] = ()

    @property
    def steps(self) -> int:
        """Number of steps in all walks."""
        return sum(len(walk.actions) for walk in self.walks)


@dataclass(slots=True, kw_only=True)
class _Draft:
    task: Task
    actions: list[AgentAction] = field(default_factory=list[AgentAction])
    states: list[State] = field(default_factory=list[State])
    steps: list[Step] = field(default_factory=list[Step])
    siblings: list[AgentAction] = field(default_factory=list[AgentAction])

    def walk(self) -> Walk:
        whole = len(self.steps)
        return Walk(
            task=self.task,
            actions=tuple(self.actions[:whole]),
            states=tuple(self.states),
            steps=tuple(self.steps),
            siblings=tuple(self.siblings[:whole]),
        )


def record_walks(env: TimedEnv, tasks: Sequence[Task], *, count: int, most: int, seed: int, seconds: float) -> Walks:
    """Plays episodes of random actions.

    Args:
        env: The environment.
        tasks: The tasks, which are repeated until there are `count` walks.
        count: Number of walks.
        most: Maximum number of steps of a walk.
        seed: Seed of the actions.
        seconds: No walk begins later.
    """
    walks: list[Walk] = []
    known: list[AgentAction] = []
    for number in within(seconds, range(count)):
        draft = _Draft(task=tasks[number % len(tasks)])
        try:
            _play(env, draft, known, rng=Random(derive(seed, "walk", number)), most=most)
        except EnvFault as fault:
            if draft.steps:
                walks.append(draft.walk())
            done = f"task {draft.task.id} after {len(draft.steps)} steps"
            return Walks(walks=tuple(walks), fault=f"{done}: {fault}", known=tuple(known))
        walks.append(draft.walk())
    return Walks(walks=tuple(walks), known=tuple(known))


def _play(env: TimedEnv, draft: _Draft, known: list[AgentAction], *, rng: Random, most: int) -> None:
    """Plays one walk into a draft."""
    actor = RandomActor(calls=takes_calls(env.env), rng=rng, known=known)
    state = env.start(draft.task)
    draft.states.append(state)
    planned = (env.plan(state) or ()) if isinstance(env.env, Oracle) else ()
    known.extend(action for action in planned if action not in known)
    # Beginning with a part of the plan reaches states that random actions alone do not.
    followed = planned[: rng.randint(0, len(planned))] if planned else ()
    while len(draft.steps) < most:
        actor.observe(state)
        planned_now = len(draft.steps) < len(followed)
        draft.actions.append(followed[len(draft.steps)] if planned_now else actor.act(state))
        draft.siblings.append(actor.act(state))
        step = env.step(state, draft.actions[-1])
        draft.steps.append(step)
        draft.states.append(step.state)
        state = step.state
        if step.outcome is not Outcome.OPEN:
            return
