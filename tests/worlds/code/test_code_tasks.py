"""Programming tasks: the reference passes, other programs do not, and no program learns what is expected."""

import json
import pickle
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Sandbox, SandboxError, State, Step, call
from bough.tree import Action, BadCall, Outcome, Task, ToolCall, plain_text
from bough.worlds.code import CodeTasks, CodeTools
from bough.worlds.code.canonical import canonical, output_lines
from bough.worlds.code.env import code_of
from bough.worlds.code.equal_texts import equal_texts
from bough.worlds.code.family import Tier
from bough.worlds.code.problem import FAMILIES, read_problem
from bough.worlds.code.program_test import assert_test, call_test, input_test, run_tests

pytestmark = pytest.mark.usefixtures("sandbox")

BOX = Sandbox(wall_s=30, cpu_s=3)
TIERS: tuple[Tier, ...] = get_args(Tier)
ROW = {
    "prompt": "Write f(x): x plus 1.",
    "tests": ["assert f(1) == 2", "assert f(5) == 6"],
    "reference": "f = int(1).__add__",
}


def tasks_of(tmp_path: Path, *rows: dict[str, Any], **fields: Any) -> tuple[CodeTasks, list[State]]:
    """An environment of rows, and the first state of each, in the order of the rows."""
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps({"split": "test", "id": f"row {n}", **row}) for n, row in enumerate(rows)))
    env = CodeTasks(file=str(file), sandbox=BOX, **fields)
    tasks = sorted(env.tasks("test", len(rows), 0), key=lambda task: task.id)
    return env, [env.start(task) for task in tasks]


@pytest.mark.parametrize("tier", TIERS)
def test_the_reference_of_every_family_passes_and_a_constant_does_not(tier: Tier) -> None:
    names = [name for name, family in FAMILIES.items() if family.tier == tier]
    for name in names[:: 3 if tier == "line" else 1]:
        env = CodeTasks(families=(name,), hidden=6, sandbox=BOX)
        (task,) = env.tasks("train", 1, 3)
        state = env.start(task)
        step = env.step(state, (env.plan(state) or ("",))[0])
        assert (step.reward, step.success, step.valid, step.outcome) == (1.0, True, True, Outcome.TERMINATED), name
        answer = "7" if tier == "line" else "def f(*_): return 7"
        wrong = env.step(state, answer)
        assert (wrong.success, wrong.valid) == (False, True), name
        assert wrong.reward < 0.5


def test_tasks_follow_from_their_arguments_and_no_task_is_in_two_splits() -> None:
    env = CodeTasks(tiers=TIERS)
    splits = {split: env.tasks(split, 60, 1) for split in ("train", "dev", "test")}
    assert [*splits["train"]] == [*env.tasks("train", 60, 1)]
    assert splits["train"][:5] == env.tasks("train", 5, 1)
    contents = [{(task.data["prompt"], task.data["answer"]) for task in tasks} for tasks in splits.values()]
    assert sum(map(len, contents)) == len(set.union(*contents)) == 180
    for task in splits["test"]:
        assert Task.read(json.loads(json.dumps(task.record()))) == task
        assert read_problem(task.data).record() == task.data


@settings(max_examples=8)
@given(
    answer=st.one_of(
        st.text(), st.binary().map(lambda data: data.decode(errors="surrogateescape")), st.just("x" * 10**6)
    )
)
def test_any_answer_is_a_step(answer: str) -> None:
    env = CodeTasks(families=("times_plus",), hidden=2, sandbox=BOX)
    state = env.start(env.tasks("train", 1, 0)[0])
    step = env.step(state, answer)
    assert step.outcome is Outcome.TERMINATED
    assert not step.success
    assert env.step(state, answer) == step
    assert pickle.loads(pickle.dumps(step)) == step


@pytest.mark.parametrize("answer", ["", "   ", "x = (", "def f(x) return", "\udc80", "a\0b", "some prose"])
def test_an_answer_that_is_no_python_is_not_valid(answer: str) -> None:
    env = CodeTasks(families=("affix",), hidden=2, sandbox=BOX)
    step = env.step(env.start(env.tasks("train", 1, 0)[0]), answer)
    assert (step.valid, step.reward) == (False, 0.0)


def test_the_reward_is_the_share_of_hidden_tests_or_all_or_nothing(tmp_path: Path) -> None:
    row = {**ROW, "tests": [f"assert f({n}) == {n + 1}" for n in range(5)]}
    half = "def f(x): return x + 1 if x < 3 else 0"
    for reward, value in (("share", 1 / 3), ("all", 0.0)):
        env, (state,) = tasks_of(tmp_path, row, visible=2, reward=reward)
        step = env.step(state, half)
        assert step.reward == pytest.approx(value)
        assert not step.success


def test_the_last_code_block_is_the_answer() -> None:
    assert code_of("Try:\n```\na = 1\n```\nbetter:\n```python\nb = 2\n```\n") == "b = 2\n"
    assert code_of("```py\nb = 2") == "b = 2"
    assert code_of("c = 3") == "c = 3"


def test_several_attempts_show_the_visible_tests_and_end_when_they_pass(tmp_path: Path) -> None:
    env, (state,) = tasks_of(tmp_path, ROW, visible=1, attempts=3)
    assert state.observation == "Write f(x): x plus 1.\nTests:\nf(1) == 2"
    first = env.step(state, "def f(x): return x")
    assert (first.outcome, first.reward) == (Outcome.OPEN, 0.0)
    assert first.state.observation == "failed: f(1) == 2, got 1"
    assert env.step(first.state, "def f(x): return x").state.key == first.state.key
    assert env.step(state, "1 / 0").state.observation == "error: ZeroDivisionError: division by zero"
    second = env.step(first.state, "def f(x): return 2")
    assert (second.outcome, second.reward, second.success) == (Outcome.TERMINATED, 0.0, False)
    assert env.plan(second.state) is None
    assert env.step(second.state, "def f(x): return x + 1").outcome is Outcome.TERMINATED
    assert second.state.observation == "passed: f(1) == 2"
    third = env.step(first.state, "def f(x): return x + 1")
    assert (third.reward, third.success) == (1.0, True)


@pytest.mark.parametrize("ends", ["visible", "attempts"])
@pytest.mark.parametrize("visible", [0, 1])
def test_the_last_observation_has_the_results_of_the_tests(tmp_path: Path, ends: str, visible: int) -> None:
    env, (state,) = tasks_of(tmp_path, ROW, visible=visible, ends=ends)
    for answer, shown, hidden in (
        ("def f(x): return x", "failed: f(1) == 2, got 1", "fails a hidden one"),
        ("def f(x): return x + 1", "passed: f(1) == 2", "passes"),
    ):
        step = env.step(state, answer)
        expected = shown if visible else f"There are no visible tests. Your answer {hidden}."
        assert (step.outcome, step.state.observation) == (Outcome.TERMINATED, expected)
        assert step.info.get("visible") == (float(step.success) if visible else None)
    late = env.step(state, "def f(x):\n    while x == 1: pass\n    return x + 1")
    assert late.reward > 0 or not visible, "a visible test that hangs takes no hidden test along"
    assert env.step(state, "def f(").state.observation.startswith("error: ")


def test_rows_of_mbpp_and_humaneval(tmp_path: Path) -> None:
    mbpp = {
        "task_id": 2,
        "text": "Write a function to find the shared elements of two lists.",
        "code": "def shared(a, b):\n    return tuple(set(a) & set(b))",
        "test_list": ["assert set(shared((3, 4), (4, 5))) == {4}", "assert shared((1,), (2,)) == ()"],
        "test_imports": ["import math"],
    }
    humaneval = {
        "task_id": "H/0",
        "prompt": 'from typing import List\n\n\ndef top(xs: List[int]) -> int:\n    """ The largest. """\n',
        "entry_point": "top",
        "canonical_solution": "    return max(xs)\n",
        "test": "M = {}\ndef check(candidate):\n    assert candidate([1, 3]) == 3\n    assert candidate([-1]) < 0\n",
    }
    script = {
        "prompt": "Double the number.",
        "tests": [{"input": "2\n", "output": "4\n"}, {"input": "5", "output": "10"}],
        "reference": "print(int(input()) * 2)",
    }
    valued = {
        "prompt": "f",
        "tests": [{"call": "f(2)", "value": {"a": [2, True]}}],
        "reference": "def f(x): return {'a': (x, True)}",
    }
    env, states = tasks_of(tmp_path, mbpp, humaneval, script, valued)
    for state in states:
        step = env.step(state, (env.plan(state) or ("",))[0])
        assert (step.reward, step.success) == (1.0, True), state.observation
    top = states[1]
    assert env.step(top, "    return 3").reward == 0.5
    assert env.step(top, "def top(xs: List[int]): return max(xs)").success
    assert [test.kind for test in top.value.problem.hidden] == ["call", "check"]  # type: ignore[attr-defined]
    assert "import math" in states[0].value.problem.prefix  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"prompt": "x"}, "no field tests"),
        ({"tests": ["assert 1"]}, "no field prompt"),
        ({"prompt": "x", "tests": []}, "no tests"),
        ({"prompt": "x", "tests": [{"call": "f(1)"}]}, "'value'"),
        ({"prompt": "x", "tests": [3]}, "not subscriptable|not iterable|argument of type"),
    ],
)
def test_rows_that_are_no_tasks(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=rf"rows.jsonl, line 1: got .*({problem}).*need .*prompt"):
        tasks_of(tmp_path, row)


FORGED = """
import os
for descriptor in (1, *range(3, 60)):
    for number in range(9):
        try:
            os.write(descriptor, f"{number}\\tvalue\\t7\\t7\\n{number}\\tpassed\\t\\t\\n".encode())
        except OSError:
            pass
"""
SEARCH = """
import gc, sys
def f(x):
    frame, found = sys._getframe(), [*map(repr, gc.get_objects())]
    while frame:
        found += [*map(repr, frame.f_locals.values()), *map(repr, frame.f_globals.values())]
        frame = frame.f_back
    wanted = int("".join(reversed("546372819")))
    return wanted if any(str(wanted) in each for each in found) else 0
"""
CHEATS = {
    "a value equal to all": "class A:\n    def __eq__(self, other): return True\ndef f(x): return A()",
    "forged results": f"{FORGED}\ndef f(x): return 0",
    "forged results and an early end": f"{FORGED}\nos._exit(0)",
    "a search for the expected value": SEARCH,
    "an early end in a test": "import os\ndef f(x): os._exit(0)",
    "an exception that ends a program": "def f(x): raise SystemExit(0)",
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_program_cannot_pass_without_the_right_values(name: str) -> None:
    tests = tuple(call_test(f"f({n})", 918273645) for n in range(3))
    assert run_tests(CHEATS[name], tests, BOX, 0.5).share == 0.0


COPIES = {
    "buffer": "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())",
    "open": "print(open(0).read())",
    "descriptor": "import os\nprint(os.read(0, 100).decode())",
    "wrapper": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nprint(sys.stdin.read())",
    "closed": "import sys\nprint(input())\nsys.stdout.close()\nsys.stdin.close()",
    "pickled": "import pickle\nclass A: pass\na = pickle.loads(pickle.dumps(A()))\na.x = input()\nprint(a.x)",
}


@pytest.mark.parametrize("name", COPIES)
def test_scripts_read_and_write_in_any_way(name: str) -> None:
    tests = tuple(input_test(text, text) for text in ("one", "a longer é", "2"))
    report = run_tests(COPIES[name], tests, BOX, 0.5)
    assert report.share == 1.0, report


CLASSES = """
from __future__ import annotations
import pickle
from dataclasses import dataclass
from typing import ClassVar
@dataclass
class A:
    x: int
    y: ClassVar[int] = 1
def f(x): return pickle.loads(pickle.dumps(A(x))).x
"""


def test_classes_of_a_solution_belong_to_its_module() -> None:
    report = run_tests(CLASSES, tuple(call_test(f"f({n})", n) for n in range(2)), BOX, 0.5)
    assert report.share == 1.0, report


FLOOD = """
import os
for descriptor in range(3, 30):
    try:
        os.write(descriptor, b"0\\tvalue\\t5\\t" + b"A" * 1500000 + b"\\n-1\\traised\\t\\t" + b"B" * 300000 + b"\\n")
    except OSError:
        pass
def f(x): return 0
"""


def test_the_feedback_of_forged_results_is_short() -> None:
    report = run_tests(FLOOD, (call_test("f(1)", 7), call_test("f(2)", 7)), BOX, 0.5)
    assert max(len(each.got) for each in report.results) == 200
    assert len(report.error) <= 200


def test_a_test_that_hangs_fails_and_those_before_it_count() -> None:
    tests = tuple(call_test(f"f({n})", n) for n in range(4))
    report = run_tests("def f(x):\n    while x == 2: pass\n    return x", tests, BOX, 0.3)
    assert [each.passed for each in report.results] == [True, True, False, False]
    assert report.results[2].got == "TestTimeout: the test took too long"


def test_equal_runs_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = (call_test("f(1)", 2),)
    first = run_tests("def f(x): return x + 1  # once", tests, BOX, 0.5)
    monkeypatch.setattr(Sandbox, "run", None)
    assert run_tests("def f(x): return x + 1  # once", tests, BOX, 0.5) is first


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ([1, (2, 3)], (1.0, [2, 3]), True),
        ({1, 2}, frozenset({2, 1}), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (0.1 + 0.2, 0.3, True),
        (True, 1, True),
        (float("nan"), float("nan"), True),
        (1, "1", False),
        ([1], {1}, False),
        (b"a", "a", False),
        (None, 0, False),
        (0.3, 0.300001, False),
        (10**20, 1e20 + 1, True),
        (10**20, 10**20 + 1, False),
        (2**59, 2.0**59, True),
        (2**59, 2.0**58, False),
        ([2**59, "x"], (2.0**59, "x"), True),
        (3000000000, 0.1 * 3 * 1e10, True),
        (3000000000.0, 0.1 * 3 * 1e10, True),
        (1.1e22, 1.1 * 1e22, True),
        (-(2**59), -(2.0**59), True),
        (str(2**59), str(format(2.0**59, ".9g")), False),
        ("3000000000", "3e+09", False),
        ("'3000000000\"", "'3e+09\"", False),
        (10**400, 1e300, False),
        ({}, set(), False),
        ([{}], [frozenset()], False),
    ],
)
def test_canonical_values(a: object, b: object, equal: bool) -> None:
    assert equal_texts(canonical(a), canonical(b)) == equal_texts(canonical(b), canonical(a)) == equal
    assert canonical(a).isascii()


def test_the_lines_of_an_output_end_at_line_feeds_alone() -> None:
    assert output_lines("\na \r\n b\t\n\n") == "a\n b"
    for mark in "\u2028\u2029\u0085\x0b\x1c":
        assert output_lines(f"a{mark}b") == f"a{mark}b"


def test_any_text_is_compared_in_linear_time() -> None:
    began = time.process_time()
    assert not equal_texts("'" + "\\'" * 50_000, "3e+09")
    assert time.process_time() - began < 1.0


def test_asserts_become_calls_where_they_compare_to_a_literal() -> None:
    assert assert_test("assert f(1, [2]) == {'a': -1}").kind == "call"
    for statement in ("assert f(1)", "assert f(1) == g(2)", "assert f(1) < 3", "x = 3", "assert ("):
        assert assert_test(statement).kind == "check"
    assert input_test("1", "2 \n 3\n\n").expected == r"'2\n 3'"
    with pytest.raises(ValueError, match="got a value of 20002 characters; need 10000"):
        call_test("f()", "x" * 20000)


def calls(*each: ToolCall | BadCall) -> Action:
    return Action(calls=each)


def code_call(name: str, code: object, call_id: str = "") -> ToolCall:
    return ToolCall(name=name, arguments={"code": code}, call_id=call_id)


def seen(step: Step) -> str:
    return plain_text(step.state.observation)


def test_the_agent_tries_tests_and_submits_by_tools(tmp_path: Path) -> None:
    tasks, (state,) = tasks_of(tmp_path, ROW, visible=1)
    env = CodeTools(tasks_of=tasks, max_calls=4)
    state = env.start(tasks.tasks("test", 1, 0)[0])
    assert [tool.name for tool in state.tools] == ["run", "test", "submit"]
    ran = env.step(state, calls(code_call("run", "1 + 1", "a"), code_call("test", "def f(x): return 2", "b")))
    assert [message.call_id for message in ran.state.observation] == ["a", "b"]  # type: ignore[union-attr]
    assert (seen(ran), ran.valid, ran.outcome) == ("2\npassed: f(1) == 2", True, Outcome.OPEN)
    done = env.step(ran.state, calls(code_call("submit", "def f(x): return x + 1"), code_call("run", "1")))
    assert (done.reward, done.success, done.outcome) == (1.0, True, Outcome.TERMINATED)
    assert seen(done) == "submitted\nerror: not executed, the task is over"
    assert env.step(done.state, calls(code_call("run", "1"))).outcome is Outcome.TERMINATED
    wrong = env.step(state, calls(code_call("submit", "def f(x): return 2")))
    assert (wrong.reward, wrong.outcome) == (0.0, Outcome.TERMINATED)


def test_wrong_calls_no_calls_and_too_many_calls() -> None:
    env = CodeTools(tasks_of=CodeTasks(families=("affix",), sandbox=BOX), max_calls=2)
    state = env.start(env.tasks("train", 1, 0)[0])
    for wrong in (
        code_call("run", 3),
        ToolCall(name="run", arguments={}),
        code_call("eval", ""),
        BadCall(text="{", problem="no"),
        BadCall(text="{", problem="no \ud800"),
    ):
        step = env.step(state, calls(wrong))
        assert (step.valid, step.outcome) == (False, Outcome.OPEN)
        assert seen(step).startswith("error: ")
    answered = env.step(state, Action(text="done"))
    assert (answered.valid, answered.outcome, answered.reward) == (False, Outcome.TERMINATED, 0.0)
    many = env.step(state, calls(*[code_call("run", "1")] * 3))
    assert many.outcome is Outcome.TRUNCATED
    assert seen(many).splitlines()[-1] == "error: not executed, the limit is 2 calls"
    assert env.step(state, calls(code_call("run", "\udc80\0"))).valid


def test_the_oracle_of_the_tools() -> None:
    env = CodeTools(tasks_of=CodeTasks(tiers=("line", "hard"), sandbox=BOX))
    for task in env.tasks("dev", 4, 0):
        state = env.start(task)
        plan = env.plan(state) or ()
        assert len(plan) == 2
        for action in plan:
            step = env.step(state, action)
            state = step.state
        assert (step.success, step.outcome) == (True, Outcome.TERMINATED)
        assert env.plan(state) is None
    assert call("run", code="1") == calls(code_call("run", "1"))


def test_settings() -> None:
    for fields, message in (
        (
            {"tiers": ("odd",)},
            r"CodeTasks.tiers: got \('odd',\); need some of line, easy, medium, hard, or \(\) for all",
        ),
        ({"families": ("odd",)}, r"CodeTasks.families: got \('odd',\)"),
        ({"tiers": ()}, "CodeTasks.tiers: got none"),
        ({"attempts": 0}, "CodeTasks.attempts: got 0; need at least"),
        ({"reward": "most"}, "CodeTasks.reward: got 'most'"),
    ):
        with pytest.raises(ValueError, match=message):
            CodeTasks(**fields)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"CodeTools\.max_calls: got 0"):
        CodeTools(max_calls=0)
    for env in (CodeTasks(), CodeTools()):
        with pytest.raises(TypeError, match="got a state with a value of type int"):
            env.step(State(observation="", key="", value=3), "x")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="got the task data"):
            env.start(Task(id="x", data={"prompt": "x"}))


def test_a_machine_without_a_sandbox_is_reported_before_the_first_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Sandbox) -> None:
        raise SandboxError("sandbox: got no program `bwrap`; need bubblewrap")

    monkeypatch.setattr(Sandbox, "check", fails)
    with pytest.raises(ValueError, match="CodeTasks: sandbox: got no program `bwrap`"):
        CodeTasks().tasks("train", 1, 0)


def test_keys_of_ended_episodes_differ_from_open_ones() -> None:
    env = CodeTasks(sandbox=BOX)
    state = env.start(env.tasks("train", 1, 0)[0])
    assert env.step(state, "").state.key != state.key
    tools = CodeTools(tasks_of=env)
    begun = tools.start(env.tasks("train", 1, 0)[0])
    assert tools.step(begun, Action(text="x")).state.key != begun.key
