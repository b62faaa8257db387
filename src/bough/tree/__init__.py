"""The one data structure: tasks, trees, and the stages a tree goes through. Imports numpy only."""

from bough.tree.actions import ActionCounts, count_actions
from bough.tree.columns import cut_tree, join_column, join_trees, rows_of
from bough.tree.group import groups
from bough.tree.marks import ANSWER, COUNTED, PRUNED, STUB, TRUNK, Kind, Outcome, Source
from bough.tree.prune import is_replayed, keep_paths, mark_replayed
from bough.tree.spread import leave_out, mean_over_paths, spread_nodes, spread_paths, spread_steps, spread_words
from bough.tree.stages import Credited, Rewarded
from bough.tree.steps import Steps, Words, acts_info, join, steps, steps_info
from bough.tree.task import Task
from bough.tree.tree import DTYPES, Bools, Floats, Info, Ints, Tree
from bough.tree.walk import (
    context,
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
    turns,
)

__all__ = [
    "ANSWER",
    "COUNTED",
    "DTYPES",
    "PRUNED",
    "STUB",
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
    "Steps",
    "Task",
    "Tree",
    "Words",
    "acts_info",
    "context",
    "count_actions",
    "counted",
    "cut_tree",
    "groups",
    "join",
    "leave_out",
    "is_replayed",
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
    "spread_steps",
    "spread_words",
    "steps",
    "steps_info",
    "sum_at",
    "sum_of_subtree",
    "sum_to_root",
    "text_start",
    "token_node",
    "trained",
    "turns",
]
