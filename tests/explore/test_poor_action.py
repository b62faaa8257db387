"""The first wrong step, by a judge with an engine of its own or by the run's critic."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.explore.stage import STOP, Letters, World, runner
from tests.explore.test_correct import acts, writes
from tests.rollout.test_writing import play
from tests.small import world as small

from bough.engine import Request, Scripted
from bough.env import InProcessHost
from bough.explore import Correct, CriticQuality, FirstPoorAction, LlmJudge, Quality
from bough.methods.scope import scope
from bough.roles import CurrentPolicy
from bough.rollout import Limits, PendingAction, RoleModel, Rollout
from bough.rollout.attempt import attempt
from bough.store import read_metrics
from bough.train import Run, Warmup, start
from bough.tree import Source, counted


def blamed(text: str, rule: FirstPoorAction, judge: Scripted, limits: Limits | None = None) -> int | None:
    """The step that a rule blames on a path of these letters; states are worth the share of `a`."""
    found: list[int | None] = []

    async def critic(contexts: Sequence[tuple[int, ...]]) -> list[float]:
        read = ["".join(chr(token) for token in each if token != STOP).rpartition("}")[2] for each in contexts]
        return [1.0 if each == "a" else 0.0 for each in read]

    async def script(rollout: Rollout) -> None:
        found.append(await rule(rollout, await attempt(rollout, await rollout.root(), branch=0)))

    place = runner(writes(text), InProcessHost(env=World(length=len(text))), limits=limits or Limits(), max_tokens=20)
    models = {"judge": RoleModel(engine=judge, renderer=Letters(), name="judge")}
    play(replace(place, agent=replace(place.agent, models=models, critic=critic)), script)
    return found[0]


def says(request: Request) -> tuple[int, ...]:
    read = "".join(chr(token) for token in request.prompt_tokens if token != STOP)
    return tuple(map(ord, "bad" if "next:\nb\n" in read else "unclear" if "next:\nc\n" in read else "good"))


@pytest.mark.parametrize(("text", "step"), [("aabab", 2), ("baaaa", 0), ("acaab", 4), ("acaaa", 4)])
def test_a_judge_reads_one_step_after_another(text: str, step: int) -> None:
    judge = Scripted(script=says)
    assert blamed(text, FirstPoorAction(quality=LlmJudge(role="judge")), judge) == step
    assert len(judge.requests) == step + 1, "what follows the first wrong step is not judged"


def test_a_process_reward_model_is_the_critic() -> None:
    judge = Scripted(script=says)
    assert blamed("aabab", FirstPoorAction(quality=CriticQuality(), below=0.5), judge) == 2
    assert not judge.requests


def test_a_step_without_a_score_is_not_wrong_and_without_budget_none_is() -> None:
    class Silent:
        async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
            del rollout, draft

    judge = Scripted(script=says)
    assert blamed("bbb", FirstPoorAction(quality=Silent()), judge) == 2
    short = Limits(tree_calls=4)
    assert blamed("aab", FirstPoorAction(quality=LlmJudge(role="judge")), judge, short) is None


def test_a_stronger_engine_writes_the_rest() -> None:
    judge, teacher = Scripted(script=says), writes("aaaaa")
    models = {
        name: RoleModel(engine=each, renderer=Letters(), name=name)
        for name, each in (("judge", judge), ("teacher", teacher))
    }
    place = runner(writes("aabbb"), InProcessHost(env=World(length=5)), max_tokens=20)
    place = replace(place, agent=replace(place.agent, models=models))
    quality: Quality = LlmJudge(role="judge")
    explorer = Correct(n=1, teacher="teacher", blame=FirstPoorAction(quality=quality))

    async def script(rollout: Rollout) -> None:
        await explorer(rollout)
        rollout.finish()
        tree = rollout.builder.done()
        failed, righted = counted(tree).tolist()
        assert "".join(str(tree.info[node]["text"]) for node in acts(tree, failed)) == "aabbb"
        assert "".join(str(tree.info[node]["text"]) for node in acts(tree, righted)) == "aaaaa"
        assert [int(tree.source[node]) for node in acts(tree, righted)] == [Source.SAMPLED] * 2 + [Source.TEACHER] * 3

    play(place, script)
    assert len(teacher.requests) == 3


def learned(run: Run, tmp_path: Path) -> dict[str, float]:
    rows = read_metrics(start(run, tmp_path, terminal=False).metrics)
    return [
        {name: float(each) for name, each in row.items() if isinstance(each, int | float)}
        for row in rows
        if "loss/total" in row
    ][-1]


def test_a_run_trains_its_process_reward_model_and_the_clip_is_of_the_teachers_tokens(tmp_path: Path) -> None:
    world = small().replace(warmup=Warmup(), steps=2, batch_tasks=2)
    row = learned(scope(world, n=2, critic=True), tmp_path)
    assert row["policy/value_goal"] < 1
    assert row["policy/expert_ratio"] > 0
    with pytest.raises(ValueError, match="got judge='judge' and critic=true; need one of them"):
        scope(world, judge="judge", critic=True)
    assert scope(world, judge="judge").replace(models={"judge": CurrentPolicy()}).models
