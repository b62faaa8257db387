"""SPAE's probe: what it asks, what it computes of the answers, and that a resumed run asks nothing twice."""

import asyncio
import math
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.appraise.judged import run
from tests.appraise.test_appraised_runs import rows
from tests.appraise.test_appraisers import appraised, asker, says, trees
from tests.explore.stage import Letters

from bough.appraise import Continuation, Scoring, StepPotential, appraise_trees
from bough.appraise.step_potential import potential
from bough.ask import Answer, Query, Reply
from bough.credit import Spae
from bough.reward import EnvReward
from bough.store import RunDirectory, read_trees
from bough.train import resume, start
from bough.tree import Credited, Kind, Task, Tree, Verdict, context, counted, fail_unknown


@dataclass
class Told:
    """Models that say what they are told to, and what they were asked."""

    entropies: tuple[float, ...]
    probability: float
    verdict: Verdict = Verdict.OK
    sampled: list[Continuation] = field(default_factory=list)
    scored: list[Scoring] = field(default_factory=list)

    async def __call__(self, query: Query[Any]) -> Answer[Any]:
        raise AssertionError(query)

    async def score(self, scoring: Scoring) -> Reply:
        self.scored.append(scoring)
        return Reply(verdict=Verdict.OK, logprob=-99.0, probability=self.probability)

    async def sample(self, continuation: Continuation) -> Reply:
        self.sampled.append(continuation)
        entropy = self.entropies[continuation.vote]
        return Reply(verdict=self.verdict, text="b", entropy=entropy, tokens=2)


def known(answer: str | None = "ab") -> list[Tree]:
    data = {} if answer is None else {"answer": answer}
    return [replace(tree, task=Task(id=tree.task.id, data=data)) for tree in trees(n=2)]


def test_worked_example() -> None:
    assert potential(0.8, 0.9) == pytest.approx(0.58)
    assert potential(0.1, 0.9) == pytest.approx(-0.715)
    assert (potential(1, 1), potential(0, 1), potential(0, 0)) == (1, -1, 0)


def test_confidence_is_of_the_samples_and_correctness_of_the_truth() -> None:
    told = Told(entropies=(0.0, math.log(2)), probability=0.8)
    piece = StepPotential(n=2, prefix="So: ", max_tokens=3)
    (tree,) = asyncio.run(appraise_trees(known(), (piece,), told))
    column, acts = tree.appraisals["potential"], np.flatnonzero(tree.kind == Kind.ACTION)
    assert np.flatnonzero(column.verdict == Verdict.OK).tolist() == acts.tolist()
    assert column.value[acts] == pytest.approx(1.5 * 0.8 * 0.75 + 0.4 - 0.75)
    assert (column.votes[acts] == 2).all()
    assert (column.questions[acts] == 3).all()
    assert (column.tokens[acts] == 4).all()
    assert tree.info[int(acts[0])]["appraisal potential"] == ["b", "b"]
    contexts = [tuple(context(tree, int(node)).tolist()) for node in acts]
    assert sorted(each.tokens for each in told.scored) == sorted(contexts)
    assert {(each.prefix, each.text) for each in told.scored} == {("So: ", "ab")}
    assert {(each.prefix, each.max_tokens, each.temperature) for each in told.sampled} == {("So: ", 3, 0.6)}


def test_without_a_known_answer_the_last_action_of_a_success_is_the_truth() -> None:
    told = Told(entropies=(0.0,), probability=1.0)
    grown = known(None)
    tree = grown[0]
    success, leaf = tree.success.copy(), int(counted(tree)[0])
    success[leaf] = 1
    (one,) = asyncio.run(appraise_trees([replace(tree, success=success)], (StepPotential(n=1),), told))
    last = int(np.flatnonzero(tree.kind[:leaf] == Kind.ACTION)[-1])
    assert {each.text for each in told.scored} == {tree.info[last]["text"]}
    assert np.nanmax(one.appraisals["potential"].value) == pytest.approx(1)
    told.scored.clear()
    failed = replace(tree, success=np.full_like(success, -1))
    (one,) = asyncio.run(appraise_trees([failed], (StepPotential(n=1),), told))
    assert not told.scored
    assert np.nanmax(one.appraisals["potential"].value) == pytest.approx(-1)


def test_no_answer_is_no_potential() -> None:
    told = Told(entropies=(0.0, 0.0), probability=1.0, verdict=Verdict.LATE)
    (tree,) = asyncio.run(appraise_trees(known(), (StepPotential(n=2),), told))
    assert not (tree.appraisals["potential"].verdict == Verdict.OK).any()
    assert len(counted(fail_unknown(tree, ["potential"]))) == 0
    with pytest.raises(ValueError, match=r"StepPotential.n: got 0; need at least 1"):
        StepPotential(n=0)


def test_the_policy_continues_its_own_context_and_equal_states_are_asked_once(tmp_path: Path) -> None:
    ask, judge = asker(lambda _: says("hm"), tmp_path)
    engine = ask.agent.engine
    engine.requests.clear()  # type: ignore[attr-defined]
    (tree,) = appraised(known(), ask, StepPotential(n=3, prefix="So "))
    requests = engine.requests  # type: ignore[attr-defined]
    acts = np.flatnonzero(tree.kind == Kind.ACTION).tolist()
    states = {tuple(context(tree, node).tolist()) for node in acts}
    assert not judge.requests
    assert len(requests) == 3 * len(states)
    assert {each.prompt_tokens for each in requests} == {(*state, *Letters().write("So ")[:-1]) for state in states}
    assert len({each.seed for each in requests}) == len(requests)
    asked = len(requests)
    again, _ = asker(lambda _: says("hm"), tmp_path)
    again = replace(again, agent=replace(again.agent, engine=engine))
    (other,) = appraised(known(), again, StepPotential(n=3, prefix="So "))
    assert len(requests) == asked, "answers are stored"
    assert other.appraisals["potential"].equals(tree.appraisals["potential"])


def test_a_context_without_room_is_refused(tmp_path: Path) -> None:
    ask, _ = asker(lambda _: says("hm"), tmp_path)
    full = tuple([1] * ask.agent.engine.context_tokens)
    assert asyncio.run(ask.sample(Continuation(tokens=full))).verdict is Verdict.REFUSED
    assert asyncio.run(ask.score(Scoring(tokens=full, text="a"))).verdict is Verdict.REFUSED


def test_a_run_that_is_resumed_asks_nothing_twice(tmp_path: Path) -> None:
    small = run().replace(
        name="spae",
        models={},
        rewards=(EnvReward(),),
        appraisers=(StepPotential(field="", n=2, max_tokens=2),),
        credit=Spae(),
        steps=2,
    )
    directory = start(small, tmp_path, terminal=False).path
    table, answers = rows(directory), (directory / "answers.jsonl").read_bytes()
    counts = [row["judge/questions"] for row in table if "judge/questions" in row]
    assert all(float(str(count)) > 0 for count in counts)
    trees_of = read_trees(RunDirectory(path=directory).trees_of(small.warmup_steps + 1), Credited)
    assert any(each.positive.any() for each in trees_of)
    assert all((each.tree.appraisals["potential"].verdict == Verdict.OK).any() for each in trees_of)
    shutil.rmtree(directory / "checkpoints" / f"step_{small.warmup_steps + 2:06d}")
    resume(directory, terminal=False)
    assert rows(directory) == table
    assert (directory / "answers.jsonl").read_bytes() == answers
