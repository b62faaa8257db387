"""The client of models: what fails is a verdict and never a value, and equal questions are one."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.explore.stage import STOP, Letters

from bough.ask import Answer, NumberParser, Query, QuerySettings, VoteSettings
from bough.ask.answer import mean_entry
from bough.ask.query import QueryClient
from bough.engine import InjectedFault, Request, Sampling, Scripted
from bough.rollout import Deadlines, Limits, RoleModel
from bough.rollout.budget import Budget, BudgetExceeded
from bough.rollout.model_client import ModelClient
from bough.store.answers import Answers
from bough.tree import StageError, Verdict

Script = Callable[[Request], "tuple[int, ...] | InjectedFault"]


def letters(text: str) -> tuple[int, ...]:
    return (*map(ord, text), STOP)


def client(script: Script, *, context_tokens: int = 1000, **how: object) -> tuple[ModelClient, Scripted]:
    engine = Scripted(script=script, context_tokens=context_tokens)
    model = RoleModel(engine=engine, renderer=Letters(), name="m")
    made = ModelClient(model=lambda _: model, sampling=Sampling(max_tokens=9), deadlines=Deadlines(), seed=1, **how)  # type: ignore[arg-type]
    return made, engine


@pytest.mark.parametrize(
    ("said", "verdict", "value", "final"),
    [
        (letters("8"), Verdict.OK, 0.8, False),
        (letters("well"), Verdict.UNPARSED, None, False),
        (InjectedFault.SILENCE, Verdict.LATE, None, False),
        (InjectedFault.FAULT, Verdict.REFUSED, None, False),
        (InjectedFault.ABORTED, Verdict.REFUSED, None, False),
    ],
)
def test_an_answer_has_a_value_only_with_the_verdict_ok(
    said: tuple[int, ...] | InjectedFault, verdict: Verdict, value: float | None, final: bool
) -> None:
    ask, _ = client(lambda _: said)
    assert isinstance(ask, QueryClient)
    answer = asyncio.run(ask(Query(prompt="how good?", read=NumberParser(), deadline_s=0.1)))
    assert (answer.verdict, answer.value, answer.final) == (verdict, value, final)
    assert len(answer.texts) == 1, "for people"


def test_a_question_beyond_the_context_is_refused_for_good_and_not_sent() -> None:
    ask, engine = client(lambda _: letters("8"), context_tokens=8)
    answer = asyncio.run(ask(Query(prompt="how good is it?", read=NumberParser())))
    assert (answer.verdict, answer.final, engine.requests) == (Verdict.REFUSED, True, [])
    assert "shorten the question" in answer.texts[0]


def test_votes_without_a_value_leave_the_mean() -> None:
    said = iter([letters("8"), InjectedFault.FAULT, letters("hm"), letters("4")])
    ask, engine = client(lambda _: next(said))
    answer = asyncio.run(ask(Query(prompt="?", read=NumberParser(), n=4)))
    assert (answer.verdict, sorted(answer.values)) == (Verdict.OK, [0.4, 0.8])
    entry = mean_entry(answer)
    assert (entry.value, entry.votes, entry.questions) == (pytest.approx(0.6), 2, 4)
    assert len({request.seed for request in engine.requests}) == 4


def test_a_value_without_the_verdict_can_not_be_made() -> None:
    for verdict, values in ((Verdict.LATE, (0.5,)), (Verdict.OK, ())):
        with pytest.raises(StageError, match=r"Answer: got \d values with the verdict"):
            Answer(verdict=verdict, values=values)


def test_equal_questions_are_sent_once_and_named_ones_each(tmp_path: Path) -> None:
    store = Answers(tmp_path / "a.jsonl")
    ask, engine = client(lambda _: letters("8"), answers=store)
    query = Query(prompt="?", read=NumberParser())

    async def both() -> None:
        await asyncio.gather(ask(query), ask(query))

    asyncio.run(both())
    asyncio.run(ask(query))
    assert len(engine.requests) == 1
    for name in ("a", "b"):
        asyncio.run(ask(Query(prompt="?", read=NumberParser(), name=(name,))))
    assert len({request.seed for request in engine.requests}) == 3
    again, other = client(lambda _: letters("1"), answers=Answers(tmp_path / "a.jsonl"))
    assert asyncio.run(again(query)).value == 0.8
    assert not other.requests, "nor after a resume"


def test_a_question_is_paid_for_or_not_sent() -> None:
    budget = Budget(Limits(tree_calls=1, tree_tokens=20))
    ask, engine = client(lambda _: letters("8"), budget=budget)
    asyncio.run(ask(Query(prompt="?", read=NumberParser())))
    assert (budget.spent.calls, budget.spent.tokens) == (1, 2)
    with pytest.raises(BudgetExceeded, match="tree_calls"):
        asyncio.run(ask(Query(prompt="again?", read=NumberParser())))
    assert len(engine.requests) == 1


def test_settings_stand_once() -> None:
    ask, engine = client(lambda _: letters("8"))
    piece = VoteSettings(role="judge", max_tokens=5, temperature=0.5, n=2)
    asyncio.run(ask(piece.query("?", NumberParser(), n=piece.n)))
    assert {(each.sampling.max_tokens, each.sampling.temperature) for each in engine.requests} == {(5, 0.5)}
    asyncio.run(ask(QuerySettings().query("?", NumberParser())))
    assert engine.requests[-1].sampling == ask.sampling
    assert [need.name for need in piece.needs] == ["judge"]  # type: ignore[attr-defined]
    assert not QuerySettings().needs
    for field, value in (("max_tokens", 0), ("temperature", -1.0), ("temperature", float("nan")), ("deadline_s", 0.0)):
        with pytest.raises(ValueError, match=rf"QuerySettings\.{field}: got"):
            QuerySettings(**{field: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"VoteSettings\.n: got 0"):
        VoteSettings(n=0)
