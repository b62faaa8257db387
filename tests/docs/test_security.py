"""The page of security: each promise names a test that exists, and fails without the promise's mechanism."""

import re
from pathlib import Path

from scripts.mutants import mutations

ROOT = Path(__file__).parents[2]


def test_each_promise_names_its_test() -> None:
    rows = re.findall(r"^\| (?!Promise)(.+) \| (.+) \| (.+) \|$", (ROOT / "docs" / "security.md").read_text(), re.M)
    noticing = {test.partition("[")[0] for each in mutations(ROOT) for test in each.tests}
    for promise, _, cell in rows:
        named = re.findall(r"`(tests/\w[\w/]*\.py)::(\w+)`", cell)
        assert named, f"{promise}: got {cell}; need `tests/FILE.py::TEST`"
        for file, test in named:
            assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.M), f"{file} has no {test}"
            assert f"{file}::{test}" in noticing, f"{test}: need a mutation, see scripts/mutants/security.toml"
