"""A judge of tasks, and the filter by its verdicts: what it reads, how often, and which groups stay."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.appraise.test_appraisers import appraised, asker, says, trees

from bough.appraise import TaskJudge
from bough.cli.find import find_run
from bough.config import ConfigError
from bough.credit import Grpo
from bough.curate import AcceptedTasks, NonZeroAdvantage, apply_filters
from bough.engine import Request
from bough.engine.scripted import Reply
from bough.reward import EnvReward, reward_trees
from bough.train.check import check
from bough.tree import StageError, Task, Tree, Verdict
from bough.worlds.function_calls import FunctionCalls

JUDGE = TaskJudge(role="judge")


def of_task(task: Task) -> list[Tree]:
    """Two trees of a task."""
    return [replace(tree, task=task) for tree in (*trees(n=4), *trees(n=2))]


def test_a_row_with_a_wrong_reference_is_dropped_and_asked_about_once(tmp_path: Path) -> None:
    """The judge knows what a request for function calls says; one of three rows has another reference."""
    env = find_run("egpo", "function_calls").world.env
    assert isinstance(env, FunctionCalls)
    right, other, unclear = env.tasks("train", 3, 0)
    wrong = replace(right, id="wrong", data={**right.data, "calls": other.data["calls"]})
    unclear = replace(unclear, id="unclear")

    def judge(request: Request) -> Reply:
        question = "".join(map(chr, request.prompt_tokens))
        if str(unclear.data["prompt"]) in question:
            return says("hard to say")
        return says("yes" if json.dumps(right.data["calls"]) in question else "no")

    ask, engine = asker(judge, tmp_path)
    found = [appraised(of_task(task), ask, JUDGE) for task in (right, wrong, unclear)]
    assert len(engine.requests) == 3
    for task in (right, wrong):
        appraised(of_task(task), ask, JUDGE)
    assert len(engine.requests) == 3, "a later step asks nothing again"
    assert [each[0].appraisals["task"].verdict[0] for each in found] == [Verdict.OK, Verdict.OK, Verdict.UNPARSED]
    assert [each.appraisals["task"].questions.sum() for each in found[0]] == [1, 0]
    credited = Grpo()(reward_trees([tree for each in found for tree in each], (EnvReward(),)))
    found = apply_filters(credited, [AcceptedTasks()])
    kept, dropped = found.trees, found.dropped
    assert {each.tree.task.id for each in kept} == {right.id}
    assert len(kept) == 2
    assert dropped == {"refused_task": 1, "unjudged_task": 1}


def test_the_question_shows_the_fields_that_are_named_and_nothing_of_the_policy(tmp_path: Path) -> None:
    task = Task(id="t", data={"prompt": "say a", "answer": "the reference", "secret": "hidden"})
    ask, engine = asker(lambda _: says("no"), tmp_path)
    appraised(of_task(task), ask, replace(JUDGE, fields=("answer",)))
    question = "".join(map(chr, engine.requests[0].prompt_tokens))
    assert "the reference" in question
    assert "hidden" not in question
    assert ">" not in question, "no action"
    with pytest.raises(
        ValueError, match=r"TaskJudge.fields: got 'calls'; task t has the fields \['answer', 'prompt', 's"
    ):
        JUDGE.__class__(fields=("calls",))._text(of_task(task)[0])  # pyright: ignore[reportPrivateUsage]


def test_the_method_and_its_settings() -> None:
    run = find_run("egpo(judge=judge)", "function_calls")
    assert run.world.appraisers == (JUDGE,)
    assert run.world.filters == (AcceptedTasks(), NonZeroAdvantage())
    with pytest.raises(ConfigError, match="needs a model for the role 'judge'"):
        check(run)
    assert not find_run("egpo", "function_calls").world.appraisers
    with pytest.raises(StageError, match=r"AcceptedTasks.column: got 'task' .* need a tree that has been appraised"):
        AcceptedTasks()(Grpo()(reward_trees(trees(), (EnvReward(),))))
    with pytest.raises(ValueError, match=r"AcceptedTasks.min_value: got 0; need a number above 0"):
        AcceptedTasks(min_value=0)
