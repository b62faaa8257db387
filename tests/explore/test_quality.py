"""What an action is worth before it is done."""

import asyncio
import math
from dataclasses import dataclass

import pytest
from tests.explore.stage import World, runner, scripted
from tests.rollout.test_writing import play, written

from bough.ask import NumberParser
from bough.engine import InjectedFault, Scripted
from bough.env import InProcessHost
from bough.explore import EarlyAnswerBonus, FormatScore, LlmJudge, OracleMatch, Quality
from bough.explore.quality import rate
from bough.rollout import Cursor, Limits, PendingAction, Rollout, Usage
from bough.tree import Task
from bough.worlds.frozenlake import FrozenLake

LAKE = Task(id="lake", data={"rows": ["SF", "HG"]})


def found(quality: Quality, *actions: str) -> list[float | None]:
    """What the quality says of actions at the beginning of a lake, where right and then down is the way."""
    said: list[float | None] = []

    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        for branch, action in enumerate(actions):
            draft = rollout.force_tokens(root, [*map(ord, action), 0], branch=branch)
            said.append(await quality(rollout, draft))

    play(runner(scripted(lambda _: "a"), InProcessHost(env=FrozenLake(size=2))), script, LAKE)
    return said


def test_form_and_meaning() -> None:
    assert found(FormatScore(), "right", " down ", "jump") == [2.0, 2.0, 1.0]


def test_where_nobody_knows_what_has_a_meaning_the_form_decides() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        assert await FormatScore()(rollout, await written(rollout, root)) == 2.0
        assert await FormatScore()(rollout, await written(rollout, root, branch=1)) == 1.0

    texts = iter(["b", "bbbbbbbbbbbbbbb"])
    play(runner(scripted(lambda _: next(texts)), InProcessHost(env=World())), script)


def test_an_oracle_advises() -> None:
    assert found(OracleMatch(), "right", "down", "up", "jump") == [1.0, 0.0, 0.0, -1.0]


def test_an_oracle_that_knows_no_way_says_nothing() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        lost = await rollout.advance(root, action="b")
        assert not isinstance(lost, int)
        assert await OracleMatch()(rollout, await written(rollout, lost)) is None

    play(runner(scripted(lambda _: "a")), script)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """Everything is worth the same."""

    value: float | None

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        del rollout, draft
        return self.value


def test_an_early_answer_is_worth_more() -> None:
    """The golden case: thought 1, answer 1, at turn 2 of 4."""
    early = EarlyAnswerBonus(quality=Flat(value=2.0), answer="a")
    said: list[float | None] = []

    async def script(rollout: Rollout) -> None:
        place = await rollout.root()
        for _ in range(6):
            said.append(await early(rollout, rollout.force_tokens(place, [ord("a"), 0], branch=1)))
            other = rollout.force_tokens(place, [ord("b"), 0], branch=2)
            assert await early(rollout, other) == 2.0
            place = await rollout.advance(place)  # type: ignore[assignment]

    play(runner(scripted(lambda _: "b"), InProcessHost(env=World(length=9))), script)
    assert said == pytest.approx([2.075, 2.05, 2.025, 2.0, 2.0, 2.0])
    assert asyncio.run(EarlyAnswerBonus(quality=Flat(value=None), answer="")(None, None)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "score"), [("good", 1.0), ("Bad!", -1.0), ("it is unclear", 0.0), ("not bad, good", 1.0), ("7", None)]
)
def test_a_judge_says_what_an_action_is_worth(answer: str, score: float | None) -> None:
    engine = scripted(lambda _: answer)

    async def script(rollout: Rollout) -> None:
        draft = rollout.force_tokens(await rollout.root(), [*map(ord, "{turns}"), 0])
        assert await rate(rollout, LlmJudge(prompt="{observation} then {action}?"), draft) == score
        rating = rollout.builder.nodes[draft.node].rating
        assert score is None if math.isnan(rating) else rating == score
        assert rollout.budget.spent == Usage(tokens=len(answer) + 1, calls=1)

    play(runner(engine, max_tokens=20), script)
    (request,) = engine.requests
    assert "".join(map(chr, request.prompt_tokens)).endswith("{. then {turns}?}"), "what was written is not filled in"


def test_a_judge_is_told_what_a_judge_of_a_search_is_told() -> None:
    engine = scripted(lambda _: "3")

    async def script(rollout: Rollout) -> None:
        place = await rollout.advance(await rollout.root(), action="a")
        assert isinstance(place, Cursor)
        judge = LlmJudge(prompt="{instructions}|{turns}|{observation}|{action}", read=NumberParser(low=1.0, high=5.0))
        assert await rate(rollout, judge, rollout.force_tokens(place, [ord("b"), 0])) == 0.5

    play(runner(engine), script)
    (request,) = engine.requests
    assert "".join(map(chr, request.prompt_tokens)).endswith("{go|.\n> a|a|b}")


def test_two_actions_are_two_questions() -> None:
    engine = scripted(lambda _: "1")

    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        for branch in (0, 1):
            await rate(rollout, LlmJudge(), rollout.force_tokens(root, [ord("a"), 0], branch=branch))

    play(runner(engine), script)
    assert len({request.seed for request in engine.requests}) == 2


def test_a_judge_that_breaks_or_is_too_dear_says_nothing() -> None:
    async def script(rollout: Rollout) -> None:
        draft = rollout.force_tokens(await rollout.root(), [ord("a"), 0])
        assert await rate(rollout, LlmJudge(), draft) is None
        assert math.isnan(rollout.builder.nodes[draft.node].rating)

    play(runner(Scripted(script=lambda _: InjectedFault.FAULT)), script)
    play(runner(scripted(lambda _: "1"), limits=Limits(tree_tokens=3)), script)


def test_ranges() -> None:
    with pytest.raises(ValueError, match=r"LlmJudge\.prompt: got the placeholders \['done'\]; need some of"):
        LlmJudge(prompt="{done}")
    with pytest.raises(ValueError, match=r"EarlyAnswerBonus\.turns: got 0; need at least 1"):
        EarlyAnswerBonus(quality=FormatScore(), answer="", turns=0)
