"""The comparisons that the viewer lists and shows, from the files that `bough compare` wrote."""

from pathlib import Path

import pytest
from tests.compare.stored_runs import stored_run
from tests.small import run as small

import bough
from bough.credit import Gigpo
from bough.store import StoreError
from bough.viewer.comparisons import comparison, comparison_rows
from bough.viewer.runs import Runs


def test_a_comparison_is_shown_with_links_to_its_runs(tmp_path: Path) -> None:
    other = small().replace(credit=Gigpo())
    one = stored_run(tmp_path / "a", {0: {"t": 0.0}, 1: {"t": 1.0}}, tokens=[10])
    two = stored_run(tmp_path / "elsewhere" / "b", {0: {"t": 0.0}, 1: {"t": 0.0}}, tokens=[20], run=other)
    found = bough.compare([one, two], out=tmp_path / "first")
    runs = Runs([tmp_path])
    assert comparison_rows(runs) == {
        "comparisons": [{"name": "first", "method": ["a", "b"], "world": ["small"], "runs": 2}]
    }
    shown = comparison(runs, "first")
    assert shown["curves"][0] == {  # pyright: ignore[reportIndexIssue]
        "method": "a",
        "world": "small",
        "seed": 0,
        "run": "a",
        "steps": list(next(iter(found.curves.values())).steps),
        "spent": {"tokens": [0, 10], "actions": [0, 10], "seconds": [0, 1]},
        "mean": [0, 1],
    }
    assert shown["curves"][1]["run"] is None  # pyright: ignore[reportIndexIssue]
    assert shown["amounts"] == {"small": 10}
    assert comparison_rows(Runs([tmp_path / "first"])) == comparison_rows(runs)


def test_damaged_and_unknown_comparisons_are_named(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "comparison.json").write_text('{"cells": [{"method": 3}]}')
    runs = Runs([tmp_path])
    (row,) = comparison_rows(runs)["comparisons"]  # pyright: ignore[reportGeneralTypeIssues, reportAssignmentType]
    assert "got no comparison; need the file as `bough compare` wrote it" in row["damaged"]
    with pytest.raises(StoreError, match="got no comparison"):
        comparison(runs, "x")
    with pytest.raises(StoreError, match=r"got the comparison 'y'; need one of x"):
        comparison(runs, "y")
