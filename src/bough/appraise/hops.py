"""Progress from hops: how much nearer to the goal one state is than another, read back into a potential."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

View: TypeAlias = Literal["incremental", "forward", "backward"]
"""The state that a state is compared with: the one before it, the first one, or the goal."""

VIEWS: tuple[View, ...] = ("incremental", "forward", "backward")


@dataclass(frozen=True, slots=True, kw_only=True)
class HopParser:
    """Parses an answer that ends with a signed percentage, such as "+25%" or "-40 %"; the last one of a text counts.

    The value of +25% is .25. A percentage outside of -100 to 100 is not an answer, and neither is a bare number.
    """

    def __call__(self, text: str) -> float | None:
        """The hop, from -1 to 1."""
        found = re.findall(r"(?<![\w.])([+-]?\d+(?:\.\d+)?)\s*%", text.replace("\N{MINUS SIGN}", "-"))
        hop = float(found[-1]) / 100 if found else None
        return hop if hop is not None and -1 <= hop <= 1 else None


def hop_between(before: float, after: float) -> float:
    """The hop between two states by their progress, in [-1, 1].

    A gain is relative to the way that was left, a loss to the way that was made:

        .2 to .6    .4 / .8 = .5        .6 to .45    -.15 / .6 = -.25

    Args:
        before: Progress from 0 at the start to 1 at the goal.
        after: Progress of the other state.
    """
    gain = after - before
    if gain == 0:
        return 0.0
    return gain / (1 - before) if gain > 0 else gain / before


def progress_after(before: float, hop: float) -> float:
    """The progress of a state from that of the state before it: the inverse of `hop_between`."""
    return before + (1 - before) * hop if hop >= 0 else before + before * hop


def progress_in_view(view: View, hop: float, before: float | None) -> float | None:
    """The progress of a state by one view, in [0, 1]; None where it is unknown.

    Args:
        view: What the state was compared with.
        hop: The hop from there to the state.
        before: By the same view, the progress of the state before it; for "incremental" alone.
    """
    match view:
        case "incremental":
            found = None if before is None else progress_after(before, hop)
        case "forward":
            found = hop
        case "backward":
            found = 1 + hop
    return None if found is None else min(1.0, max(0.0, found))


def fuse(by_view: Mapping[View, float | None]) -> tuple[float | None, float | None]:
    """The mean over the views whose progress is known, None without any; and their spread, None with fewer than two.

    The spread is the largest minus the smallest: views that disagree are uncertain.
    """
    known = [each for each in by_view.values() if each is not None]
    mean = sum(known) / len(known) if known else None
    return mean, max(known) - min(known) if len(known) > 1 else None


def read_back(hops: Mapping[View, Sequence[float | None]]) -> list[dict[View, float | None]]:
    """The progress by view of the states of a path after its first one, whose progress is 0.

    Incremental hops .2, .5, -.25, .4, 1 give the progress .2, .6, .45, .67, 1; backward hops -.8, -.4, -.55 give
    .2, .6, .45. After an unknown incremental hop this view knows nothing of the rest of the path; the other views
    compare with a fixed state, so they only miss this state, and they do not add up errors.

    Args:
        hops: By view, one hop for each state; None where it is unknown.
    """
    states = list[dict[View, float | None]]()
    before: float | None = 0.0
    for step in range(len(next(iter(hops.values()), ()))):
        found = dict[View, float | None]()
        for view, each in hops.items():
            hop = each[step]
            found[view] = None if hop is None else progress_in_view(view, hop, before)
        before = found.get("incremental")
        states.append(found)
    return states
