"""The 800 multi-turn episodes of BFCL, as values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bough.env.env import Split
from bough.env.splits import split_of
from bough.usercode.json_file import read_objects
from bough.worlds.bfcl.package import data_file

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
"""The categories of episodes, as in the ids `multi_turn_CATEGORY_NUMBER`."""

PREFIX = "multi_turn_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An episode of the package.

    Attributes:
        name: Its id, such as "multi_turn_base_7".
        category: One of `CATEGORIES`.
        scenario: Its number. Episodes of one number have one scenario, in four variants.
        classes: The API classes.
        config: The first state of each class.
        users: The message of each user turn; "" where functions are added in place of a message.
        added: The functions that are added, by user turn.
        truth: The ground truth of each user turn, as Python calls.
        split: By the first state of the scenario's variant "base".
    """

    name: str
    category: str
    scenario: int
    classes: tuple[str, ...]
    config: Mapping[str, Any] = field(repr=False)
    users: tuple[str, ...] = field(repr=False)
    added: Mapping[int, tuple[str, ...]] = field(repr=False)
    truth: tuple[tuple[str, ...], ...] = field(repr=False)
    split: Split

    @property
    def calls(self) -> int:
        """Number of calls of the ground truth."""
        return sum(map(len, self.truth))


@lru_cache(maxsize=1)
def entries() -> Mapping[str, Entry]:
    """All episodes by id, in the order of the files.

    Raises:
        ImportError: when bfcl-eval is not installed.
    """
    splits: dict[int, Split] = {}
    found: dict[str, Entry] = {}
    for category in CATEGORIES:
        name = f"BFCL_v4_multi_turn_{category}.json"
        answers = {row["id"]: row["ground_truth"] for row in _rows(f"possible_answer/{name}")}
        for row in _rows(name):
            scenario = int(row["id"].rpartition("_")[2])
            # Three groups of scenarios share their first state: the state decides, so that they are in one split.
            split = splits.setdefault(scenario, split_of(json.dumps(row["initial_config"], sort_keys=True)))
            found[row["id"]] = Entry(
                name=row["id"],
                category=category,
                scenario=scenario,
                classes=tuple(row["involved_classes"]),
                config=row["initial_config"],
                users=tuple("\n".join(message["content"] for message in turn) for turn in row["question"]),
                added={int(turn): tuple(names) for turn, names in row.get("missed_function", {}).items()},
                truth=tuple(tuple(calls) for calls in answers[row["id"]]),
                split=split,
            )
    return found


def _rows(name: str) -> list[dict[str, Any]]:
    return [row for _, row in read_objects(data_file(name), "an episode of BFCL")]
