"""The trajectory tree: tasks, trees, and the stages of a tree. Imports numpy only."""

from bough.tree.actions import ActionCounts, count_actions
from bough.tree.appraisal import Appraisal, Entry, Verdict
from bough.tree.build import TreeNode, build
from bough.tree.columns import UNKNOWN_VALUES, cut_tree, draft_columns, join_column, join_trees, rows_of, tree_record
from bough.tree.counts import RolloutCounts
from bough.tree.credited import Credited, included, join_advantages, token_advantages
from bough.tree.group import groups
from bough.tree.marks import COUNTED, Kind, Outcome, Source, Ternary, TruncatedBy
from bough.tree.message import Action, BadCall, Message, Observation, Role, Tool, ToolCall, messages, plain_text
from bough.tree.path_view import PathTokens, PathView, annotation_spans, annotations, join, path_view
from bough.tree.prune import keep_paths
from bough.tree.seeds import derive
from bough.tree.spread import exclude_leaves, mean_over_paths, spread_nodes, spread_paths, spread_tokens, spread_turns
from bough.tree.stages import Rewarded, StageError, describe, is_column
from bough.tree.task import Task
from bough.tree.texts import fault_in, instructions_in, needed_tokens_in, text_in
from bough.tree.tree import DTYPES, Bools, Floats, Info, Ints, Tree
from bough.tree.unjudged import fail_unknown, unknown_paths
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
    "COUNTED",
    "DTYPES",
    "UNKNOWN_VALUES",
    "Action",
    "ActionCounts",
    "BadCall",
    "Appraisal",
    "Entry",
    "Verdict",
    "fail_unknown",
    "unknown_paths",
    "Message",
    "Observation",
    "Role",
    "Tool",
    "ToolCall",
    "messages",
    "plain_text",
    "Bools",
    "Credited",
    "Floats",
    "Info",
    "Ints",
    "Kind",
    "Outcome",
    "Rewarded",
    "RolloutCounts",
    "Source",
    "StageError",
    "PathView",
    "Task",
    "Ternary",
    "Tree",
    "TreeNode",
    "TruncatedBy",
    "PathTokens",
    "annotation_spans",
    "annotations",
    "begins_turn",
    "build",
    "context",
    "count_actions",
    "count_path_tokens",
    "counted",
    "cut_tree",
    "derive",
    "describe",
    "draft_columns",
    "fault_in",
    "groups",
    "included",
    "instructions_in",
    "join",
    "exclude_leaves",
    "is_column",
    "join_advantages",
    "join_column",
    "join_trees",
    "keep_paths",
    "leaves",
    "levels",
    "mean_over_paths",
    "needed_tokens_in",
    "path",
    "paths_through",
    "rows_of",
    "spread_nodes",
    "spread_paths",
    "spread_turns",
    "spread_tokens",
    "path_view",
    "sum_at",
    "sum_of_subtree",
    "sum_to_root",
    "text_in",
    "text_start",
    "token_advantages",
    "token_node",
    "trained",
    "tree_record",
    "truncated_states",
    "turn_start",
    "turns",
]
