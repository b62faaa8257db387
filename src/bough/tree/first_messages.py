"""The first messages of a policy in states with tools: whether they call one, and in which format."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bough.tree.marks import Source
from bough.tree.message import BadCall, ToolCall
from bough.tree.texts import calls_in, tools_at
from bough.tree.tree import Tree
from bough.tree.walk import counted, ends_turn, sum_to_root, turns


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMessages:
    """Counts of the sampled first messages of paths, and of the calls of all messages.

    Attributes:
        messages: Number of first messages in states with tools.
        foreign: Number of them with a call in the format of another model family, by family.
        calls: Number of calls in all sampled messages, without bad ones.
        malformed: Number of bad calls in all sampled messages.
        without_call: Number of counted paths with tools, on which no message was a call, not even a bad one.
    """

    messages: int = 0
    foreign: Mapping[str, int] = field(default_factory=dict[str, int])
    calls: int = 0
    malformed: int = 0
    without_call: int = 0


def count_first_messages(trees: Iterable[Tree]) -> FirstMessages:
    """Counts the first messages of some trees."""
    messages = calls = malformed = without_call = 0
    foreign: Counter[str] = Counter()
    for tree in trees:
        # The last node of a turn has what was parsed.
        sampled, first = ends_turn(tree) & (tree.source == Source.SAMPLED), turns(tree) == 1
        called = np.zeros(tree.nodes)
        for node in np.flatnonzero(sampled).tolist():
            found = calls_in(tree.info[node])
            right = sum(isinstance(call, ToolCall) for call in found)
            calls, malformed, called[node] = calls + right, malformed + len(found) - right, len(found)
            if first[node]:
                messages += bool(tools_at(tree, node))
                foreign.update([call.family for call in found if isinstance(call, BadCall) and call.family][:1])
        ends, any_call = counted(tree), sum_to_root(tree, called) > 0
        without_call += sum(bool(tools_at(tree, end)) for end in ends[~any_call[ends]].tolist())
    return FirstMessages(
        messages=messages, foreign=dict(foreign), calls=calls, malformed=malformed, without_call=without_call
    )
