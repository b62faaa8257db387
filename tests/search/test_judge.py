# ruff: noqa: ARG001, ARG002
"""Values and ratings that an engine says."""

import math

import pytest
from tests.explore.stage import World
from tests.search.talk import actions, answer, letter, questions, search, talk

from bough.engine import InjectedFault, Scripted
from bough.env import InProcessHost
from bough.rollout import Limits
from bough.search import (
    Agreement,
    BeamWidth,
    Best,
    CommitToExecuted,
    Confidence,
    EnvReturn,
    ExecuteAndEvaluate,
    Judge,
    JudgeAction,
    Level,
    Mix,
    Pairwise,
    Ranked,
    Sample,
    Search,
)
from bough.tree import Source


def test_a_prompt_has_no_place_that_nobody_fills() -> None:
    with pytest.raises(ValueError, match=r"Judge\.prompt: got the placeholders \['action'\]; need some of"):
        Judge(prompt="{action}")
    with pytest.raises(ValueError, match=r"JudgeAction\.prompt: got '\{' .*; need braces in pairs"):
        JudgeAction(prompt="{")
    with pytest.raises(ValueError, match=r"Judge\.n: got 0"):
        Judge(n=0)


@pytest.mark.parametrize("liked", ["a", "b"])
def test_a_search_goes_where_the_judge_says(liked: str) -> None:
    """The judge likes a letter: a beam of one goes there, though the environment pays for the other."""
    engine = talk(letter, lambda read: "yes" if read.rpartition("> ")[2].startswith(liked) else "no")
    beam = Search(
        select=Level(),
        expand=Sample(width=8),
        evaluate=Judge(),
        prune=(BeamWidth(width=1),),
        eager=True,
        success_value=None,
    )
    tree = search(engine, beam)
    assert answer(tree) == liked * 3


def test_a_judge_reads_what_happened_and_each_answer_is_a_call() -> None:
    engine = talk(lambda *_: "a", lambda read: "yes" if "{.}" not in read else "no")
    judge = Judge(n=3, prompt="{instructions}|{turns}|{observation}", system="J", max_tokens=5)
    tree = search(engine, Search(select=Best(), expand=Sample(width=1), evaluate=judge, success_value=None, rounds=4))
    assert questions(engine) == (
        ["{J: }{go||.}"] * 3 + ["{J: }{go|.\n> a|a}"] * 3 + ["{J: }{go|.\n> a\na\n> a|aa}"] * 3
        + ["{J: }{go|.\n> a\na\n> a\naa\n> a|aaa}"] * 3
    )  # fmt: skip
    assert len({request.seed for request in engine.requests}) == len(engine.requests), "samples, not repetitions"
    cost = tree.counts
    assert cost.calls == len(engine.requests) == 12 + 3
    assert answer(tree) == "aaa", "the end is judged, too"


def test_the_mean_of_answers() -> None:
    said = iter(["yes", "On track.", "no"])
    engine = talk(lambda *_: "a", lambda _: next(said))
    tree = search(engine, Search(select=Best(), evaluate=Judge(n=3), rounds=1))
    assert tree.info[0]["score"] == 0.5


@pytest.mark.parametrize(
    ("said", "score", "unanswered", "faults"),
    [
        (["well", "yes"], 1.0, None, None),
        (["hm", "dunno"], None, 1, None),
        ([InjectedFault.FAULT, "no"], 0.0, None, 1),
        ([InjectedFault.FAULT, InjectedFault.ABORTED], None, 1, 2),
    ],
)
def test_what_can_not_be_read_is_asked_again_once_and_then_lost(
    said: list[str | InjectedFault], score: float | None, unanswered: int | None, faults: int | None
) -> None:
    answers = iter(said)
    engine = talk(lambda *_: "a", lambda _: next(answers))
    tree = search(engine, Search(select=Best(), expand=Sample(width=1), evaluate=Judge(), rounds=1, failure_value=-1.0))
    info = tree.info[0]
    assert (info.get("score"), tree.counts.unanswered, info.get("faults")) == (score, unanswered or 0, faults)
    assert tree.counts.unjudged == (unanswered or 0)
    assert len(questions(engine)) == 2
    assert len({request.seed for request in engine.requests[:2]}) == 2, "the second time it is drawn anew"


def test_a_budget_ends_a_judgement_and_the_search() -> None:
    for calls in range(1, 12):
        engine = talk(letter, lambda _: "on track")
        tree = search(
            engine,
            Search(select=Level(), expand=Sample(width=2), evaluate=Judge(n=2), eager=True),
            limits=Limits(tree_calls=calls),
        )
        assert len(engine.requests) == calls
        assert tree.answer.sum() == 1


def test_actions_are_judged_before_they_are_carried_out() -> None:
    def judge(read: str) -> str:
        return "yes" if "next:\nb\n" in read else "no"

    engine = talk(letter, judge)
    thinker = Search(
        select=Level(),
        expand=Sample(width=8),
        rate=JudgeAction(),
        eager=True,
        max_evaluated=1,
        prune=(CommitToExecuted(),),
    )
    tree = search(engine, thinker)
    assert answer(tree) == "bbb"
    found = actions(tree)
    assert {found["a"]["rating"], found["b"]["rating"]} == {0.0, 1.0}
    assert tree.counts.turns == 3, "one path"


def three(read: str, luck: object) -> str:
    return luck.choice("abc")  # type: ignore[attr-defined]


def test_a_ranking_is_one_question() -> None:
    def rank(read: str) -> str:
        lines = [line for line in read.splitlines() if line[1:3] == ". "]
        order = sorted(lines, key=lambda line: "bca".index(line[3]))
        return ", ".join(line[0] for line in order)

    engine = talk(three, rank)
    tree = search(engine, Search(select=Best(), expand=Sample(width=20), rate=Ranked(), rounds=1))
    found = actions(tree)
    assert {action: found[action]["rating"] for action in "abc"} == {"b": 1.0, "c": 0.5, "a": 0.0}
    assert len(questions(engine)) == 1


def test_a_ranking_without_an_answer_rates_none() -> None:
    engine = talk(three, lambda _: "1")
    tree = search(engine, Search(select=Best(), expand=Sample(width=20), rate=Ranked(), rounds=1, failure_value=-1.0))
    assert all(math.isnan(actions(tree)[action]["rating"]) for action in "abc")
    assert (tree.counts.unanswered, tree.counts.unjudged) == (1, 3)


def test_pairs_are_compared_in_both_orders() -> None:
    """An engine that always prefers what comes first rates all the same; one that knows rates by wins."""
    for answers, expected in ((lambda _: "1", {"a": 0.5, "b": 0.5, "c": 0.5}), (None, {"b": 1.0, "c": 0.5, "a": 0.0})):

        def better(read: str) -> str:
            lines = [line for line in read.splitlines() if line[1:3] == ". "]
            return min(lines, key=lambda line: "bca".index(line[3]))[0]

        engine = talk(three, answers or better)
        tree = search(engine, Search(select=Best(), expand=Sample(width=20), rate=Pairwise(), rounds=1))
        assert {action: actions(tree)[action]["rating"] for action in "abc"} == expected
        assert len(questions(engine)) == 6


def test_one_action_needs_no_comparison() -> None:
    engine = talk(lambda *_: "a", lambda _: "never asked")
    for rate in (Ranked(), Pairwise()):
        tree = search(engine, Search(select=Best(), rate=rate, rounds=1))
        assert actions(tree)["a"]["rating"] == 1.0
    assert not questions(engine)


def test_values_are_mixed() -> None:
    engine = talk(lambda *_: "a", lambda _: "on track")
    mix = Mix(parts=(Judge(), Agreement(), EnvReturn()), weights=(0.5, 0.25, 2.0))
    tree = search(engine, Search(select=Level(), expand=Sample(width=2), evaluate=mix, eager=True, success_value=None))
    assert actions(tree)["a"]["score"] == 0.5 * 0.5 + 0.25
    assert actions(tree)["aaa"]["score"] == 0.5 * 0.5 + 0.25 + 2 * 3
    with pytest.raises(ValueError, match="Mix: got 1 parts and 2 weights"):
        Mix(parts=(Judge(),), weights=(1.0, 2.0))


def test_agreement_is_the_share_of_what_was_written() -> None:
    engine = talk(letter, lambda _: "no")
    tree = search(engine, Search(select=Level(), expand=Sample(width=5), evaluate=Agreement(), eager=True, rounds=1))
    found = actions(tree)
    copies = {action: found[action]["copies"] for action in "ab"}
    assert sum(copies.values()) == 5
    assert {action: found[action]["score"] for action in "ab"} == {action: copies[action] / 5 for action in "ab"}


def test_looking_carries_out_and_the_ends_that_it_finds_count() -> None:
    """In a world of one turn a rating that looks finds the success, which then is the answer, eager or not."""
    for eager in (False, True):
        engine = talk(letter, lambda _: "no")
        look = Search(
            select=Best(),
            expand=Sample(width=8),
            rate=ExecuteAndEvaluate(evaluate=Judge()),
            eager=eager,
            max_evaluated=1 if eager else None,
        )
        tree = search(engine, look, host=InProcessHost(env=World(length=1)))
        assert answer(tree) == "a"
        assert tree.counts.turns == 2
        assert not questions(engine), "what an end is worth the search knows"
        assert {each["source"] for each in actions(tree).values()} == {Source.SAMPLED}


class Sure:
    """An engine that is sure of an answer where it can be seen that b was done, by so much."""

    def __init__(self, inner: Scripted, sure: float) -> None:
        self.inner, self.sure = inner, sure
        self.scored: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        read, said = ("".join(map(chr, tokens)) for tokens in (prompt_tokens, continuation_tokens))
        self.scored.append(said)
        good = read.rpartition("> ")[2].startswith("b") == (said == "yes")
        return tuple(-0.5 if good else -0.5 - self.sure / len(said) for _ in said)


@pytest.mark.parametrize("sure", [math.log(3), 2000.0])
def test_confidence_needs_no_words(sure: float) -> None:
    """Each letter costs .5, of which yes has one more than no; so sure is the engine besides."""
    engine = Sure(talk(letter, lambda _: "never asked"), sure)
    beam = Search(
        select=Level(),
        expand=Sample(width=8),
        evaluate=Confidence(),
        prune=(BeamWidth(width=1),),
        eager=True,
        success_value=None,
    )
    tree = search(engine, beam)  # type: ignore[arg-type]
    assert answer(tree) == "bbb"
    found = actions(tree)
    assert found["b"]["score"] == pytest.approx(1 / (1 + math.exp(min(700, 0.5 - sure))))
    assert found["a"]["score"] == pytest.approx(1 / (1 + math.exp(min(700, 0.5 + sure))))
    assert not questions(engine.inner)
    assert tree.counts.calls == 3 * (8 + 2 * 2)
    assert set(engine.scored) == {"yes", "no"}, "without a stop token"


def test_confidence_needs_two_words() -> None:
    with pytest.raises(ValueError, match=r"Confidence: got yes='no', no='no'"):
        Confidence(yes="no")
