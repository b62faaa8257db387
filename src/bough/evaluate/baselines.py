"""Mean returns of random actions and of the oracle on given tasks."""

import math
from collections.abc import Sequence
from random import Random

from bough.env import Env, Oracle, State
from bough.env.checked import ValidatedEnv
from bough.env.env import env_gives
from bough.evaluate.envs.actor import RandomActor, takes_calls
from bough.needs import ORACLE
from bough.tree import AgentAction, Outcome, Task
from bough.tree.seeds import derive


def random_return(env: Env, tasks: Sequence[Task], *, turns: int, seed: int) -> float:
    """Mean return of one episode of random actions on each task.

    Args:
        env: The environment.
        tasks: The tasks.
        turns: Maximum number of actions of an episode.
        seed: Seed of the actions.

    Raises:
        EnvFault: when the environment breaks.
    """
    total = 0.0
    checked = ValidatedEnv(env=env)
    for number, task in enumerate(tasks):
        actor = RandomActor(calls=takes_calls(env), rng=Random(derive(seed, "random return", number)))
        state = _begin(checked, task)
        for _ in range(turns):
            actor.observe(state)
            step = checked.step(state, actor.act(state))
            total, state = total + step.reward, step.state
            if step.outcome is not Outcome.OPEN:
                break
    return total / len(tasks)


def oracle_return(env: Env, tasks: Sequence[Task], *, turns: int) -> float:
    """Mean return of the oracle, which plans before every turn; nan without one.

    Raises:
        EnvFault: when the environment breaks.
    """
    if ORACLE not in env_gives(env) or not isinstance(env, Oracle):
        return math.nan
    total = 0.0
    checked = ValidatedEnv(env=env)
    for task in tasks:
        state = _begin(checked, task)
        for _ in range(turns):
            plan: tuple[AgentAction, ...] = checked.plan(state) or ()
            if not plan:
                break
            step = checked.step(state, plan[0])
            total, state = total + step.reward, step.state
            if step.outcome is not Outcome.OPEN:
                break
    return total / len(tasks)


def _begin(env: ValidatedEnv, task: Task) -> State:
    """The state after the start actions of a task."""
    state = env.start(task)
    for action in task.start:
        state = env.step(state, action).state
    return state
