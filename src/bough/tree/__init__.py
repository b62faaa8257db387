"""The trajectory tree: tasks, trees, and the stages of a tree. Imports numpy only."""

from bough.tree.actions import ActionCounts, count_actions
from bough.tree.build import TreeNode, build
from bough.tree.columns import cut_tree, join_column, join_trees, rows_of
from bough.tree.credited import Credited, included, join_advantages, token_advantages
from bough.tree.group import groups
from bough.tree.marks import ANSWER, COUNTED, EXPLORER, PRUNED, STUB, TRUNCATED_BY, TRUNK, Kind, Outcome, Source
from bough.tree.path_view import PathTokens, PathView, action_info, join, path_view, turn_info
from bough.tree.prune import is_replayed, keep_paths, mark_replayed
from bough.tree.seeds import derive
from bough.tree.spread import exclude_leaves, mean_over_paths, spread_nodes, spread_paths, spread_tokens, spread_turns
from bough.tree.stages import Rewarded, StageError, describe, is_column
from bough.tree.task import Task
from bough.tree.tree import DTYPES, Bools, Floats, Info, Ints, Tree
from bough.tree.walk import (
    begins_turn,
    context,
    count_path_tokens,
    counted,
    leaves,
    levels,
    path,
    paths_through,
    sum_at,
    sum_of_subtree,
    sum_to_root,
    text_start,
    token_node,
    trained,
    truncated_states,
    turn_start,
    turns,
)

__all__ = [
    "ANSWER",
    "COUNTED",
    "DTYPES",
    "EXPLORER",
    "PRUNED",
    "STUB",
    "TRUNCATED_BY",
    "TRUNK",
    "ActionCounts",
    "Bools",
    "Credited",
    "Floats",
    "Info",
    "Ints",
    "Kind",
    "Outcome",
    "Rewarded",
    "Source",
    "StageError",
    "PathView",
    "Task",
    "Tree",
    "TreeNode",
    "PathTokens",
    "action_info",
    "begins_turn",
    "build",
    "context",
    "count_actions",
    "count_path_tokens",
    "counted",
    "cut_tree",
    "derive",
    "describe",
    "groups",
    "included",
    "join",
    "exclude_leaves",
    "is_column",
    "is_replayed",
    "join_advantages",
    "join_column",
    "join_trees",
    "keep_paths",
    "leaves",
    "levels",
    "mark_replayed",
    "mean_over_paths",
    "path",
    "paths_through",
    "rows_of",
    "spread_nodes",
    "spread_paths",
    "spread_turns",
    "spread_tokens",
    "path_view",
    "turn_info",
    "sum_at",
    "sum_of_subtree",
    "sum_to_root",
    "text_start",
    "token_advantages",
    "token_node",
    "trained",
    "truncated_states",
    "turn_start",
    "turns",
]
