"""A tool that runs Python, in environments with and without a state."""

from collections.abc import Mapping
from typing import Any

import pytest

from bough.env import Branching, Sandbox, ToolsEnv, call, python, run_python, stateless, tools_env
from bough.env.tools.function_tool import function_tool
from bough.tree import Action, plain_text

pytestmark = pytest.mark.usefixtures("sandbox")

TASKS = [{"prompt": f"{n} boxes hold {n + 1} pens each. How many pens?", "answer": n * (n + 1)} for n in range(40)]


def counted(_: object, row: Mapping[str, Any], answer: str) -> bool:
    return answer == str(row["answer"])


def opened(row: Mapping[str, Any]) -> list[str]:
    return [row["prompt"]]


def remember(notes: list[str], note: str) -> str:
    """Keeps a note."""
    notes.append(note)
    return " ".join(notes)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("6 * 7", "42"),
        ("print('a')\n'b'", "a\n'b'"),
        ("x = 3", "no output"),
        ("print('before')\n1 / 0", 'before\nTraceback (most recent call last):\n  File "main.py", line 2'),
        ("while True: pass", "error: the program took too long"),
        ("x = [0] * 10**9", "error: the program needs too much memory"),
        ("while True: print('x' * 1000)", "error: the program wrote too much"),
        ("import ctypes; ctypes.string_at(0)", "error: the program crashed"),
        ("import sys; sys.exit(3)", "error: exit status 3"),
        ("\udc80", "SyntaxError"),
    ],
)
def test_what_a_model_reads(code: str, shown: str) -> None:
    assert shown in run_python(code, Sandbox(wall_s=30, cpu_s=1))


def test_long_output_is_cut_in_the_middle() -> None:
    shown = python("print('a' * 5000 + 'b' * 5000)")
    assert len(shown) < 2100
    assert (shown[0], shown[-1]) == ("a", "b")
    assert "... 8000 characters left out ..." in shown


def test_the_tool_in_an_environment_without_a_state() -> None:
    env = tools_env(tools=[python], tasks=TASKS, reward=counted)
    assert isinstance(env, ToolsEnv)
    assert env.branching is Branching.COPY
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    assert state.tools[0].schema["required"] == ["code"]
    product = str(task.data["prompt"]).split()
    step = env.step(state, call(python, code=f"{product[0]} * {product[3]}"))
    assert env.step(state, call(python, code=f"{product[0]} * {product[3]}")) == step
    assert env.step(step.state, Action(text=plain_text(step.state.observation))).success


def test_the_tool_beside_tools_with_a_state() -> None:
    env = tools_env(tools=[remember, python], tasks=TASKS, reward=counted, state=opened)
    state = env.start(env.tasks("train", 1, 0)[0])
    step = env.step(state, Action(calls=(*call(python, code="2 + 2").calls, *call(remember, note="x").calls)))
    first, second = (message.content for message in step.state.observation)  # type: ignore[union-attr]
    assert first == "4"
    assert second.endswith(" x")


def test_a_stateless_tool_never_receives_the_state() -> None:
    @stateless
    def double(n: int) -> int:
        return 2 * n

    tool = function_tool(double, takes_state=True)
    assert tool.tool.schema["required"] == ["n"]
    assert tool("state", {"n": 2}) == "4"
