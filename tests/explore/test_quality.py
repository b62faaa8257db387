"""What an action is worth before it is done."""

import asyncio
from dataclasses import dataclass

import pytest
from tests.explore.stage import World, grove, scripted
from tests.explore.test_writing import play, written

from bough.engine import InjectedFault, Scripted
from bough.env import FrozenLake, Inline
from bough.explore import Advised, Asked, Cost, Cursor, Draft, Early, Limits, Number, Player, Proper, Quality
from bough.explore.quality import rate
from bough.tree import Task

LAKE = Task(id="lake", data={"rows": ["SF", "HG"]})


def found(quality: Quality, *actions: str) -> list[float | None]:
    """What the quality says of actions at the beginning of a lake, where right and then down is the way."""
    said: list[float | None] = []

    async def script(player: Player) -> None:
        root = await player.root()
        for branch, action in enumerate(actions):
            draft = player.put(root, [*map(ord, action), 0], branch=branch)
            said.append(await quality(player, draft))

    play(grove(scripted(lambda _: "a"), Inline(env=FrozenLake(size=2))), script, LAKE)
    return said


def test_form_and_meaning() -> None:
    assert found(Proper(), "right", " down ", "jump") == [2.0, 2.0, 1.0]


def test_where_nobody_knows_what_has_a_meaning_the_form_decides() -> None:
    async def script(player: Player) -> None:
        root = await player.root()
        assert await Proper()(player, await written(player, root)) == 2.0
        assert await Proper()(player, await written(player, root, branch=1)) == 1.0

    texts = iter(["b", "bbbbbbbbbbbbbbb"])
    play(grove(scripted(lambda _: next(texts)), Inline(env=World())), script)


def test_an_oracle_advises() -> None:
    assert found(Advised(), "right", "down", "up", "jump") == [1.0, 0.0, 0.0, -1.0]


def test_an_oracle_that_knows_no_way_says_nothing() -> None:
    async def script(player: Player) -> None:
        root = await player.root()
        lost = await player.advance(root, action="b")
        assert not isinstance(lost, int)
        assert await Advised()(player, await written(player, lost)) is None

    play(grove(scripted(lambda _: "a")), script)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """Everything is worth the same."""

    value: float | None

    async def __call__(self, player: Player, draft: Draft) -> float | None:
        del player, draft
        return self.value


def test_an_early_answer_is_worth_more() -> None:
    """The golden case: thought 1, answer 1, at turn 2 of 4."""
    early = Early(quality=Flat(value=2.0), answer="a")
    said: list[float | None] = []

    async def script(player: Player) -> None:
        place = await player.root()
        for _ in range(6):
            said.append(await early(player, player.put(place, [ord("a"), 0], branch=1)))
            other = player.put(place, [ord("b"), 0], branch=2)
            assert await early(player, other) == 2.0
            place = await player.advance(place)  # type: ignore[assignment]

    play(grove(scripted(lambda _: "b"), Inline(env=World(length=9))), script)
    assert said == pytest.approx([2.075, 2.05, 2.025, 2.0, 2.0, 2.0])
    assert asyncio.run(Early(quality=Flat(value=None), answer="")(None, None)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "score"), [("good", 1.0), ("Bad!", -1.0), ("it is unclear", 0.0), ("not bad, good", 1.0), ("7", None)]
)
def test_a_judge_says_what_an_action_is_worth(answer: str, score: float | None) -> None:
    engine = scripted(lambda _: answer)

    async def script(player: Player) -> None:
        draft = player.put(await player.root(), [*map(ord, "{turns}"), 0])
        assert await rate(player, Asked(prompt="{observation} then {action}?"), draft) == score
        assert player.growth.nodes[draft.node].info.get("quality") == score
        assert player.ledger.spent == Cost(tokens=len(answer) + 1, calls=1)

    play(grove(engine, max_tokens=20), script)
    (request,) = engine.requests
    assert "".join(map(chr, request.prompt_tokens)).endswith("{. then {turns}?}"), "what was written is not filled in"


def test_a_judge_is_told_what_a_judge_of_a_search_is_told() -> None:
    engine = scripted(lambda _: "3")

    async def script(player: Player) -> None:
        place = await player.advance(await player.root(), action="a")
        assert isinstance(place, Cursor)
        judge = Asked(prompt="{instructions}|{turns}|{observation}|{action}", read=Number(low=1.0, high=5.0))
        assert await rate(player, judge, player.put(place, [ord("b"), 0])) == 0.5

    play(grove(engine), script)
    (request,) = engine.requests
    assert "".join(map(chr, request.prompt_tokens)).endswith("{go|.\n> a|a|b}")


def test_two_actions_are_two_questions() -> None:
    engine = scripted(lambda _: "1")

    async def script(player: Player) -> None:
        root = await player.root()
        for branch in (0, 1):
            await rate(player, Asked(), player.put(root, [ord("a"), 0], branch=branch))

    play(grove(engine), script)
    assert len({request.seed for request in engine.requests}) == 2


def test_a_judge_that_breaks_or_is_too_dear_says_nothing() -> None:
    async def script(player: Player) -> None:
        draft = player.put(await player.root(), [ord("a"), 0])
        assert await rate(player, Asked(), draft) is None
        assert "quality" not in player.growth.nodes[draft.node].info

    play(grove(Scripted(script=lambda _: InjectedFault.FAULT)), script)
    play(grove(scripted(lambda _: "1"), limits=Limits(tree_tokens=3)), script)


def test_ranges() -> None:
    with pytest.raises(ValueError, match=r"Asked\.prompt: got the places \['done'\]; need some of"):
        Asked(prompt="{done}")
    with pytest.raises(ValueError, match=r"Early\.turns: got 0; need at least 1"):
        Early(quality=Proper(), answer="", turns=0)
