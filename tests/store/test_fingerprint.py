"""Fingerprints change with the contents, at a bounded cost."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bough.store import fingerprint
from bough.units import MIB


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"abc")
    first = fingerprint(file)
    file.write_bytes(b"abd")
    assert fingerprint(file) != first
    file.write_bytes(b"abc")
    assert fingerprint(file) == first
    assert first.startswith("3 bytes, ")
    with pytest.raises(FileNotFoundError):
        fingerprint(tmp_path / "b")


def test_of_a_large_file_parts_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["bough.store.fingerprint"]
    monkeypatch.setattr(module, "WHOLE_BYTES", 3 * MIB)
    monkeypatch.setattr(module, "PARTS", 3)
    file, data = tmp_path / "large", bytearray(9 * MIB)
    file.write_bytes(data)
    found = {0: fingerprint(file)}
    for place in (1, 4 * MIB + 1, 9 * MIB - 1, 2 * MIB):
        changed = data.copy()
        changed[place] = 1
        file.write_bytes(changed)
        found[place] = fingerprint(file)
    assert len({found[place] for place in (0, 1, 4 * MIB + 1, 9 * MIB - 1)}) == 4
    assert found[2 * MIB] == found[0], "between the parts"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "b" / "two").write_text("3"),
        lambda folder: (folder / "one").rename(folder / "uno"),
        lambda folder: (folder / "b" / "two").unlink(),
        lambda folder: (folder / "three").touch(),
    ],
)
def test_a_folder(change: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "one").write_text("1")
    (tmp_path / "b" / "two").write_text("2")
    first = fingerprint(tmp_path)
    assert fingerprint(tmp_path) == first
    change(tmp_path)
    assert fingerprint(tmp_path) != first


def test_of_a_run_the_checkpoints_count(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "config.json").write_text("{}")
    first = fingerprint(tmp_path)
    (tmp_path / "report.html").write_text("read again")
    assert fingerprint(tmp_path) == first
    (tmp_path / "checkpoints" / "weights").write_text("1")
    assert fingerprint(tmp_path) != first
