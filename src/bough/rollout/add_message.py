"""Adds a message to an observation, as a person does who steers an episode."""

from dataclasses import replace

from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.tree import Kind, Message, messages


def add_message(rollout: Rollout, cursor: Cursor, message: Message, *, branch: int = 0) -> Cursor:
    """A cursor with one more message in its observation, below an `EDIT`; other branches from `cursor` do not change.

    The state's key becomes unknown, because the observation shows more than the environment's state.

    Args:
        rollout: The rollout.
        cursor: Where the message is added.
        message: The message.
        branch: Orders the node among its siblings.

    Raises:
        ValueError: when the prompt does not fit the model's context.
    """
    agent, state, writer = rollout.agent, cursor.state, rollout.writer(cursor)
    longer = replace(state, observation=(*messages(state.observation), message), key="")
    old, new = (writer.extend(cursor.past, each) for each in (state, longer))
    before = () if new.kind is Kind.EDIT else cursor.text[: len(cursor.text) - len(old.tokens)]
    text = (*before, *new.tokens)
    if len(text) >= agent.engine.context_tokens:
        raise ValueError(
            f"got a prompt of {len(text)} tokens; need fewer than the {agent.engine.context_tokens} of the model's "
            "context; write less, or begin a new episode"
        )
    node, _ = writer.observe(cursor.node, longer, text, kind=Kind.EDIT, branch=branch)
    return replace(cursor, node=node, state=longer, text=text)
