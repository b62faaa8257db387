from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.missing import need

from bough.kernels.build import load_library

need("compiler")

TWICE = """
extern "C" int twice(int x) { return FACTOR * x; }
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_library.cache_clear()
    yield tmp_path / "cache" / "bough"
    load_library.cache_clear()


def _source(folder: Path, text: str = TWICE) -> Path:
    (folder / "twice.cpp").write_text(text)
    return folder / "twice.cpp"


def test_code_is_compiled_once_a_machine(tmp_path: Path, empty_cache: Path) -> None:
    source = _source(tmp_path)
    assert load_library(source, "FACTOR=2").twice(21) == 42
    (made,) = empty_cache.iterdir()
    when = made.stat().st_mtime_ns
    load_library.cache_clear()
    assert load_library(source, "FACTOR=2").twice(21) == 42
    assert [file.stat().st_mtime_ns for file in empty_cache.iterdir()] == [when]
    assert load_library(source, "FACTOR=3").twice(21) == 63
    load_library.cache_clear()
    assert load_library(_source(tmp_path, TWICE.replace("* x", "+ x")), "FACTOR=2").twice(21) == 23
    assert len(list(empty_cache.iterdir())) == 3


def test_code_that_does_not_compile_leaves_nothing_behind(tmp_path: Path, empty_cache: Path) -> None:
    with pytest.raises(OSError, match=r"failed .*twice.cpp.*FACTOR"):
        load_library(_source(tmp_path))
    assert list(empty_cache.iterdir()) == []


def test_a_home_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_library(_source(tmp_path), "FACTOR=2").twice(4) == 8
