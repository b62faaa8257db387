"""Invariant 7 where nothing is learned: a resumed step is bit-equal to the uninterrupted one. See `test_chaos`, too."""

import json
import shutil
from pathlib import Path

import small
from bough.curate import NonZeroAdvantage
from bough.train import Checkpointing, resume, start


def _rows(directory: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.startswith(small.MEASURED)} for row in rows]


def test_steps_without_an_update_are_resumed_exactly_too(tmp_path: Path) -> None:
    """Nothing is synced after such a step, so only `Runtime.reset_caches` keeps its cache from the next step."""
    idle = small.slow().replace(
        name="idle", steps=6, filters=(NonZeroAdvantage(tolerance=9.0),), checkpointing=Checkpointing(every=1, keep=100)
    )
    directory = start(idle, tmp_path).path
    rows = _rows(directory)
    assert all("policy/gap" not in row for row in rows if row["phase"] == "rl")
    for checkpoint in sorted((directory / "checkpoints").iterdir())[-3:]:
        shutil.rmtree(checkpoint)
    resume(directory)
    assert _rows(directory) == rows
