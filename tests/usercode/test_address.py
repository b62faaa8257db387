"""Functions of files, found by their addresses."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from bough.usercode import address
from bough.usercode.address import address_of, find_function


def test_modules_are_searched_once_for_a_file_and_again_when_its_module_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "my_tools.py"
    file.write_text("def double(number): return 2 * number")
    looked_at = list[ModuleType]()
    is_file = address._is_file  # pyright: ignore[reportPrivateUsage]

    def watched(module: ModuleType, path: Path) -> bool:
        looked_at.append(module)
        return is_file(module, path)

    monkeypatch.setattr(address, "_is_file", watched)
    function = find_function(f"{file}:double")
    assert find_function(address_of(function)) is function
    looked_at.clear()
    assert find_function(f"{file}:double") is function
    assert [module.__name__ for module in looked_at] == [function.__module__]
    monkeypatch.delitem(sys.modules, function.__module__)
    again = find_function(f"{file}:double")
    assert again is not function
    assert again(4) == 8
    assert find_function(f"{file}:double") is again
