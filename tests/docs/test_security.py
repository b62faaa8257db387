"""The page of security: each promise names a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_promise_names_its_test() -> None:
    rows = re.findall(r"^\| (?!Promise)(.+) \| (.+) \| (.+) \|$", (ROOT / "docs" / "security.md").read_text(), re.M)
    for promise, _, cell in rows:
        named = re.findall(r"`(tests/\w[\w/]*\.py)::(\w+)`", cell)
        assert named, f"{promise}: got {cell}; need `tests/FILE.py::TEST`"
        for file, test in named:
            assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.M), f"{file} has no {test}"
