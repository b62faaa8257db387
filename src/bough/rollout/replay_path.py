"""Plays a path of a stored tree again, so that an episode can go on from any of its turns."""

import numpy as np

from bough.rollout.builder import hash_key
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.tree import Kind, Outcome, Source, Tree, action_in, ends_turn, path, text_in, turn_start


async def replay_path(rollout: Rollout, tree: Tree, node: int) -> list[Cursor]:
    """Executes the actions from the root to a node, with the tokens that the tree has, without sampling.

    Args:
        rollout: A rollout of the tree's task, before its start.
        tree: The stored tree, of one agent.
        node: A node at which the episode is open.

    Returns:
        The cursor before each of these turns, and the one after them, the last.

    Raises:
        ValueError: when the episode is over at the node, or the environment does not repeat what the tree has.
        EnvFault: when the environment does not start.
        BudgetExceeded: when the path exceeds a budget of the rollout.
    """
    cursor = await rollout.root()
    found = [cursor]
    walk = path(tree, node)
    ends: list[int] = walk[ends_turn(tree)[walk]].tolist()
    # The root's start has executed the actions of `Task.start`.
    for turn, last in list(enumerate(ends, start=1))[len(tree.task.start) :]:
        after = await _execute(rollout, cursor, tree, last)
        below = walk[walk > last]
        shown = [int(each) for each in below if tree.kind[each] != Kind.ACTION]
        if isinstance(after, Outcome):
            raise ValueError(
                f"got node {node} of task {tree.task.id}, where the episode is over ({after.name.lower()} at turn "
                f"{turn}); need a turn before"
            )
        if shown and not _repeats(rollout, after, tree, _last_of_turn(tree, shown)):
            raise ValueError(
                f"turn {turn} of task {tree.task.id}: got another state than the stored tree has; need an environment "
                "in which the same actions lead to the same states"
            )
        cursor = after
        found.append(cursor)
    return found


async def _execute(rollout: Rollout, cursor: Cursor, tree: Tree, last: int) -> Cursor | Outcome:
    """Executes the stored action whose last piece is node `last`."""
    first = int(turn_start(tree)[last])
    pieces = path(tree, last)
    pieces = pieces[pieces >= first]
    tokens = np.concatenate([tree.tokens_of(int(each)) for each in pieces]).tolist()
    if tokens:
        # What a person or an oracle wrote remains theirs.
        source = Source.TEACHER if tree.source[last] == Source.TEACHER else Source.FORCED
        draft = rollout.force_tokens(cursor, tokens, source=source)
        if draft.complete:
            return await rollout.execute(draft)
    # An action that was written without a stop token, or without tokens, by a grammar or a program.
    return await rollout.advance(cursor, action=action_in(tree.info[last]), branch=1)


def _last_of_turn(tree: Tree, shown: list[int]) -> int:
    """The last node of the observation that follows a turn, before the next action."""
    last = shown[0]
    for each in shown[1:]:
        if tree.parent[each] != last:
            break
        last = each
    return last


def _repeats(rollout: Rollout, cursor: Cursor, tree: Tree, node: int) -> bool:
    """Whether the state at a cursor is the one that a node shows: by its key, or its text where it has none."""
    if known := int(tree.state_key[node]):
        return hash_key(cursor.state.key) == known
    return text_in(rollout.builder.nodes[cursor.node].info) == text_in(tree.info[node])
