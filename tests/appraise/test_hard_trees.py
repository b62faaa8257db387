"""Every appraiser on trees that are rare, with answers of any form: no crash, and finite values or a verdict."""

import asyncio
import dataclasses
import inspect
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.appraise.test_appraisers import RUBRIC, appraised, asker, says
from tests.reward.test_hard_groups import GROUPS

from bough import appraise
from bough.appraise import Appraiser, Checklist, OfSeat
from bough.engine import Request
from bough.engine.scripted import Reply
from bough.needs import Appraised, gives_of, names_of
from bough.reward import Judged, compute_rewards
from bough.tree import Verdict, fail_unknown

DATA: Mapping[str, object] = {
    "answer": "a",
    "answers": ["a"],
    "facts": ["a", "b"],
    "goal": "a",
    "checklist": ["a", "b"],
}
ANSWERS = ("5", "yes", "1, 2", "2", "hm", "1" * 5000, "", "-1", "1. a\n2: b", "1: a", "none", "30%", "1e999", "a")
REPLAYS = {"StateProgress"}
"""Appraisers that replay states in an environment."""


def pieces() -> dict[str, type]:
    found = {name: getattr(appraise, name) for name in appraise.__all__}
    return {
        name: piece
        for name, piece in found.items()
        if inspect.isclass(piece) and dataclasses.is_dataclass(piece) and hasattr(piece, "appraise")
        if name not in REPLAYS
    }


def built(piece: type) -> Appraiser:
    if piece is OfSeat:
        return OfSeat(appraiser=Checklist(role="judge"), seat="agent")
    needed = [each.name for each in dataclasses.fields(piece) if each.name == "prompt" and each.default == ""]
    return piece(**dict.fromkeys(needed, RUBRIC), **({"role": "judge"} if "role" in piece.__annotations__ else {}))


def any_answer(request: Request) -> Reply:
    return says(random.Random(request.seed).choice(ANSWERS))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", pieces())
def test_an_appraiser_on_hard_trees(name: str, group: str, tmp_path: Path) -> None:
    piece = built(pieces()[name])
    trees = [replace(tree, task=replace(tree.task, data={**tree.task.data, **DATA})) for tree in GROUPS[group]]
    ask, _ = asker(any_answer, tmp_path)
    found = appraised(trees, ask, piece)
    assert len(found) == len(trees)
    for column in names_of(gives_of(piece), Appraised):
        for tree in found:
            values = tree.appraisals[column]
            assert np.isfinite(values.value[values.verdict == Verdict.OK]).all()
        compute_rewards([fail_unknown(tree, [column]) for tree in found], [Judged(column=column)])


def test_weights_of_items_are_finite(tmp_path: Path) -> None:
    task = replace(GROUPS["one path"][0].task, data={"checklist": [{"item": "a", "weight": float("inf")}]})
    ask, _ = asker(any_answer, tmp_path)
    with pytest.raises(ValueError, match="finite 'weight' of 0 or more"):
        appraised([replace(GROUPS["one path"][0], task=task)], ask, Checklist(role="judge"))


def test_nothing_is_asked_of_an_empty_group(tmp_path: Path) -> None:
    ask, engine = asker(any_answer, tmp_path)
    for piece in pieces().values():
        asyncio.run(built(piece).appraise([], ask))
    assert not engine.requests
