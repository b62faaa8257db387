"""UI-R1, GUI-G1 and InfiGUI-G1 on the phone: what an action on the real screen is paid, and what the run is."""

import asyncio
from dataclasses import replace

import pytest
from tests.explore.stage import runner

from bough.cli.find import find_run
from bough.config import override
from bough.credit import TargetSize, TaskWeight, dr_grpo
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.explore import Chains
from bough.hooks import LengthHistory
from bough.objective import PpoClip
from bough.reward import Repetition, reward_trees
from bough.rollout import Limits
from bough.screen import pointing_in
from bough.train import Run
from bough.train.check import check
from bough.tree import Info, Kind, Tree
from bough.worlds.screens import Screens

PHONE = Screens(links=False, apps=2, rows=2, themes=False, boxes=True, points=True)


def played(env: Screens, write: str) -> Tree:
    """One action on the first screen of a task; {} stands for the oracle's action."""
    (task,) = env.tasks("train", 1, 0)
    plan = env.plan(env.start(task))
    assert plan
    said = write.replace("{}", str(plan[0]))
    engine = Scripted(script=lambda _: tuple(map(ord, said)), context_tokens=20000)
    place = runner(engine, InProcessHost(env=env), limits=Limits(turns=1), max_tokens=100)
    (tree,) = asyncio.run(place.run(Chains(n=1), [task], seed=0)).trees
    return tree


def pay(run: Run, tree: Tree, *channels: str) -> float:
    (rewarded,) = reward_trees([tree], run.world.rewards)
    return float(sum(rewarded.channels[name][tree.kind == Kind.ACTION].sum() for name in channels))


def test_the_table_of_ui_r1() -> None:
    """A point for the kind, one for the target, one for the format, which is the penalty plus 1."""
    run = find_run("ui_r1(weight=2)", "screens")
    far = "click 719 1279"
    (hit, miss, other) = (played(PHONE, said) for said in ("{}", far, "home"))
    assert [1 + pay(run, tree, "grounding", "format") for tree in (hit, miss, other)] == [3.0, 2.0, 1.0]
    broken = played(PHONE, "{}\nso")
    assert 1 + pay(run, broken, "grounding", "format") == 2.0
    back = replace(hit, info=tuple(_back(info) for info in hit.info))
    assert pay(run, back, "grounding") == 2.0, "an action without a target is paid for its kind"
    assert pay(find_run("ui_r1(weight=2, clicks_only=true)", "screens"), back, "grounding") == 0.0


def _back(info: Info) -> Info:
    """The info of a node whose action and correct action are both `back`."""
    found = pointing_in(info)
    if found is None:
        return info
    back = replace(found, kind="back", target_kind="back", target="", target_box=None)
    return {**info, "env": {"pointing": back.record()}}


def test_the_oracle_writes_boxes_and_points() -> None:
    boxes, points = replace(PHONE, click="box"), replace(PHONE, click="points")
    assert "box LEFT TOP RIGHT BOTTOM" in boxes.instructions
    assert pay(find_run("gui_g1(weight=1)", "screens"), played(boxes, "{}"), "box") == pytest.approx(1.375)
    assert pay(find_run("gui_g1(weight=1)", "screens"), played(boxes, "box 1 1 2 2"), "box") == 0.0
    released = find_run("gui_g1(weight=1, as_released=true)", "screens")
    assert pay(released, played(boxes, "box 1 1 2 2"), "box") > 0.05, "released code pays a clear miss"
    run = find_run("infigui_g1(weight=1)", "screens")
    assert pay(run, played(points, "{}"), "points") == 1.0
    assert pay(run, played(points, "points 719 1279"), "points") == -1.0
    assert pay(run, played(points, "points 719 1279 " + _numbers(points)), "points") == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"Screens.click: got 'box' with calls=true"):
        replace(boxes, calls=True)


def _numbers(env: Screens) -> str:
    plan = env.plan(env.start(env.tasks("train", 1, 0)[0]))
    assert plan
    return str(plan[0]).removeprefix("points ")


def test_the_runs_are_what_the_papers_describe_and_fit_a_phone_with_points() -> None:
    found = {name: find_run(name, "screens") for name in ("ui_r1", "gui_g1", "infigui_g1", "hapo", "otc")}
    for run in found.values():
        check(override(run, ["env.boxes=true", "env.points=true"]))
    assert found["gui_g1"].method.credit == TargetSize(base=dr_grpo())
    assert find_run("gui_g1(field=weight)", "screens").method.credit == TaskWeight(base=dr_grpo(), field="weight")
    assert found["gui_g1"].method.normalizer.by == "constant"
    assert found["gui_g1"].world.regularizers == found["infigui_g1"].world.regularizers == ()
    assert found["infigui_g1"].method.objective == PpoClip(high=0.4)
    assert found["infigui_g1"].method.explorer == Chains(n=8)
    hapo = find_run("hapo(weight=0.5, form=linear, history=mean, repetition=0.1, n=3)", "screens")
    assert hapo.method.hooks == (LengthHistory(weight=0.5, form="linear", history="mean"),)
    assert hapo.method.explorer == Chains(n=3)
    assert hapo.world.rewards == (*found["hapo"].world.rewards, Repetition(penalty=0.1))
    assert found["hapo"].method.hooks == (LengthHistory(),)
    assert found["otc"].method.hooks[0].actions  # type: ignore[attr-defined]
    assert not find_run("otc", "search").method.hooks[0].actions  # type: ignore[attr-defined]
    efficient = find_run("ui_r1(efficient=true)", "screens")
    assert [type(each).__name__ for each in efficient.world.rewards][-1] == "LengthBudget"
