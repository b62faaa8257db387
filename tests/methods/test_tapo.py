"""TAPO on the search environment: the judge knows the exact evidence, and reads what the tools show alone."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from tests.appraise.test_appraisers import says
from tests.explore.stage import Letters, runner
from tests.trees import rewarded, subtree

from bough.appraise import ToolJudge
from bough.cli.find import find_run
from bough.context import ToolCalls
from bough.engine import InjectedFault, Request, Scripted
from bough.engine.scripted import Reply
from bough.env import InProcessHost
from bough.explore import Chains
from bough.reward import reward_trees
from bough.rollout import Limits, RoleModel
from bough.store.answers import Answers
from bough.train.appraise_stage import AppraisalClient, AppraiseStage
from bough.tree import Action, AgentAction, BadCall, Outcome, Tool, ToolCall, Tree, Verdict, action_text, counted
from bough.worlds.search import KnowledgeGraph, SearchQa
from bough.worlds.search.question import read_question

ENV = SearchQa(source=KnowledgeGraph(entities=40, hops=(1, 1)), top=2, snippet_words=0, max_calls=5)
(TASK,) = ENV.tasks("train", 1, 0)
QUESTION = read_question(TASK)
FACT = QUESTION.evidence[0]
ANSWER = QUESTION.answers[0][0]
FIND, READ, ELSEWHERE = f"|search {FACT.query}", f"|read {FACT.document}", "|search zzz"
PRAISE = "I looked and this output is useful"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken(Letters):
    """`so|search x` is a search after the text "so"; without a bar the text is the answer."""

    def write(self, action: AgentAction) -> tuple[int, ...]:
        return (*map(ord, action_text(action)), 0)

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        del tools
        said, bar, call = self.text(tokens).partition("|")
        name, _, rest = call.partition(" ")
        if not bar or not rest:
            return Action(text=said, calls=(BadCall(text=call, problem="no call"),) if bar else ())
        arguments = {"query": rest} if name == "search" else {"doc": int(rest)}
        return Action(text=said, calls=(ToolCall(name=name, arguments=arguments),))


def played(*turns: str) -> Tree:
    """The path of an agent that writes these turns."""
    left = iter(turns)
    engine = Scripted(script=lambda _: tuple(map(ord, next(left))), context_tokens=20000)
    place = runner(engine, InProcessHost(env=ENV), limits=Limits(turns=6), max_tokens=400)
    place = replace(place, agent=replace(place.agent, renderer=Spoken(), parser=ToolCalls()))
    (tree,) = asyncio.run(place.run(Chains(n=1), [TASK], seed=0)).trees
    return tree


def asked(request: Request) -> str:
    """The whole prompt of the judge."""
    return "".join(map(chr, request.prompt_tokens))


def exact(request: Request) -> Reply:
    """The exact evidence: an output is useful where it has the sentence of the fact."""
    output = asked(request).partition("Its output:")[2]
    return says("useful" if FACT.text in output else "useless")


def judged(
    path: Path, trees: Sequence[Tree], judge: ToolJudge | None = None, script: Callable[[Request], Reply] = exact
) -> tuple[list[Tree], Scripted]:
    path.mkdir(exist_ok=True)
    engine = Scripted(script=script, context_tokens=20000)
    agent = runner(Scripted(script={}), max_tokens=8).agent
    agent = replace(agent, models={"judge": RoleModel(engine=engine, renderer=Spoken(), name="scripted")})
    ask = AppraisalClient(
        agent=agent, answers=Answers(path / "answers.jsonl"), deadlines=runner(engine).deadlines, seed=1, step=3
    )
    stage = AppraiseStage(appraisers=(judge or ToolJudge(role="judge"),), required=("tool_use",), ask=ask)
    return asyncio.run(stage(list(trees))), engine


def value(tree: Tree) -> float:
    (leaf,) = counted(tree).tolist()
    return float(tree.appraisals["tool_use"].value[leaf])


def test_worked_example(tmp_path: Path) -> None:
    """Right with one useful call of two, wrong with useful calls, right without a call: 1.25, .5, 1."""
    run = find_run("tapo(judge=judge)", "search")
    found, _ = judged(tmp_path, [played(FIND, READ, ANSWER), played(READ, "no idea"), played(ANSWER)])
    assert [value(tree) for tree in found] == [0.5, 1.0, 0.0]
    rewarded = reward_trees(found, run.world.rewards)
    assert [float(each.returns()[0]) for each in rewarded] == [1.25, 0.5, 1.0]
    advantages = [each.path_advantage[0] for each in run.method.credit(rewarded)]
    assert advantages == pytest.approx(np.asarray([1.25, 0.5, 1.0]) - 2.75 / 3, abs=1e-6)


def test_evidence_beats_a_guess_where_outcomes_are_equal(tmp_path: Path) -> None:
    """GRPO sees no difference between a right answer from evidence and a lucky one."""
    found, _ = judged(tmp_path, [played(READ, ANSWER), played(ELSEWHERE, ANSWER)])
    run, plain = find_run("tapo(judge=judge)", "search"), find_run("grpo", "search")
    faithful, lucky = run.method.credit(reward_trees(found, run.world.rewards))
    assert faithful.path_advantage[0] > 0 > lucky.path_advantage[0]
    assert all(each.is_zero for each in plain.method.credit(reward_trees(found, plain.world.rewards)))


def test_the_judge_reads_nothing_that_the_policy_writes_besides_calls(tmp_path: Path) -> None:
    """Praise before the calls and in the answer changes neither a prompt nor a value."""
    silent, first = judged(tmp_path / "a", [played(ELSEWHERE, READ, ANSWER)])
    praised, second = judged(tmp_path / "b", [played(f"{PRAISE}{ELSEWHERE}", f"{PRAISE}{READ}", f"{ANSWER} {PRAISE}")])
    prompts = [sorted(map(asked, engine.requests)) for engine in (first, second)]
    assert prompts[0] == prompts[1]
    assert not any("I looked" in prompt for prompt in prompts[1])
    assert value(silent[0]) == value(praised[0]) == 0.5
    assert QUESTION.text in prompts[0][0]


def test_red_lines_cost_and_no_question_is_asked(tmp_path: Path) -> None:
    """A call that is none, a document that is not there, and a repetition."""
    found, engine = judged(tmp_path, [played(*path, ANSWER) for path in (["|x"], ["|read 999999"], [READ, READ])])
    assert [value(tree) for tree in found] == [-1.0, -1.0, 0.0]
    assert len(engine.requests) == 1


def test_tasks_without_need_of_a_tool_have_red_lines_alone(tmp_path: Path) -> None:
    judge = ToolJudge(role="judge", unneeded="easy", red_line=-0.5)
    trees = [played(READ, ANSWER), played("|x", ANSWER)]
    easy = [replace(tree, task=replace(tree.task, data={**tree.task.data, "easy": True})) for tree in trees]
    found, engine = judged(tmp_path, easy, judge)
    assert [value(tree) for tree in found] == [0.0, -0.5]
    assert not engine.requests


def test_an_unknown_verdict_is_no_number(tmp_path: Path) -> None:
    found, _ = judged(tmp_path, [played(READ, ANSWER), played(ANSWER)], script=lambda _: InjectedFault.FAULT)
    assert [len(counted(tree)) for tree in found] == [0, 1]
    assert Verdict.REFUSED in found[0].appraisals["tool_use"].verdict


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"ToolJudge.prompt: got the placeholders \['turns'\]; need some of"):
        ToolJudge(prompt="{turns} {result}")
    with pytest.raises(ValueError, match=r"ToolJudge.red_line: got 0; need a number below 0"):
        ToolJudge(red_line=0)
    with pytest.raises(ValueError, match=r"tapo: got tools=1.0; need a number above 0 and below 1"):
        find_run("tapo(tools=1)", "search")


def test_a_call_without_an_output_shows_the_judge_none_of_the_policys_text(tmp_path: Path) -> None:
    """The path was stopped before its last call was executed."""
    tree = played(f"{PRAISE}{READ}", ANSWER)
    cut = subtree(rewarded(tree), np.arange(tree.nodes) < 2).tree
    outcome = np.where(np.arange(2) == 1, Outcome.TRUNCATED, Outcome.OPEN).astype(cut.outcome.dtype)
    _, engine = judged(tmp_path, [replace(cut, outcome=outcome)])
    (prompt,) = map(asked, engine.requests)
    assert PRAISE not in prompt
