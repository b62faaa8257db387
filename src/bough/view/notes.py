"""Notes after a success rate: failed tasks, cut actions, invalid actions."""

from collections import Counter
from collections.abc import Mapping

from bough.tree import ActionCounts

CUT_REMEDY = "Raise sampling.max_tokens, or warm up longer"


def failed_note(failures: Mapping[str, str]) -> str:
    """The number of failed tasks, and the most frequent cause; "" without failures.

    Args:
        failures: Cause by task id.
    """
    if not failures:
        return ""
    tasks = "1 task failed and does" if len(failures) == 1 else f"{len(failures)} tasks failed and do"
    return f"{tasks} not count: {cause(failures)}"


def cause(failures: Mapping[str, str]) -> str:
    """The most frequent cause; the first of equally frequent ones."""
    return Counter(failures.values()).most_common(1)[0][0]


def late_note(late: int) -> str:
    """That some tasks do not begin at their own start; "" for none."""
    return f", {late} of them from a later start" if late else ""


def cut_note(counts: ActionCounts) -> str:
    """The number of actions cut off at the token limit, and the remedy; "" without any."""
    return f"{cut_share(counts)}; {CUT_REMEDY.lower()}" if counts.cut else ""


def cut_share(counts: ActionCounts) -> str:
    """The number of actions cut off at the token limit."""
    share = f"{counts.cut:,} of {counts.actions:,} actions ({counts.cut / counts.actions:.1%})"
    return f"{share} were cut off at the token limit"


def invalid_note(counts: ActionCounts) -> str:
    """The number of invalid actions; "" without any."""
    if not counts.invalid:
        return ""
    return f"{counts.invalid:,} of {counts.actions:,} actions ({counts.invalid / counts.actions:.1%}) were invalid"
