"""Groups: the trees of one task, whose paths are compared with each other."""

from collections.abc import Sequence
from typing import TypeVar

from bough.tree.credited import Credited
from bough.tree.stages import Rewarded
from bough.tree.tree import Tree

Stage = TypeVar("Stage", Tree, Rewarded, Credited)


def groups(stages: Sequence[Stage]) -> list[list[Stage]]:
    """Groups the trees by task, tasks in order of first appearance."""
    by_task: dict[str, list[Stage]] = {}
    for stage in stages:
        tree = stage if isinstance(stage, Tree) else stage.tree
        by_task.setdefault(tree.task.id, []).append(stage)
    return list(by_task.values())
