"""Actions of other models than the policy, such as a teacher's."""

from dataclasses import replace

from bough.context import conversation, parse_tokens
from bough.rollout.budget import Usage
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.tree import AgentAction
from bough.tree.seeds import derive


async def role_action(rollout: Rollout, cursor: Cursor, role: str) -> AgentAction:
    """The action that the model of a role samples in a state.

    The model reads the whole conversation in its own format, with the actions as text, and the policy's parser finds
    the action in its answer.

    Args:
        rollout: The rollout.
        cursor: The state.
        role: The role whose model acts.

    Raises:
        BudgetExceeded: when it does not fit a budget of the tree.
        EngineFault: when the engine broke.
    """
    writer = rollout.writer(cursor)
    agent, model = writer.agent, writer.agent.model(role)
    past = [replace(turn, tokens=()) for turn in cursor.past]
    prompt = model.renderer.render(conversation(writer.system, past, cursor.state.observation), cursor.state.tools)
    sampling, seed = agent.sampling, derive(rollout.seed("suggest", role), *cursor.branches)
    async with rollout.budget.reserve(Usage(tokens=sampling.max_tokens, calls=1)) as cost:
        cost.calls = 1
        owner = f"{writer.name(cursor.branches)} {role}"
        tokens = (await writer.complete(prompt, sampling, seed, owner=owner, role=role)).tokens
        cost.tokens = len(tokens)
    return parse_tokens(agent.parser, model.renderer, tokens, cursor.state.tools).action
