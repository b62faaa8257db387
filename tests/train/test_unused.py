"""Settings that nothing uses, and appraisers that find nothing: a run says so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.appraise.test_appraisers import trees

from bough.appraise import HopProgress, RubricJudge
from bough.cli.find import find_run
from bough.config import ConfigError
from bough.critics import StepScores
from bough.curate import ScoredPaths
from bough.reward import EnvReward, Judged
from bough.roles import StartingWeights
from bough.train import start
from bough.train.health import unsolved_reason
from bough.train.notices import Notices
from bough.train.summary import summarize
from bough.train.unused import missing_fields, refuse_unused_models, unread_columns
from bough.tree import (
    REWARD_PARTS,
    TOOL_EXCEPTIONS,
    Appraisal,
    Entry,
    Kind,
    Rewarded,
    Source,
    Ternary,
    Tool,
    Tree,
    Verdict,
    counted,
    fail_unknown,
    fault_in,
    path,
    tool_record,
)

JUDGE = {"judge": StartingWeights()}


def test_a_model_that_no_piece_asks_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    run = find_run("grpo").replace(models=JUDGE, appraisers=(RubricJudge(),), rewards=(EnvReward(), Judged()))
    with pytest.raises(ConfigError, match=r"models.judge: .* which no piece has.*appraisers.0.role='policy'"):
        start(run, tmp_path)
    assert not [*tmp_path.iterdir()]
    refuse_unused_models(run.replace(appraisers=(RubricJudge(role="judge"),)))


def test_a_run_without_a_piece_with_a_role_is_told_to_add_one() -> None:
    with pytest.raises(ConfigError, match="add one, such as an appraiser"):
        refuse_unused_models(find_run("grpo").replace(models=JUDGE))


def test_an_appraiser_whose_columns_nothing_reads_is_named() -> None:
    run = find_run("grpo").replace(appraisers=(RubricJudge(), HopProgress(column="near")))
    (judge, near) = unread_columns(run)
    assert judge.startswith("appraisers.0: no piece reads the column 'judge'")
    assert near.startswith("appraisers.1: ")
    assert list(unread_columns(run.replace(rewards=(EnvReward(), Judged()), appraisers=(RubricJudge(),)))) == []


def test_a_column_that_a_filter_reads_is_not_named() -> None:
    assert list(unread_columns(find_run("egpo(judge=judge)", "function_calls"))) == []
    scored = find_run("grpo").replace(appraisers=(StepScores(folder="prm"),), filters=(ScoredPaths(),))
    assert list(unread_columns(scored)) == []


@pytest.mark.parametrize(
    ("method", "world", "missing"),
    [
        (
            "eag_rl",
            "search",
            "hooks[0]: none of 3 tasks has the field 'salient' in its data, which AttentionReward reads",
        ),
        ("eag_rl(key=evidence)", "search", None),
        ("igpo(field=answers)", "search", None),
        ("gui_g1(field=weight)", "frozenlake", "credit: none of 3 tasks has the field 'weight'"),
    ],
)
def test_a_field_that_no_task_has_is_named(method: str, world: str, missing: str | None) -> None:
    run = find_run(method, world)
    lines = list(missing_fields(run, run.world.env.tasks("train", 3, 0)))
    assert len(lines) == (missing is not None)
    assert not missing or lines[0].startswith(missing)


def column(tree: Tree, verdict: Verdict) -> Tree:
    """The tree with a column that has one verdict, at its last node."""
    entry = Entry(value=1.0 if verdict is Verdict.OK else np.nan, verdict=verdict)
    return replace(tree, appraisals={"gain": Appraisal.of({tree.nodes - 1: entry}, tree.nodes)})


def test_a_column_without_any_value_is_reported_once() -> None:
    said: list[str] = []
    notices = Notices(report=lambda alarm: said.append(str(alarm)))
    (tree,) = trees(n=2)
    notices.of_batch([column(tree, Verdict.OK), column(tree, Verdict.NONE)], 100)
    notices.of_batch([column(tree, Verdict.UNPARSED)], 100)
    assert said == []
    for _ in range(2):
        notices.of_batch([column(tree, Verdict.NONE)], 100)
    (line,) = said
    assert line.startswith("appraisers: the trees of a batch have no value in the column 'gain'")


def test_the_first_invalid_action_of_demonstrations_is_the_reason() -> None:
    (tree,) = trees(n=1)
    failed = replace(tree, success=np.full(tree.nodes, Ternary.NO, dtype=tree.success.dtype))
    assert unsolved_reason([failed], 9) == "; check `plan` of the environment"
    (first, *_) = [int(node) for node in np.flatnonzero(tree.kind == Kind.ACTION)]
    valid = np.where(np.arange(tree.nodes) == first, Ternary.NO, tree.valid).astype(tree.valid.dtype)
    info = list(tree.info)
    info[first] = {"text": "", "said": "", "calls": [{"name": "bye", "arguments": {"n": 1}}]}
    info[int(np.flatnonzero(tree.parent == first)[0])] = {"text": f"error: got the tool 'bye'; {'x' * 500}"}
    wrong = replace(failed, valid=valid, info=tuple(info))
    reason = unsolved_reason([failed, wrong, wrong], 9)
    assert reason.startswith(
        "; check `plan` of the environment; 2 have an invalid action, first 'bye({\"n\": 1})', answered"
    )
    assert "by \"error: got the tool 'bye'; x" in reason
    assert len(reason) < 400


def test_exceptions_of_tools_are_counted_and_the_first_is_reported_once() -> None:
    said: list[str] = []
    notices = Notices(report=lambda alarm: said.append(str(alarm)))
    (tree,) = trees(n=1)
    raised = {TOOL_EXCEPTIONS: ["IndexError: list index out of range (tools.py, line 3, in find)", "KeyError: 1"]}
    wrong = replace(tree, info=({"env": raised}, *tree.info[1:]))
    notices.of_batch([tree], 100)
    assert said == []
    for _ in range(2):
        notices.of_batch([tree, wrong], 100)
    (line,) = said
    assert line.startswith(
        "2 calls of tools in a batch raised a LookupError or an ArithmeticError, which the agent reads"
    )
    assert "(train/tool_exceptions): IndexError: list index out of range (tools.py, line 3, in find). Raise" in line
    rewarded = [Rewarded(tree=each, channels={}) for each in (wrong, wrong)]
    assert summarize(rewarded, unstarted=0, dropped={})["train/tool_exceptions"] == 4
    assert "train/tool_exceptions" not in summarize([Rewarded(tree=tree, channels={})], unstarted=0, dropped={})


def test_the_reason_of_a_path_without_a_value_is_that_of_its_last_lacking_step() -> None:
    """The judged step is not the leaf, and a later one has a value."""
    (tree,) = trees(n=1)
    (leaf,) = counted(tree).tolist()
    steps = [node for node in path(tree, leaf).tolist() if tree.kind[node] == Kind.ACTION]
    entries = {node: Entry(value=1.0, verdict=Verdict.OK) for node in steps} | {steps[0]: Entry(verdict=Verdict.LATE)}
    judged = replace(tree, appraisals={"critic": Appraisal.of(entries, tree.nodes)})
    fault = fault_in(fail_unknown(judged, ["critic"]).info[leaf])
    assert fault is not None
    assert "no answer came before the deadline" in fault


def test_numbers_of_rewards_have_a_mean_over_the_paths_that_have_them() -> None:
    (tree,) = trees(n=1)
    named = [
        replace(tree, info=tuple({"env": {REWARD_PARTS: parts}} for _ in tree.info))
        for parts in ({"correct": 1.0, "short": 0.5}, {"correct": 0.0})
    ]
    found = summarize([Rewarded(tree=each, channels={}) for each in named], unstarted=0, dropped={})
    assert (found["reward_function/correct"], found["reward_function/short"]) == (0.5, 0.5)


def test_calls_of_another_family_and_a_first_step_without_calls_are_reported_once() -> None:
    said: list[str] = []
    (tree,) = trees(n=1)
    act = int(np.flatnonzero((tree.kind == Kind.ACTION) & (tree.source == Source.SAMPLED))[0])
    tools = {"tools": [tool_record(Tool(name="find", description="", schema={}))]}
    bad = {"calls": [{"text": "[TOOL_CALLS]", "problem": "no", "family": "Mistral"}]}
    good = {"calls": [{"name": "find", "arguments": {}, "call_id": ""}]}

    def with_calls(calls: dict[str, object]) -> Tree:
        rows = [dict(info) for info in tree.info]
        rows[0] |= tools
        rows[act] |= calls
        return replace(tree, info=tuple(rows))

    notices = Notices(report=lambda alarm: said.append(str(alarm)))
    for _ in range(2):
        notices.of_batch([with_calls(bad)], 100)
    first, second = said
    assert first.startswith("no tool was called in the first step, in 1 episode")
    assert "1 of 1 first messages" in second
    assert "1 of Mistral (calls/foreign)" in second
    assert summarize([Rewarded(tree=with_calls(bad), channels={})], unstarted=0, dropped={})["calls/foreign"] == 1
    later = Notices(report=lambda alarm: said.append(str(alarm)))
    later.of_batch([with_calls(good)], 100)
    later.of_batch([with_calls({})], 100)
    assert len(said) == 2, "the first step had a call"
    assert "calls/foreign" not in summarize([Rewarded(tree=tree, channels={})], unstarted=0, dropped={})
