"""The page of claims: each figure stands in the page that measured it, and each verdict follows from it."""

import re

import numpy as np
import pytest

from claims import DOCS, ROW, holm, judge, p_value

ROWS = [found for line in (DOCS / "claims.md").read_text().splitlines() if (found := ROW.match(line))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["claim"][:40])
def test_a_figure_is_that_of_its_page(row: re.Match[str]) -> None:
    page = " ".join((DOCS / row["page"]).read_text().replace("*", "").split())
    assert row["figure"].replace("*", "").lower() in page.lower()


def test_the_page_has_claims() -> None:
    assert len(ROWS) >= 20


def test_a_verdict_follows_from_its_table() -> None:
    judged = list(judge((DOCS / "claims.md").read_text()))
    assert len(judged) >= 20
    wrong = [
        f"{each.claim}: {each.stated}; need {each.verdict}" for each in judged if not _agree(each.stated, each.verdict)
    ]
    assert not wrong, wrong


def _agree(stated: str, verdict: str) -> bool:
    return stated.startswith(verdict) and ("uncorrected" in verdict or "uncorrected" not in stated)


def test_the_correction_and_the_p_value_of_an_interval() -> None:
    assert holm(np.asarray([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])
    assert p_value("+2.8 (+0.0 to +5.6)", 5) == pytest.approx(0.05, abs=1e-3), "an interval that touches 0"
    assert p_value("+0.0 (+0.0 to +0.0)", 5) == 1
