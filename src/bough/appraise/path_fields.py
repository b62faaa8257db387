"""Texts of a grown tree for the prompts of an appraiser."""

import numpy as np

from bough.ask.prompts import prompt_fields
from bough.tree import Kind, Tree, counted, ends_turn, instructions_in, path, paths_through, text_in


def path_fields(tree: Tree, node: int) -> dict[str, str]:
    """The prompt fields of a node.

    Args:
        tree: The tree.
        node: A leaf, for the whole path; or the last `ACTION` node of a turn, for the path up to this action.

    Returns:
        `instructions`, the `turns` so far, the `observation` after them, and the last action as `answer`. At an
        `ACTION` node it is also the `action`, and `turns` and `observation` are those before it; an action without a
        text is "".
    """
    seen, past, action = "", list[tuple[str, str]](), None
    for at in map(int, path(tree, node)):
        text = text_in(tree.info[at])
        if tree.kind[at] != Kind.ACTION:
            if action is not None:
                past.append((seen, action))
            seen, action = text or "", None
        elif text is not None:
            action = text
    if tree.kind[node] == Kind.ACTION:
        action = action or ""
    answer = action if action is not None else past[-1][1] if past else ""
    fields = prompt_fields(instructions_in(tree.info[0]), past, seen) | {"answer": answer}
    return fields if action is None else fields | {"action": action}


def acts(tree: Tree) -> list[int]:
    """The last `ACTION` nodes of the turns on counted paths, each once, ascending."""
    return np.flatnonzero(ends_turn(tree) & (paths_through(tree) > 0)).tolist()


def path_steps(tree: Tree) -> dict[int, list[int]]:
    """By the leaf of each counted path, the last `ACTION` nodes of its turns, in order."""
    ends = ends_turn(tree)
    paths = {leaf: path(tree, leaf) for leaf in counted(tree).tolist()}
    return {leaf: nodes[ends[nodes]].tolist() for leaf, nodes in paths.items()}
