"""The verdicts of docs/claims.md, with Holm's correction for the comparisons of a table.

    python bench/claims.py

Prints a line for each claim whose figure is a cell of a table: the two-sided p-value of its difference, its value after
Holm's correction over all differences in the column, and the verdict. The figures are means over seeds with Student's
95 % interval, so the p-values follow from them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from bough.compare import holm

DOCS = Path(__file__).parents[1] / "docs"
ROW = re.compile(r"^\| (?P<claim>.+?) \| (?P<verdict>.+?) \| (?P<figure>.+?) \| \[.+?\]\((?P<page>[\w/]+\.md)\) \|$")
DIFFERENCE = re.compile(r"^([+-]\d+\.\d) \(([+-]\d+\.\d) to ([+-]\d+\.\d)\)$")
SEEDS = {"three": 3, "five": 5, "ten": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with what follows from its figure.

    Attributes:
        claim: As on the page.
        stated: The verdict of the page.
        p: Of the difference alone.
        corrected: Of the difference among those of its column.
        verdict: `held`, `refuted`, each perhaps `, uncorrected`, or `open`.
    """

    claim: str
    stated: str
    p: float
    corrected: float
    verdict: str


def p_value(figure: str, seeds: int) -> float:
    """The two-sided p-value of a mean with Student's 95 % interval."""
    found = DIFFERENCE.match(figure)
    assert found is not None
    mean, low, high = map(float, found.groups())
    error = (high - low) / 2 / student.ppf(0.975, seeds - 1)
    return 2 * float(student.sf(abs(mean) / error, seeds - 1)) if error else float(mean == 0)


def columns(page: str) -> Iterator[list[str]]:
    """The differences in each column of each table of a page."""
    table = list[list[str]]()
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            table.append([cell.strip(" *") for cell in line.strip("|").split("|")])
        elif table:
            for cells in zip(*table, strict=False):
                if differences := [cell for cell in cells if DIFFERENCE.match(cell)]:
                    yield differences
            table = []


def judge(claims: str) -> Iterator[Judged]:
    """Each claim whose figure is a difference in a table of its page, with the number of its seeds in words."""
    seeds = 0
    for row in filter(None, map(ROW.match, claims.splitlines())):
        named = re.search(rf"\b({'|'.join(SEEDS)}) seeds", row["claim"])
        seeds = SEEDS[named[1]] if named else seeds  # "the same", "there": as in the row before
        figure = row["figure"].strip("*")
        page = (DOCS / row["page"]).read_text(encoding="utf-8")
        family = next((each for each in columns(page) if figure in each), None)
        if family is None or not seeds:
            continue
        values = np.asarray([p_value(each, seeds) for each in family])
        p, corrected = values[family.index(figure)], holm(values.tolist())[family.index(figure)]
        verdict = "held" if figure.startswith("+") else "refuted"
        verdict = "open" if p >= 0.05 else verdict if corrected < 0.05 else f"{verdict}, uncorrected"
        yield Judged(claim=row["claim"], stated=row["verdict"], p=p, corrected=corrected, verdict=verdict)


if __name__ == "__main__":
    for each in judge((DOCS / "claims.md").read_text(encoding="utf-8")):
        print(f"{each.p:.4f}  {each.corrected:.4f}  {each.verdict:20}  stated: {each.stated}; {each.claim}")
