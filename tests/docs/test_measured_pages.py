"""The tables of the guide are those of their results file; a table that is older than its code has a line about it."""

import re

import pytest

from page import DOCS, SECTIONS, age, imported, sections, shown
from result_rows import ROOT, changed, read_rows

ROWS = read_rows(SECTIONS)
MARKED = {(file.name, name): text for file in DOCS.glob("*.md") for name, text in sections(file.read_text()).items()}
OWN = {("evidence.md", "no harm"), ("evidence.md", "commands")}
"""Sections with a results file of their own, whose rows have a commit each."""


def test_each_marked_table_is_a_row_of_the_results() -> None:
    written = {(row["page"], row["section"]): shown(row) for row in ROWS}
    assert written == {place: text for place, text in MARKED.items() if place not in OWN}, "do: python bench/page.py"
    assert all(re.fullmatch(r"[0-9a-f]{12}", row["commit"]) and row["sources"] for row in ROWS)


@pytest.mark.parametrize("older", [True, False])
def test_an_older_table_is_named_at_its_place(older: bool) -> None:
    text = "a\n<!-- one -->\n| 1 |\n<!-- end of one -->\n<!-- two -->\n| 2 |\n<!-- end of two -->\n"
    row = {"page": "p.md", "section": "two", "commit": "0" * 12, "sources": []}
    aged = sections(age("p.md", text, [row], lambda _: older))
    assert aged["one"] == "| 1 |"
    assert ("Older than its code" in aged["two"]) == older
    assert age("q.md", text, [row], lambda _: True) == text


def test_a_row_of_another_code_is_older() -> None:
    row = {"commit": "f" * 12, "sources": ["bench/page.py"]}
    assert changed(row), "an unknown commit"


def test_the_sources_are_the_files_that_define_what_a_script_imports() -> None:
    found = imported(ROOT / "bench" / "update.py")
    assert "src/bough/policy/tiny.py" in found
    assert all((ROOT / name).is_file() for name in found)
