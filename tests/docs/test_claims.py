"""The page of claims: each figure stands in the page that measured it."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| (?P<claim>.+?) \| (?P<verdict>.+?) \| (?P<figure>.+?) \| \[.+?\]\((?P<page>[\w/]+\.md)\) \|$")
ROWS = [found for line in (DOCS / "claims.md").read_text().splitlines() if (found := ROW.match(line))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["claim"][:40])
def test_a_figure_is_that_of_its_page(row: re.Match[str]) -> None:
    page = " ".join((DOCS / row["page"]).read_text().replace("*", "").split())
    assert row["figure"].replace("*", "").lower() in page.lower()


def test_the_page_has_claims() -> None:
    assert len(ROWS) >= 20
