"""Numbers that are not finite, in every file of JSON that a run writes."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.store.test_trees import random_tree

from bough.store import Checkpoints, Metrics, write_json, write_tasks, write_trees
from bough.store.answers import Answers
from bough.tree import Task
from bough.usercode.json_file import parse_json

ODD = {"odd": math.nan, "odder": [math.inf, -math.inf], "even": 1.5}
PLAIN = {"odd": None, "odder": [None, None], "even": 1.5}

WRITERS: dict[str, Callable[[Path], object]] = {
    "state.json": lambda folder: Checkpoints(directory=folder).save(1, {}, ODD),
    "config.json": lambda folder: write_json(folder / "config.json", ODD),
    "tasks.jsonl": lambda folder: write_tasks(folder / "tasks.jsonl", [Task(id="a", seed=0, data=ODD)]),
    "answers.jsonl": lambda folder: Answers(folder / "answers.jsonl").put("a", ODD),
    "metrics.jsonl": lambda folder: Metrics(folder / "metrics.jsonl").write(1, {"odd": math.nan, "even": math.inf}),
    "trees.jsonl": lambda folder: write_trees(
        folder / "trees.safetensors", [random_tree(np.random.default_rng(0), 2, "a", [ODD, {}])]
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_file_holds_nan(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path)
    (file,) = tmp_path.rglob(name)
    for line in [file.read_text()] if name.endswith(".json") else file.read_text().splitlines():
        assert "null" in line
        parse_json(line)


def test_the_state_of_a_checkpoint_comes_back(tmp_path: Path) -> None:
    checkpoints = Checkpoints(directory=tmp_path)
    checkpoints.save(1, {}, ODD)
    assert checkpoints.at(1).state() == PLAIN
