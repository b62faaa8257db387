"""The actions by which the oracle solves a task."""

from bough.env import Host
from bough.tree import AgentAction, Outcome, Task


async def oracle_actions(host: Host, task: Task) -> tuple[AgentAction, ...]:
    """The actions by which the oracle solves a task; () without an oracle, or without a solution.

    The oracle plans before every turn, so that its action may depend on the latest observation.

    Raises:
        EnvFault: when the environment breaks, hangs, or returns the wrong type.
    """
    state, actions = await host.start(task), list[AgentAction]()
    for action in task.start:
        state = (await host.step(state, action)).state
    while plan := await host.plan(state):
        step = await host.step(state, plan[0])
        actions.append(plan[0])
        if step.outcome is not Outcome.OPEN:
            return tuple(actions) if step.success else ()
        state = step.state
    return ()
