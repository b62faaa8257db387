import pickle
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
import torch

from bough.usercode import load, load_module
from bough.usercode.load import loaded_files, unpickle

PIECE = """
from dataclasses import dataclass
import neighbour_of_piece

@dataclass(frozen=True)
class Piece:
    size: int = neighbour_of_piece.SIZE
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my-piece.py").write_text(PIECE)
    (tmp_path / "neighbour_of_piece.py").write_text("SIZE = 3")
    return tmp_path


def test_a_file_is_run_once_and_what_it_defines_can_be_pickled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_module(folder / "my-piece.py")
    monkeypatch.chdir(folder)
    assert load_module(Path("my-piece.py")) is module
    assert module.__name__.startswith("bough_user_my_piece_")
    assert sys.modules[module.__name__] is module
    assert pickle.loads(pickle.dumps(module.Piece(4))) == module.Piece(4)
    assert loaded_files()[module.__name__] == str(folder / "my-piece.py")


def test_another_process_unpickles_it_from_the_path(folder: Path) -> None:
    module = load_module(folder / "my-piece.py")
    code = """
import sys
from bough.usercode.load import unpickle
blob, name, path = sys.argv[1:]
print(unpickle(bytes.fromhex(blob), {name: path}))
"""
    blob = pickle.dumps(module.Piece(5)).hex()
    argv = [sys.executable, "-c", code, blob, module.__name__, str(folder / "my-piece.py")]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == "Piece(size=5)"


def test_torch_loads_it_from_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_module(folder / "my-piece.py")
    blob, files = BytesIO(), loaded_files()
    torch.save({"piece": module.Piece(6), "weight": torch.ones(2)}, blob)
    monkeypatch.delitem(sys.modules, module.__name__)
    blob.seek(0)
    found = torch.load(blob, weights_only=False, pickle_module=load, files=files)
    assert repr(found["piece"]) == "Piece(size=6)"
    assert found["weight"].tolist() == [1, 1]


def test_a_file_that_fails_leaves_no_half_module(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise ZeroDivisionError")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            load_module(tmp_path / "broken.py")


def test_what_is_no_python_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    for name in ("notes.txt", "absent.py", ""):
        with pytest.raises(ValueError, match=r"load_module: got .*; need a Python file"):
            load_module(tmp_path / name)


def test_what_is_importable_needs_no_file() -> None:
    assert unpickle(pickle.dumps(Path("a")), {}) == Path("a")
