"""The files that a module consists of."""

import sys
from pathlib import Path

import numpy as np

from bough.usercode import load_module
from bough.usercode.sources import source_files


def test_local_imports_at_any_depth(tmp_path: Path) -> None:
    files = {
        "piece.py": "import json, numpy, helper_of_piece\n\ndef late():\n    from package_of_piece.inner import deep\n",
        "helper_of_piece.py": "from package_of_piece import side\nimport helper_of_piece  # a circle\n",
        "package_of_piece/__init__.py": "",
        "package_of_piece/side.py": "from . import beside\n",
        "package_of_piece/beside.py": "x = 1\n",
        "package_of_piece/inner/__init__.py": "",
        "package_of_piece/inner/deep.py": "from ..below import y\nfrom ... import beyond\n",
        "package_of_piece/below.py": "y = 1\n",
        "unrelated.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        module = load_module(tmp_path / "piece.py")
        expected = sorted(tmp_path / name for name in files if name != "unrelated.py")
        assert source_files([module, np, sys]) == expected
        assert source_files(files=[tmp_path / "piece.py"]) == expected
    finally:
        for name in [name for name in sys.modules if "of_piece" in name]:
            del sys.modules[name]
        sys.path.remove(str(tmp_path))


def test_a_file_that_is_no_python_is_itself(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def (")
    assert source_files(files=[tmp_path / "broken.py"]) == [tmp_path / "broken.py"]
