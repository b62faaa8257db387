"""What an environment's oracle would do with a task, from its beginning to its end."""

from bough.env import Host
from bough.tree import Outcome, Task


async def way(host: Host, task: Task) -> tuple[str, ...]:
    """The actions by which the oracle solves a task; () without an oracle, or when it does not.

    It is asked before every turn, so that it may depend on what it has seen.

    Raises:
        EnvFault: when the environment breaks, hangs, or returns the wrong type.
    """
    state, actions = await host.start(task), list[str]()
    for action in task.start:
        state = (await host.step(state, action)).state
    while plan := await host.plan(state):
        step = await host.step(state, plan[0])
        actions.append(plan[0])
        if step.outcome is not Outcome.OPEN:
            return tuple(actions) if step.success else ()
        state = step.state
    return ()
