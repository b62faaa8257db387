"""`bough list` without a name: the number of entries of each group, on one screen."""

from collections import Counter
from collections.abc import Mapping, Sequence

from bough.cli.catalogue import entries
from bough.cli.systems import systems

SHELVES: Mapping[str, Sequence[str]] = {
    "Runs": ("methods", "worlds", "policies", "recipes", "loggers", "tracing"),
    "Episodes": ("env", "rows", "context", "parser", "guard", "explore", "quality", "blame"),
    "Models": ("policy", "lora", "critic", "models", "engine"),
    "Searches": ("search", "select", "score", "expand", "hint", "rate", "evaluate", "backup", "prune"),
    "Rewards": ("reward", "appraise", "read"),
    "Learning": ("hooks", "credit", "curate", "revise", "objective", "pairs", "schedule"),
}
"""The groups of `bough list`, by what they are for."""

EXAMPLES = (
    ("bough list", "credit", "a line for each entry of a group"),
    ("bough list", "gigpo", "one whole, with its settings"),
    ("bough list", "judge", "all with this word in their line"),
    ("bough list", "systems", "{systems} published systems, with their papers"),
)
"""The commands that show more, and what each shows."""


def show_counts() -> str:
    """A line for each shelf, with its groups and their numbers of entries; and the commands that show more."""
    counts = Counter(entry.room for entry in entries())
    lines: list[str] = []
    for shelf, rooms in SHELVES.items():
        cells = [f"{room} {counts[room]}" for room in rooms if counts[room]]
        rows = [cells[place : place + 4] for place in range(0, len(cells), 4)]
        for place, row in enumerate(rows):
            lines.append(f"{'' if place else shelf:10}" + "".join(f"{cell:17}" for cell in row).rstrip())
    shown = [f"{command} {name:9} {what.format(systems=len(systems()))}" for command, name, what in EXAMPLES]
    return "\n".join([*lines, "", *shown])
