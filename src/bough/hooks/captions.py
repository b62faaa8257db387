"""Captions of observations: the queue, the batch in flight, and the labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bough.integers import integers
from bough.tree import Kind, Tree, text_in


@dataclass(slots=True, kw_only=True)
class CaptionLabels:
    """The labels, and the captions that wait for one.

    Attributes:
        clock: Steps that have ended.
        queue: Captions that wait, the newest last.
        known: Captions that have ever been queued, oldest first.
        sent: The batch in flight: captions, or pairs of them.
        sent_at: The clock when it was sent.
        labels: By caption, or for a pair by its two captions: the label, and the clock when it was first used.
        unread: Number of answers without a label.
    """

    clock: int = 0
    queue: list[str] = field(default_factory=list[str])
    known: list[str] = field(default_factory=list[str])
    sent: list[list[str]] = field(default_factory=list[list[str]])
    sent_at: int = 0
    labels: list[tuple[list[str], int, int]] = field(default_factory=list[tuple[list[str], int, int]])
    unread: int = 0


def read_label(answer: str, most: int) -> int | None:
    """The last number of an answer, from 0 to `most`; None without one.

    Examples:
        >>> read_label("I would say 1.", 1)
        1
    """
    found = integers(answer, r"(?<![\w.\-\u2212])\d+(?!\w|\.\d)")
    return found[-1] if found and found[-1] <= most else None


def occurrences(tree: Tree, node: int, captions: Mapping[int, str]) -> int:
    """How often the caption of a node has occurred on the path up to the node, the node included."""
    count, here = 0, node
    while here >= 0:
        count += captions.get(here) == captions[node]
        here = int(tree.parent[here])
    return count


def captions_of(tree: Tree, pattern: str) -> dict[int, str]:
    """The captions of the observations after actions, by node."""
    found = dict[int, str]()
    for node in range(1, tree.nodes):
        text = None if tree.kind[node] == Kind.ACTION else text_in(tree.info[node])
        match = re.search(pattern or r"[\s\S]+", text or "")
        # The first group, or the whole match without groups.
        caption = (match[min(1, match.re.groups)] or "").strip() if match else ""
        if caption:
            found[node] = caption
    return found
