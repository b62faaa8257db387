"""What an environment's oracle would do with a task, from its beginning to its end."""

from bough.env import Env, Oracle
from bough.tree import Outcome, Task


def way(env: Env, task: Task) -> tuple[str, ...]:
    """The actions by which the oracle solves a task; () without an oracle, or when it does not.

    It is asked before every turn, so that it may depend on what it has seen.
    """
    if not isinstance(env, Oracle):
        return ()
    state, actions = env.start(task), list[str]()
    for action in task.start:
        state = env.step(state, action).state
    while plan := env.plan(state):
        step = env.step(state, plan[0])
        actions.append(plan[0])
        if step.outcome is not Outcome.OPEN:
            return tuple(actions) if step.success else ()
        state = step.state
    return ()
