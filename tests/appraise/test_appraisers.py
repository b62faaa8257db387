"""Judges, comparisons and probes on grown trees, with scripted models."""

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.explore.stage import Letters, grow, runner, scripted

from bough.appraise import AnswerProbe, Appraiser, RoundRobin, RubricJudge, step_critic
from bough.appraise.two_paths import DifferentPaths
from bough.ask import Answer, NumberParser, Query
from bough.credit import Grpo
from bough.engine import InjectedFault, Request, Scripted
from bough.engine.scripted import Reply
from bough.explore import Chains
from bough.reward import EnvReward, Judged, reward_trees
from bough.rollout import Agent, Deadlines, RoleModel
from bough.search import Judge, Level, Search
from bough.store.answers import Answers
from bough.train.appraise_stage import AppraisalClient, AppraiseStage
from bough.tree import Kind, Outcome, Task, Tree, Verdict, counted, fail_unknown, keep_paths, leaves

RUBRIC = "{turns}|{observation}"


def trees(*names: str, n: int = 4) -> list[Tree]:
    return list(grow(runner(scripted(lambda rng: rng.choice("ab"))), Chains(n=n), *names).trees)


def asker(script: Callable[[Request], Reply], path: Path) -> tuple[AppraisalClient, Scripted]:
    """An `AppraisalClient` whose judge follows a script."""
    engine = Scripted(script=script)
    agent: Agent = runner(scripted(lambda _: "a")).agent
    agent = replace(agent, models={"judge": RoleModel(engine=engine, renderer=Letters(), name="scripted")})
    return AppraisalClient(
        agent=agent, answers=Answers(path / "answers.jsonl"), deadlines=Deadlines(), seed=1, step=3
    ), engine


def appraised(
    found: list[Tree], ask: AppraisalClient, *appraisers: Appraiser, required: tuple[str, ...] = ()
) -> list[Tree]:
    stage = AppraiseStage(appraisers=appraisers, required=required, ask=ask)
    return asyncio.run(stage(found))


def says(text: str) -> tuple[int, ...]:
    return (*map(ord, text), 0)


def by_seed(request: Request) -> Reply:
    """Three of ten answers are no number."""
    code = random.Random(request.seed).randrange(100)
    return says(str(code % 11)) if code >= 30 else says("hm")


def test_unparsable_answers_move_no_baseline(tmp_path: Path) -> None:
    grown = trees(n=30)
    ask, _ = asker(by_seed, tmp_path)
    # A prompt of its own for each path, so that each path has an answer of its own.
    grown = [
        replace(tree, info=tuple({**info, "text": f"{info['text']}{node}"} for node, info in enumerate(tree.info)))
        for tree in grown
    ]
    (tree,) = appraised(grown, ask, RubricJudge(prompt=RUBRIC, role="judge"), required=("judge",))
    ends, verdict = leaves(tree), tree.appraisals["judge"].verdict
    lost = ends[verdict[ends] == Verdict.UNPARSED]
    assert 3 < len(lost) < 20
    assert np.array_equal(lost, ends[tree.outcome[ends] == Outcome.FAILED])
    (rewarded,) = reward_trees([tree], (EnvReward(), Judged(weight=0.5)))
    removed = keep_paths(rewarded, counted(tree))
    for rule in (Grpo(), Grpo(mean="leave_one_out", std="none")):
        (with_them,), (without,) = rule([rewarded]), rule([removed])
        assert np.array_equal(with_them.path_advantage, without.path_advantage)
        assert not with_them.is_zero


def test_a_diagnostic_column_fails_no_path(tmp_path: Path) -> None:
    ask, _ = asker(lambda _: says("hm"), tmp_path)
    (tree,) = appraised(trees(), ask, RubricJudge(prompt=RUBRIC, role="judge"))
    assert len(counted(tree)) == 4
    assert not len(counted(fail_unknown(tree, ["judge"])))


def test_votes_leave_the_mean_one_by_one(tmp_path: Path) -> None:
    answers = iter(["8", "hm", "2", "hm", "hm"])
    ask, engine = asker(lambda _: says(next(answers)), tmp_path)
    (tree,) = appraised(trees(n=1), ask, RubricJudge(prompt=RUBRIC, role="judge", n=5))
    (leaf,) = leaves(tree)
    column = tree.appraisals["judge"]
    assert column.value[leaf] == pytest.approx(0.5)
    assert (column.votes[leaf], column.questions[leaf], column.verdict[leaf]) == (2, 5, Verdict.OK)
    assert column.tokens[leaf] == 2 + 3 + 2 + 3 + 3
    assert len({request.seed for request in engine.requests}) == 5


def test_a_question_has_the_settings_of_its_piece() -> None:
    asked: list[Query[Any]] = []

    class Noted:
        async def __call__(self, query: Query[Any]) -> Answer[Any]:
            asked.append(query)
            return Answer(verdict=Verdict.OK, values=(0.7,), texts=("7",))

    read = NumberParser()
    judge = RubricJudge(
        prompt="How?", system="S", role="judge", n=2, max_tokens=7, temperature=0.25, deadline_s=9, read=read
    )
    asyncio.run(judge.appraise(trees(n=1), Noted()))  # type: ignore[arg-type]
    settings = {"system": "S", "role": "judge", "max_tokens": 7, "temperature": 0.25, "deadline_s": 9}
    assert asked == [Query(prompt="How?", read=read, n=2, **settings)]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (InjectedFault.SILENCE, Verdict.LATE),
        (InjectedFault.FAULT, Verdict.REFUSED),
        (InjectedFault.ABORTED, Verdict.REFUSED),
    ],
)
def test_no_answer_is_no_number(reply: InjectedFault, verdict: Verdict, tmp_path: Path) -> None:
    judge = RubricJudge(prompt=RUBRIC, role="judge", deadline_s=0.05)
    ask, engine = asker(lambda _: reply, tmp_path)
    grown = trees(n=1)
    (tree,) = appraised(grown, ask, judge, required=("judge",))
    (leaf,) = leaves(tree)
    assert tree.appraisals["judge"].verdict[leaf] == verdict
    assert np.isnan(tree.appraisals["judge"].value[leaf])
    assert tree.outcome[leaf] == Outcome.FAILED
    appraised(grown, ask, judge)
    assert len(engine.requests) == 1, "a resumed step does not repeat it"
    appraised(grown, replace(ask, step=4), judge)
    assert len(engine.requests) == 2, "a later step does"


def test_a_question_longer_than_the_judge_reads_is_refused_by_name(tmp_path: Path) -> None:
    ask, engine = asker(lambda _: says("7"), tmp_path)
    short = Scripted(script=lambda _: says("7"), context_tokens=16)
    agent = replace(ask.agent, models={"judge": RoleModel(engine=short, renderer=Letters(), name="short")})
    ask = replace(ask, agent=agent)
    (tree,) = appraised(trees(n=1), ask, RubricJudge(prompt=RUBRIC, role="judge"), required=("judge",))
    (leaf,) = leaves(tree)
    assert tree.appraisals["judge"].verdict[leaf] == Verdict.REFUSED
    assert tree.outcome[leaf] == Outcome.FAILED
    assert "in the model's context of 16: shorten the question" in str(tree.info[leaf]["fault"])
    assert not engine.requests
    assert not short.requests


def test_the_cache_survives_and_an_incomplete_line_does_not(tmp_path: Path) -> None:
    judge = RubricJudge(prompt=RUBRIC, role="judge")
    ask, engine = asker(by_seed, tmp_path)
    grown = trees()
    first = appraised(grown, ask, judge)
    with (tmp_path / "answers.jsonl").open("ab") as file:
        file.write(b'{"key": "cut')
    again, other = asker(by_seed, tmp_path)
    second = appraised(grown, again, judge)
    assert engine.requests
    assert not other.requests
    assert all(one.equals(two) for one, two in zip(first, second, strict=True))
    assert (tmp_path / "answers.jsonl").read_bytes().endswith(b"}\n")


def test_a_judge_with_other_weights_is_asked_again(tmp_path: Path) -> None:
    ask, engine = asker(lambda _: says("8"), tmp_path)
    grown = trees(n=1)
    for version, requests in ((0, 1), (1, 2), (1, 2)):
        engine.load_weights({}, version)
        appraised(grown, ask, RubricJudge(prompt=RUBRIC, role="judge"))
        assert len(engine.requests) == requests


def test_equal_questions_at_the_same_time_are_one_request(tmp_path: Path) -> None:
    ask, engine = asker(lambda _: says("8"), tmp_path)
    one, other = appraised(2 * trees(n=1), ask, RubricJudge(prompt=RUBRIC, role="judge"))
    assert len(engine.requests) == 1
    assert one.appraisals["judge"].equals(other.appraisals["judge"])


def test_the_order_of_tasks_changes_nothing(tmp_path: Path) -> None:
    judge = RubricJudge(prompt=RUBRIC, role="judge")
    grown = trees("x", "y", n=2)
    one, _ = asker(by_seed, tmp_path / "one")
    two, _ = asker(by_seed, tmp_path / "two")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    forward = [appraised([tree], one, judge)[0] for tree in grown]
    backward = [appraised([tree], two, judge)[0] for tree in reversed(grown)][::-1]
    assert all(this.equals(that) for this, that in zip(forward, backward, strict=True))


def test_steps_are_rated_at_their_actions_and_a_shared_step_once(tmp_path: Path) -> None:
    ask, engine = asker(lambda request: says("fine. good" if request.seed % 2 else "no. bad"), tmp_path)
    (tree,) = appraised(trees(), ask, step_critic(role="judge"))
    column = tree.appraisals["critic"]
    assert set(np.flatnonzero(column.verdict)) == set(np.flatnonzero(tree.kind == Kind.ACTION))
    assert set(column.value[column.verdict == Verdict.OK]) <= {1.0, -1.0}
    assert len(engine.requests) <= int((tree.kind == Kind.ACTION).sum())
    action = int(np.flatnonzero(column.verdict)[0])
    assert tree.info[action]["appraisal critic"][0] in ("fine. good", "no. bad")  # type: ignore[index]


def test_a_round_robin_cancels_a_bias_for_the_first(tmp_path: Path) -> None:
    first, engine = asker(lambda _: says("1"), tmp_path)
    grown = trees(n=3)
    (tree,) = appraised(grown, first, RoundRobin(role="judge"))
    values = tree.appraisals["rank"].value[leaves(tree)]
    assert np.allclose(values, 0.5)
    different = len(DifferentPaths.of(grown).texts)
    assert different > 1
    assert len(engine.requests) == different * (different - 1), "each pair in both orders"


def test_a_prompt_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "rubric.txt").write_text("Only this: {answer}")
    ask, engine = asker(lambda _: says("7"), tmp_path)
    appraised(trees(n=1), ask, RubricJudge(prompt_file=str(tmp_path / "rubric.txt"), role="judge", read=NumberParser()))
    (request,) = engine.requests
    assert "Only this: " in Letters().text(request.prompt_tokens)
    with pytest.raises(ValueError, match=r"prompt_file: cannot read .*; need a text file"):
        appraised(trees(n=1), ask, RubricJudge(prompt_file=str(tmp_path / "none.txt"), role="judge"))


def test_a_probe_asks_the_policy_for_the_answer(tmp_path: Path) -> None:
    ask, _ = asker(by_seed, tmp_path)
    grown = [replace(tree, task=Task(id=tree.task.id, data={"answer": "ab"})) for tree in trees(n=2)]
    (tree,) = appraised(grown, ask, AnswerProbe())
    column = tree.appraisals["probe"]
    known = column.verdict == Verdict.OK
    assert set(np.flatnonzero(known)) == set(np.flatnonzero(tree.kind == Kind.ACTION))
    assert np.all((column.value[known] > 0) & (column.value[known] <= 1))
    (unknown,) = appraised(
        [replace(each, success=np.zeros_like(each.success)) for each in trees(n=2)], ask, AnswerProbe()
    )
    column = unknown.appraisals["probe"]
    assert set(column.value[column.verdict == Verdict.OK].tolist()) == {0.0}, "no answer is known"


def test_a_probe_takes_the_first_of_several_answers_and_does_not_count_what_stands_before_it(tmp_path: Path) -> None:
    ask, engine = asker(by_seed, tmp_path)
    several = [replace(tree, task=Task(id=tree.task.id, data={"answers": [["ab", "b"], ["c"]]})) for tree in trees(n=1)]
    appraised(several, ask, AnswerProbe(field="answers", prefix="so: "))
    assert all("so: ab" in Letters().text(each.prompt_tokens) for each in engine.requests)


def test_a_search_asks_the_judge_and_not_the_policy() -> None:
    policy, judge = scripted(lambda rng: rng.choice("ab")), Scripted(script=lambda _: says("yes"))
    place = runner(policy)
    place = replace(
        place, agent=replace(place.agent, models={"judge": RoleModel(engine=judge, renderer=Letters(), name="j")})
    )
    grow(place, Search(select=Level(), evaluate=Judge(role="judge"), success_value=None))
    assert judge.requests
    assert all("judge how an agent" in Letters().text(each.prompt_tokens) for each in judge.requests)
    assert not any("judge how an agent" in Letters().text(each.prompt_tokens) for each in policy.requests)


def test_a_stored_answer_says_what_was_asked(tmp_path: Path) -> None:
    ask, _ = asker(lambda _: says("8"), tmp_path)
    appraised(trees(n=1), ask, RubricJudge(role="judge", prompt="Rate this: {turns}"))
    (line,) = (tmp_path / "answers.jsonl").read_text().splitlines()
    stored = json.loads(line)
    assert (stored["role"], stored["step"], stored["text"]) == ("judge", 3, "8")
    assert stored["asked"].startswith("Rate this:")
