"""The end of growth: places from which nobody went on become the ends of truncated paths."""

from collections.abc import Mapping

from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.tree import EXPLORER, TRUNCATED_BY, Kind, Outcome


def end_open(builder: TreeBuilder, stopped: Mapping[int, str]) -> None:
    """End what is left open.

    A place at which nothing was done is where a path was truncated, also when actions were written there: they stay
    beside its end, on no path. An action, or a piece of one, that nobody carried out is no path unless it was stopped.

    Args:
        builder: The tree.
        stopped: By node, why nothing goes on from it.
    """
    inner = {node.parent for node in builder.nodes}
    for number, node in enumerate(builder.nodes):
        dropped = node.kind is Kind.ACTION and number not in stopped
        if number in inner or node.outcome is not Outcome.OPEN or dropped:
            continue
        node.outcome = Outcome.TRUNCATED
        node.info |= {"success": False, TRUNCATED_BY: stopped.get(number, EXPLORER)}
    last = {node.parent: node.branch for node in sorted(builder.nodes, key=lambda node: node.branch)}
    for place in _left(builder, inner):
        info: dict[str, object] = {"success": False, TRUNCATED_BY: stopped.get(place, EXPLORER)}
        added = builder.add(NodeDraft(parent=place, kind=Kind.OBSERVATION, branch=1 + last[place], info=info))
        builder.nodes[added].outcome = Outcome.TRUNCATED


def _left(builder: TreeBuilder, inner: set[int]) -> list[int]:
    """The places, among nodes with children, in which actions were written and none of them was done."""
    nodes = builder.nodes
    gone_on: set[int] = set()
    for node in nodes:
        if node.kind is Kind.ACTION and node.outcome in (Outcome.OPEN, Outcome.FAILED):
            continue
        above = node.parent
        while above >= 0 and above not in gone_on:
            gone_on.add(above)
            above = nodes[above].parent if nodes[above].kind is Kind.ACTION else -1
    left: set[int] = set()
    for number, node in enumerate(nodes):
        # What failed is no end of a path, nor is what was written before it.
        if node.kind is Kind.ACTION and node.outcome is Outcome.OPEN and number not in inner:
            above = node.parent
            while nodes[above].kind is Kind.ACTION:
                above = nodes[above].parent
            left.add(above)
    return sorted(left - gone_on)
