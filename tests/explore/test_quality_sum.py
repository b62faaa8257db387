"""A thought and an action, judged apart by a model of its own."""

from dataclasses import replace

import pytest
from tests.explore.stage import STOP, Letters, World, runner, scripted
from tests.rollout.test_writing import play

from bough.cli.find import find_run
from bough.context import Plain, Tagged
from bough.engine import Request, Scripted
from bough.env import InProcessHost
from bough.explore import LlmJudge, Quality, QualitySum, Slate, slate_judge
from bough.rollout import PendingAction, RoleModel, Rollout
from bough.tree import Kind


def judge(request: Request) -> tuple[int, ...]:
    """A thought with a reason is good, any other is bad; the action `a` is good, `b` is unclear."""
    read = "".join(chr(token) for token in request.prompt_tokens if token != STOP)
    if "It thinks" in read:
        return tuple(map(ord, "good" if "It thinks:\nso\n" in read else "bad"))
    return tuple(map(ord, "good" if "next:\na\n" in read else "unclear"))


def scores(quality: Quality, *texts: str, tagged: bool = True) -> tuple[list[float | None], Scripted, Scripted]:
    """The scores of candidates, with the engines of the policy and of the judge."""
    own, other = scripted(lambda _: "good"), Scripted(script=judge)
    found: list[float | None] = []

    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        for branch, text in enumerate(texts):
            found.append(await quality(rollout, rollout.force_tokens(root, [*map(ord, text), STOP], branch=branch)))

    place = runner(own, InProcessHost(env=World()), max_tokens=60)
    models = {"judge": RoleModel(engine=other, renderer=Letters(), name="judge")}
    parser = Tagged() if tagged else Plain()
    place = replace(place, agent=replace(place.agent, models=models, parser=parser))
    play(place, script)
    return found, own, other


def test_thought_and_action_are_scored_apart_and_added_by_the_judges_own_engine() -> None:
    texts = [f"{thought} <action>{action}</action>" for thought in ("so", "") for action in "ab"]
    found, own, other = scores(slate_judge("judge"), *texts)
    assert found == [2.0, 1.0, 1.0, 0.0]
    assert not own.requests
    assert len(other.requests) == 6, "an action without a thought has one question"


def test_without_marks_the_thought_stands_before_the_action() -> None:
    found, *_ = scores(slate_judge("judge"), "a", tagged=False)
    assert found == [1.0], "no thought, and a good action"


@pytest.mark.parametrize("text", ["<action>a</action>", " \n<action>a</action>"])
def test_a_thought_that_is_empty_is_not_judged(text: str) -> None:
    quality = LlmJudge(prompt="It thinks:\n{thought}\n", role="judge", without_thought=-2.0)
    found, _, other = scores(quality, text, f"so{text}")
    assert found == [-2.0, 1.0]
    assert len(other.requests) == 1


def test_a_part_without_a_score_leaves_none() -> None:
    class Unknown:
        async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
            del rollout, draft

    found, _, other = scores(QualitySum(parts=(Unknown(), slate_judge("judge"))), "<action>a</action>")
    assert found == [None]
    assert not other.requests, "no question after it"
    with pytest.raises(ValueError, match=r"QualitySum.parts: got \(\); need at least one quality"):
        QualitySum(parts=())


def test_the_candidate_with_the_better_sum_is_executed() -> None:
    texts = iter(["so <action>b</action>", "<action>a</action>", "so <action>a</action>", "<action>b</action>"] * 9)
    own, other = scripted(lambda _: next(texts)), Scripted(script=judge)
    place = runner(own, InProcessHost(env=World(length=1)), max_tokens=60)
    models = {"judge": RoleModel(engine=other, renderer=Letters(), name="judge")}
    place = replace(place, agent=replace(place.agent, models=models, parser=Tagged()))

    async def script(rollout: Rollout) -> None:
        await Slate(quality=slate_judge("judge"), candidates=4, temperature=0.01)(rollout)
        nodes = [node for node in rollout.builder.nodes if node.kind is Kind.ACTION]
        assert [node.rating for node in nodes] == [1.0, 1.0, 2.0, 0.0]
        assert [number for number, node in enumerate(nodes) if node.valid is not None] == [2]

    play(place, script)


def test_the_method_names_what_a_bonus_needs() -> None:
    run = find_run("slate(judge=judge,answer=answer)", "search")
    assert "EarlyAnswerBonus" in repr(run.method.explorer)
    with pytest.raises(Exception, match="got answer='answer' and no judge; need judge="):
        find_run("slate(answer=answer)", "search")
