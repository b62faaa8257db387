"""Results of tools: what becomes a text for the model, and what is a fault with its place."""

# ruff: noqa: ARG001

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pytest
from tests.fuzz import inputs

from bough.env import EnvFault, InProcessHost, ToolError, ToolsEnv, Workers, call, tools_env
from bough.env.tools.function_tool import function_tool
from bough.tree import TOOL_EXCEPTIONS, Message, Outcome
from bough.worlds.function_calls import function_calls_env


@dataclass
class Point:
    x: Any


LOOP: list[Any] = []
LOOP.append(LOOP)

TEXTS: dict[str, tuple[Any, str]] = {
    "text": ("a\u2028b", "a\u2028b"),
    "nothing": (None, "ok"),
    "int": (np.int64(3), "3"),
    "int8": (np.int8(-3), "-3"),
    "uint64": (np.uint64(2**63), "9223372036854775808"),
    "float64": (np.float64(0.5), "0.5"),
    "float32": (np.float32(0.5), "0.5"),
    "bool": (np.bool_(True), "true"),
    "str": (np.str_("tea"), "tea"),
    "scalar array": (np.array(3), "3"),
    "array": (np.arange(3), "[0, 1, 2]"),
    "matrix": (np.eye(2, dtype=np.int32), "[[1, 0], [0, 1]]"),
    "empty array": (np.zeros((0, 2)), "[]"),
    "array of texts": (np.array(["tea", "oil"]), '["tea", "oil"]'),
    "in a mapping": ({"a": np.int64(1), "b": [np.float32(1), (np.bool_(0),)]}, '{"a": 1, "b": [1.0, [false]]}'),
    "as a key": ({np.int64(1): "a"}, '{"1": "a"}'),
    "in an object": (Point(np.arange(2)), '{"x": [0, 1]}'),
    "in a set": ({np.int64(1)}, "[1]"),
    "date": ([date(2026, 1, 2)], '["2026-01-02"]'),
    "bytes of text": (b"tea", '"tea"'),
}  # fmt: skip

FAULTS: dict[str, Any] = {
    "object": object(),
    "function": len,
    "class": Point,
    "bytes": b"\xff\xfe",
    "bytes in a list": [b"\xff"],
    "object in a mapping": {"a": {"b": [object()]}},
    "object as a key": {object(): 1},
    "array of objects": np.array([object()], dtype=object),
    "loop": LOOP,
    "range": range(3),
    "exception": ValueError("returned, not raised"),
    "iterator": iter([1, 2]),
    "map": map(str, [1, 2]),
    "expression": (n for n in range(3)),
    "surrogates in bytes": {"a": b"\xed\xa0\x80"},
}


NAMES = (
    "<|im_start|>",
    "<tool_call>",
    "[TOOL_CALLS]",
    "<\uff5ctool\u2581sep\uff5c>",
    "a\nb",
    "a\n",
    "",
    "</s>",
    "x" * 129,
)


@pytest.mark.parametrize("name", NAMES)
def test_names_like_marks_are_refused(name: str) -> None:
    def tool() -> str:
        """Looks."""
        return ""

    tool.__name__ = name
    with pytest.raises(ValueError, match=r"got the tool name .*; need 1 to 128 letters"):
        function_tool(tool, takes_state=False)
    row = {"prompt": "x", "split": "train", "tools": [{"name": name, "parameters": {}}], "calls": []}
    env = function_calls_env([row])
    with pytest.raises(ValueError, match=r"got the tool name .*; need 1 to 128 letters"):
        env.tasks("train", 1, 0)


def give(name: str) -> Any:
    """Give a value."""
    return {**{key: value for key, (value, _) in TEXTS.items()}, **FAULTS}[name]


async def waits(n: int) -> int:
    """Wait."""
    return n


def starts(n: int) -> Any:
    """Return a coroutine."""
    return waits(n)


async def streams(n: int) -> AsyncIterator[int]:
    """Stream."""
    yield n


def streamed(n: int) -> Any:
    """Return an async generator."""
    return streams(n)


def yields(n: int) -> Iterator[int]:
    """Yield."""
    yield n


def wrong(name: str) -> str:
    """Raise."""
    errors: Mapping[str, Any] = {
        "index": [],
        "key": {},
        "text": "x",
        "tool": ToolError("no"),
        "value": ValueError("no"),
    }
    error = errors[name]
    if isinstance(error, Exception):
        raise error
    return error[7] if name != "zero" else 1 / 0


def divide(n: int) -> float:
    """Divide."""
    return 1 / n


def reward(state: object, row: object) -> bool:
    return True


def env_of(*tools: Any) -> ToolsEnv:
    return tools_env(tools=tools, tasks=[{"prompt": "x", "split": "train"}], reward=reward)  # type: ignore[return-value]


def text_of(step: Any) -> str:
    (message,) = step.state.observation
    assert isinstance(message, Message)
    return message.content


@pytest.mark.parametrize("name", TEXTS)
def test_a_result_is_a_text(name: str) -> None:
    env = env_of(give)
    step = env.step(env.start(env.tasks("train", 1, 0)[0]), call(give, name=name))
    assert (text_of(step), step.valid, step.outcome, step.info) == (TEXTS[name][1], True, Outcome.OPEN, {})


@pytest.mark.parametrize("name", FAULTS)
def test_a_result_that_cannot_be_written_is_a_fault_of_the_tool_with_its_line(name: str) -> None:
    env = env_of(give)
    line = give.__code__.co_firstlineno
    kind = type(FAULTS[name]).__name__
    with pytest.raises(
        EnvFault,
        match=rf"tool give \(.*test_tool_results\.py, line {line}\): got a result of type {kind} that JSON cannot",
    ):
        env.step(env.start(env.tasks("train", 1, 0)[0]), call(give, name=name))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("tool", [starts, streamed])
def test_a_result_that_waits_is_a_fault(tool: Any) -> None:
    env = env_of(tool)

    async def stepped() -> None:
        host = InProcessHost(env=env)
        await host.step(await host.start(env.tasks("train", 1, 0)[0]), call(tool, n=1))

    with pytest.raises(
        EnvFault, match=rf"tool {tool.__name__} \(.*, line \d+\): got a result of type (async_gen|corout)"
    ):
        asyncio.run(stepped())


@pytest.mark.parametrize(
    ("tool", "message"),
    [(streams, "got a generator; need a function"), (yields, "got a generator; need a function")],
)
def test_functions_that_do_not_return_their_result_are_refused(tool: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"tool {tool.__name__}: {message}"):
        env_of(tool)


def slips(kind: str) -> str:
    """Has mistakes of its author."""
    if kind == "name":
        return unheard_of  # type: ignore[name-defined] # noqa: F821
    return kind.uper() if kind == "attribute" else kind + 1  # type: ignore[attr-defined, operator]


def test_a_mistake_in_a_tool_is_a_fault_with_its_line_and_no_answer() -> None:
    env = env_of(slips)

    async def stepped(kind: str) -> None:
        host = InProcessHost(env=env)
        await host.step(await host.start(env.tasks("train", 1, 0)[0]), call(slips, kind=kind))

    for kind, error in (("name", "NameError"), ("attribute", "AttributeError"), ("type", "TypeError")):
        with pytest.raises(EnvFault, match=rf"{error}: .*test_tool_results\.py, line \d+, in slips"):
            asyncio.run(stepped(kind))


def test_the_fault_of_a_worker_has_the_line_too() -> None:
    async def stepped() -> None:
        workers = Workers(env=env_of(give), count=1)
        try:
            (task,) = await workers.tasks("train", 1, 0)
            state = await workers.start(task)
            assert text_of(await workers.step(state, call(give, name="matrix"))) == TEXTS["matrix"][1]
            with pytest.raises(EnvFault, match=r"test_tool_results\.py, line \d+\): got a result of type object"):
                await workers.step(state, call(give, name="object"))
        finally:
            await workers.close()

    asyncio.run(stepped())


@pytest.mark.parametrize(
    ("called", "text", "place"),
    [
        (call(wrong, name="index"), "error: IndexError: list index out of range", "in wrong"),
        (call(wrong, name="key"), "error: KeyError: 7", "in wrong"),
        (call(wrong, name="none"), "error: KeyError: 'none'", "in wrong"),
        (call(divide, n=0), "error: ZeroDivisionError: division by zero", "in divide"),
        (call(wrong, name="tool"), "error: no", ""),
        (call(wrong, name="value"), "error: no", ""),
    ],
)
def test_exceptions_that_may_be_mistakes_are_recorded_with_their_line(called: Any, text: str, place: str) -> None:
    env = env_of(wrong, divide)
    step = env.step(env.start(env.tasks("train", 1, 0)[0]), called)
    assert (text_of(step), step.valid) == (text, True)
    recorded = step.info.get(TOOL_EXCEPTIONS, [])
    assert bool(recorded) == bool(place)
    assert all("test_tool_results.py, line " in each and each.endswith(f"{place})") for each in recorded)
    json.dumps(dict(step.info))


def test_generated_results_are_text_or_a_fault() -> None:
    made: list[Any] = [None]

    def tool() -> Any:
        """Gives what was made."""
        return made[0]

    found, texts = function_tool(tool, takes_state=False), 0
    for number, draw in inputs("tool results"):
        made[0] = generated(draw, 4)
        with suppress(EnvFault):
            assert isinstance(found(None, {}), str), number
            texts += 1
    assert texts > 100


def generated(draw: np.random.Generator, depth: int) -> Any:
    def pick(*values: Any) -> Any:
        return values[int(draw.integers(len(values)))]

    plain = ("", "a\ud800", "\x1b[2J", 0, 10**5000, 1e308, float("nan"), True, None, b"\xff", b"tea", date(2026, 1, 2))
    odd = (object(), LOOP, 1j, np.float16(2), np.array([object()]), np.arange(3), iter([1]), Point, Point(x=1), len)
    if not depth or draw.integers(2):
        return pick(*plain, *odd) if draw.integers(2) else pick(*plain)
    inner = [generated(draw, depth - 1) for _ in range(draw.integers(4))]
    return pick(inner, tuple(inner), {pick("a", 1, None, (1, 2), b"k"): each for each in inner}, Point(x=inner))
