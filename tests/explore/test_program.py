"""Agent programs: their calls as a tree, and their ends."""

import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.serve.wire import ByteChat, scripted

from bough.context import Full, Plain
from bough.engine import Engine, Request, Sampling, Scripted
from bough.env import InProcessHost, ProgramTasks
from bough.explore import Program
from bough.explore.process import KEEP_BYTES
from bough.explore.result import Result, json_at_end, may_end_with_result, read_result
from bough.grammar import Grammar
from bough.guard import Guard
from bough.rollout import Agent, Deadlines, Limits, RolloutRunner
from bough.tree import (
    Kind,
    Outcome,
    Source,
    Task,
    Ternary,
    Tree,
    TruncatedBy,
    count_first_messages,
    counted,
    leaves,
    path,
)

AGENTS = Path(__file__).with_name("agents")
PLAIN = f"{AGENTS / 'plain.py'}:agent"
COMMAND = f"{sys.executable} {AGENTS / 'plain.py'}"


def grow(
    program: Program,
    *data: dict[str, object],
    engine: Engine | None = None,
    limits: Limits | None = None,
    guard: Guard | None = None,
    renderer: ByteChat | None = None,
) -> list[Tree]:
    """The trees of tasks with this data."""
    agent = Agent(
        engine=engine or scripted("alpha", "beta"),
        renderer=renderer or ByteChat(),
        context=Full(),
        parser=Plain(),
        sampling=Sampling(max_tokens=32),
        guard=guard,
    )
    runner = RolloutRunner(
        agent=agent,
        host=InProcessHost(env=ProgramTasks()),
        instructions="",
        limits=limits or Limits(),
        deadlines=Deadlines(),
    )
    tasks = [Task(id=f"task {number}", data=each) for number, each in enumerate(data)]
    return list(asyncio.run(runner.run(program, tasks, seed=0)).trees)


def does(name: str, *, n: int = 1, limits: Limits | None = None, engine: Engine | None = None, **settings) -> Tree:
    program = Program(agent=PLAIN, n=n, retries=0, **settings)
    return grow(program, {"does": name}, limits=limits, engine=engine)[0]


def kinds(tree: Tree) -> list[str]:
    """The kinds of the nodes on each path."""
    short = {Kind.PROMPT: "P", Kind.ACTION: "A", Kind.OBSERVATION: "O", Kind.EDIT: "E"}
    return ["".join(short[Kind(kind)] for kind in tree.kind[path(tree, leaf)]) for leaf in leaves(tree).tolist()]


def read(tree: Tree, leaf: int) -> str:
    tokens = np.concatenate([tree.tokens_of(int(node)) for node in path(tree, leaf)])
    return ByteChat().text(tokens.tolist())


def test_a_conversation_is_one_path_of_its_sampled_tokens() -> None:
    tree = does("two_turns", n=3, engine=scripted("alpha"))
    assert kinds(tree) == ["PAOAO"] * 3
    assert read(tree, int(leaves(tree)[0])) == "count task 0alphamorealpha"
    assert set(tree.outcome[counted(tree)].tolist()) == {Outcome.TERMINATED}
    assert tree.success[counted(tree)].tolist() == [Ternary.YES] * 3
    assert sorted(tree.env_reward[tree.env_reward > 0].tolist()) == [1.0] * 3
    assert (tree.source[tree.kind == Kind.ACTION] == Source.SAMPLED).all()


def test_calls_of_tools_are_counted_where_the_request_has_tools() -> None:
    engine = scripted('{"name": "add", "arguments": {}}')
    found = count_first_messages([does("calls_a_tool", engine=engine)])
    assert (found.messages, found.calls) == (1, 1)
    assert count_first_messages([does("two_turns", engine=engine)]).calls == 0, "without tools a call is text"


class Braces(ByteChat):
    """Has a grammar of answers."""

    def call_grammar(self, *_: object, **__: object) -> Grammar:
        return Grammar.of_texts(["{}"])


class Compiling(Scripted):
    """Counts the grammars that are compiled beside its work, and takes those below a size."""

    compiled = 0
    most = 1000

    async def compile_grammar(self, grammar: Grammar, stop_tokens: Sequence[int]) -> None:
        del stop_tokens
        self.compiled += 1
        if len(grammar.lark) > self.most:
            raise ValueError("got a grammar that is too large")


@pytest.mark.parametrize("most", [1000, 0])
def test_a_grammar_is_compiled_before_the_engine_is_asked(most: int) -> None:
    asked: list[Request] = []

    def script(request: Request) -> tuple[int, ...]:
        assert engine.compiled == 1
        asked.append(request)
        return ByteChat().write("{}")

    engine = Compiling(script=script)
    engine.most = most
    tree = grow(Program(agent=PLAIN, n=1, retries=0), {"does": "asks_for_json"}, engine=engine, renderer=Braces())[0]
    assert engine.compiled == 1
    assert len(asked) == (most > 0)
    assert (Outcome.TERMINATED in tree.outcome) == (most > 0)


def test_a_changed_history_is_an_edit() -> None:
    tree = does("edits")
    assert kinds(tree) == ["PAEAO"]
    edit = int(np.flatnonzero(tree.kind == Kind.EDIT)[0])
    assert ByteChat().text(tree.tokens_of(edit).tolist()) == "onerewrittentwo"


def test_parallel_calls_are_branches_whatever_their_order() -> None:
    def drawn() -> Engine:
        return Scripted(script=lambda request: ByteChat().write(f"{request.seed % 10**9:09}"))

    tree = does("parallel", engine=drawn())
    assert kinds(tree) == ["PAOAO"] * 3
    assert {read(tree, leaf)[13:19] for leaf in leaves(tree).tolist()} == {"part 0", "part 1", "part 2"}
    assert len({read(tree, leaf)[19:] for leaf in leaves(tree).tolist()}) == 3
    first = tree.parent[np.flatnonzero(tree.kind == Kind.OBSERVATION)[0]]
    assert (tree.parent == first).sum() == 3
    again = does("parallel", engine=drawn())
    assert again.token.tolist() == tree.token.tolist()


def test_a_sub_agent_is_an_edit_beside_the_path_of_its_caller() -> None:
    tree = does("helper")
    assert sorted(kinds(tree)) == ["PAEAO", "PAOAO"]


def test_several_choices_are_siblings() -> None:
    tree = does("samples")
    assert kinds(tree) == ["PAO"] * 3


def test_episodes_with_different_first_prompts_share_their_common_prefix() -> None:
    program = Program(agent=f"{AGENTS / 'random_start.py'}:agent", n=4, retries=0)
    tree = grow(program, {})[0]
    assert kinds(tree) == ["POAO"] * 4
    assert ByteChat().text(tree.tokens_of(0).tolist()).startswith("start ")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("crash", "exit status 1"),
        ("hang", "killed after"),
        ("memory", "MemoryError"),
        ("nothing", "without a completed call"),
        ("garbage", "need a number"),
    ],
)
def test_faults_of_a_program_fail_the_path(name: str, fault: str) -> None:
    tree = does(name, deadline_s=2.0 if name == "hang" else 60.0, memory_gib=4.0)
    assert [Outcome(each) for each in tree.outcome[leaves(tree)]] == [Outcome.FAILED]
    assert fault in str(tree.info[int(leaves(tree)[0])]["fault"])
    assert not len(counted(tree))


def test_a_limit_of_turns_truncates() -> None:
    tree = does("forever", limits=Limits(turns=3))
    assert kinds(tree) == ["PAOAOAO"]
    leaf = int(leaves(tree)[0])
    assert (tree.outcome[leaf], tree.truncated_by[leaf]) == (Outcome.TRUNCATED, TruncatedBy.TURNS)


def test_the_context_truncates() -> None:
    tree = does("forever", limits=Limits(turns=100), engine=scripted("alpha", context_tokens=60))
    leaf = int(leaves(tree)[0])
    assert (tree.outcome[leaf], tree.truncated_by[leaf]) == (Outcome.TRUNCATED, TruncatedBy.CONTEXT)


def test_a_first_prompt_that_exceeds_the_context_is_a_fault() -> None:
    tree = does("forever", engine=scripted("alpha", context_tokens=2))
    leaf = int(leaves(tree)[0])
    assert tree.outcome[leaf] == Outcome.FAILED
    assert "need fewer than the model's maximum context length of 2 tokens" in str(tree.info[leaf]["fault"])


@pytest.mark.parametrize(
    ("data", "unsuccessful", "end"),
    [
        ({"prints": "done"}, (), (Outcome.TERMINATED, 1.0)),
        ({"prints": '{"reward": 0.25}'}, (), (Outcome.TERMINATED, 0.25)),
        ({"prints": '{"success": false}'}, (), (Outcome.TERMINATED, 0.0)),
        ({"prints": "0.5\n0.25"}, (), (Outcome.TERMINATED, 0.25)),
        ({"prints": "false"}, (), (Outcome.TERMINATED, 0.0)),
        ({"prints": "NaN"}, (), (Outcome.FAILED, 0.0)),
        ({"prints": "[0.25]"}, (), (Outcome.TERMINATED, 1.0)),
        ({"prints": "", "status": 3}, (3,), (Outcome.TERMINATED, 0.0)),
        ({"prints": "", "status": 3}, (), (Outcome.FAILED, 0.0)),
        ({"prints": '{"score": 1}'}, (), (Outcome.FAILED, 0.0)),
        ({"prints": "{'success': False}"}, (), (Outcome.FAILED, 0.0)),
        ({"prints": '{"reward": 0.0, "note": "a\u2028b"}'}, (), (Outcome.TERMINATED, 0.0)),
    ],
)
def test_the_result_of_a_command(
    data: dict[str, object], unsuccessful: tuple[int, ...], end: tuple[Outcome, float]
) -> None:
    program = Program(agent=COMMAND, n=1, retries=0, unsuccessful=unsuccessful)
    tree = grow(program, data)[0]
    leaf = int(leaves(tree)[0])
    assert (tree.outcome[leaf], tree.env_reward.sum()) == end


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x7f", "\U000e0001", "\\n", "}\u2028{"])
@pytest.mark.parametrize("indent", [None, 0, 4])
def test_a_result_is_read_whatever_its_strings_hold(mark: str, indent: int | None) -> None:
    result = {"reward": 0.0, "success": False, "note": f"a{mark}b", "parts": [{"reward": 1}, {}]}
    written = json.dumps(result, ensure_ascii=False, indent=indent)
    for out in (written, f'a log\n{{"reward": 1}}\n\n{written}\n\n', f"{{\n{written}\r\n"):
        assert json_at_end(out) == result
        assert read_result(json_at_end(out)) == Result(reward=0.0, success=False)


@pytest.mark.parametrize("reward", [10**400, 1e308, math.nan, "1"])
def test_a_reward_that_is_no_number_or_too_large_is_no_result(reward: object) -> None:
    assert read_result(reward) is read_result({"reward": reward}) is None


@pytest.mark.parametrize(
    "out", ["", "\n", "done", "[" * 50_000, "\\boxed{4}", '{"reward": 1}\nthe end', "{\n", "{a: 1}"]
)
def test_an_output_without_a_result(out: str) -> None:
    assert json_at_end(out) == out
    assert not may_end_with_result(out)


@pytest.mark.parametrize(
    "out",
    [
        "{'reward': 0.5}",
        "log\n{'note': 'x',\n 'success': False}\n",
        '{"reward": 0.5, "note": None}',
        '{"reward": 0.5,\n}',
        "x" * KEEP_BYTES,
    ],
)
def test_an_output_that_ends_with_a_result_in_another_form_is_a_fault(out: str) -> None:
    assert json_at_end(out) == out
    assert may_end_with_result(out)


def test_a_reward_function_reads_task_and_result() -> None:
    program = Program(agent=COMMAND, n=1, retries=0, reward=f"{AGENTS / 'judge.py'}:reward")
    tree = grow(program, {"prints": "5", "answer": 5}, {"prints": "6", "answer": 5})
    assert [each.env_reward.sum() for each in tree] == [1.0, 0.0]


def test_a_reward_function_cannot_change_task_and_result() -> None:
    program = Program(agent=COMMAND, n=2, retries=0, reward=f"{AGENTS / 'judge.py'}:changing")
    (tree,) = grow(program, {"prints": '{"parts": [0.25]}', "rewards": [0.5]})
    assert sorted(tree.env_reward[tree.env_reward > 0].tolist()) == [0.75, 0.75]
    assert tree.task.data["rewards"] == [0.5]
    assert [tree.info[int(leaf)]["result"] for leaf in leaves(tree)] == [{"parts": [0.25]}] * 2


def test_failed_episodes_are_retried_with_other_samples() -> None:
    tree = grow(Program(agent=PLAIN, n=1, retries=2), {"does": "crash"})[0]
    assert kinds(tree) == ["PAO"] * 3
    assert len(counted(tree)) == 0


def test_so_many_processes_at_a_time(tmp_path: Path) -> None:
    data = {"does": "alone", "file": str(tmp_path / "running")}
    (tree,) = grow(Program(agent=PLAIN, n=4, retries=0, processes=1), data)
    assert tree.success[counted(tree)].tolist() == [Ternary.YES] * 4


def test_sixty_four_episodes_at_once() -> None:
    program = Program(agent=PLAIN, n=8, retries=0)
    trees = grow(program, *[{"does": "two_turns"}] * 8, engine=scripted("alpha", latency_s=0.05))
    assert [len(counted(tree)) for tree in trees] == [8] * 8


@pytest.mark.parametrize("agent", [PLAIN, COMMAND])
def test_a_daemon_ends_with_its_episode(agent: str, tmp_path: Path) -> None:
    data = {"does": "daemon", "file": str(tmp_path / "pid"), "prints": '{"reward": 0.5}'}
    (tree,) = grow(Program(agent=agent, n=1, retries=0), data)
    assert tree.env_reward.max() == 0.5
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_a_daemon_ends_though_its_keeper_was_killed(tmp_path: Path) -> None:
    tree = grow(Program(agent=PLAIN, n=1, retries=0), {"does": "kills_its_keeper", "file": str(tmp_path / "pid")})[0]
    assert "signal 9" in str(tree.info[int(leaves(tree)[0])]["fault"])
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_a_forked_child_gives_no_result() -> None:
    tree = does("two_returns")
    assert tree.env_reward[tree.env_reward > 0].tolist() == [1.0]


def test_no_process_is_left() -> None:
    before = _children()
    does("hang", deadline_s=1.0)
    end = time.monotonic() + 120
    while not _children() <= before:
        assert time.monotonic() < end
        time.sleep(0.02)


def _children() -> set[str]:
    found = set()
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(AGENTS).encode() in each.read_bytes():
                found.add(each.parent.name)
        except OSError:
            continue
    return found
