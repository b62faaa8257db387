"""The end of a rollout: open states become the ends of truncated paths."""

from collections.abc import Mapping

from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.tree import Kind, Outcome, TruncatedBy


def over_too_early(
    builder: TreeBuilder, stopped: Mapping[int, TruncatedBy], outcome: Outcome, after: str
) -> ValueError:
    """The error of a task whose last state ends it before the agent's first turn; names the limit that did."""
    last = len(builder.nodes) - 1
    limit = builder.nodes[last].truncated_by or stopped.get(last, TruncatedBy.NOTHING)
    why = f"{outcome.name.lower()} by {limit.name.lower()}" if limit else outcome.name.lower()
    return ValueError(
        f"task {builder.task.id}: got a start that is over after {after} ({why}); need a start that leaves at least "
        "one turn within the model's context and the limits of a path and a tree"
    )


def end_open(builder: TreeBuilder, stopped: Mapping[int, TruncatedBy]) -> None:
    """Truncate the open paths of a tree.

    A state from which no action was executed becomes the end of a truncated path. Actions that were only sampled there
    stay beside this end and are not on any path. An action, or a piece of one, that was not executed ends a path only
    if it was stopped.

    Args:
        builder: The tree.
        stopped: By node, the reason why the path ends there.
    """
    inner = {node.parent for node in builder.nodes}
    for number, node in enumerate(builder.nodes):
        dropped = node.kind is Kind.ACTION and number not in stopped
        if number in inner or node.outcome is not Outcome.OPEN or dropped:
            continue
        node.outcome = Outcome.TRUNCATED
        node.success, node.truncated_by = bool(node.success), stopped.get(number, TruncatedBy.EXPLORER)
    last = {node.parent: node.branch for node in sorted(builder.nodes, key=lambda node: node.branch)}
    for state in _left(builder, inner):
        end = NodeDraft(parent=state, kind=Kind.OBSERVATION, branch=1 + last[state], outcome=Outcome.TRUNCATED)
        end.success, end.truncated_by = bool(builder.nodes[state].success), stopped.get(state, TruncatedBy.EXPLORER)
        builder.add(end)


def _left(builder: TreeBuilder, inner: set[int]) -> list[int]:
    """The nodes with sampled actions below them of which none was executed."""
    nodes = builder.nodes
    continued: set[int] = set()
    for node in nodes:
        if node.kind is Kind.ACTION and node.outcome in (Outcome.OPEN, Outcome.FAILED):
            continue
        above = node.parent
        while above >= 0 and above not in continued:
            continued.add(above)
            above = nodes[above].parent if nodes[above].kind is Kind.ACTION else -1
    left: set[int] = set()
    for number, node in enumerate(nodes):
        # A failed action does not end a path, and neither do the pieces before it.
        if node.kind is Kind.ACTION and node.outcome is Outcome.OPEN and number not in inner:
            above = node.parent
            while nodes[above].kind is Kind.ACTION:
                above = nodes[above].parent
            left.add(above)
    return sorted(left - continued)
