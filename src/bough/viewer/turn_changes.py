"""The turns of a tree as exported pages have them: each as what differs from the turn before.

The conversation and the prompt of a turn begin with those of the turn before, so whole copies would grow with the
square of the depth.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

Record: TypeAlias = Mapping[str, object]


def turn_changes(records: Sequence[Record], parent: Sequence[int]) -> list[dict[str, Record]]:
    """What differs, for each of G turns.

    `own` has the values that replace those of the turn before; `on` has lists that go on: the number of items that are
    equal from the start, and those after them. `web/tree/restored.js` puts them together.

    Args:
        records: [G] the whole turns, which have the same keys.
        parent: [G] index of the turn before; -1 for the first.
    """
    found: list[dict[str, Record]] = []
    for record, above in zip(records, parent, strict=True):
        before: Record = records[above] if above >= 0 else {}
        own: dict[str, object] = {}
        on: dict[str, object] = {}
        for name, value in record.items():
            old = before.get(name)
            if isinstance(value, list) and isinstance(old, list):
                same = _same(cast("list[object]", value), cast("list[object]", old))
                on[name] = [same, value[same:]]
            elif name not in before or value != old:
                own[name] = value
        found.append({"own": own, "on": on})
    return found


def _same(one: Sequence[object], other: Sequence[object]) -> int:
    """Number of items that are equal from the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
