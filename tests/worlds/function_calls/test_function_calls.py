"""Function calls against their references: the match rule, the environment, and the filter of rows."""

import ast
import inspect
import json
import random
from dataclasses import replace
from functools import cache

import pytest

from bough.context import ThinkingCalls
from bough.policy.calls import Hermes, Pythonic
from bough.tree import Action, BadCall, Outcome, Task, ToolCall
from bough.worlds.function_calls import FunctionCalls, function_calls_env
from bough.worlds.function_calls.match_calls import match_calls, same_value
from bough.worlds.function_calls.tool_requests import tool_requests

ENV = function_calls_env(tool_requests)


@cache
def tasks() -> list[Task]:
    """Sixty tasks; they are drawn in the first test that needs one, as all rows are checked for it."""
    return ENV.tasks("train", 60, 0)


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("given", "allowed", "same"),
    [
        (1, 1.0, True),
        (1.0, 1, False),
        (1, 1, True),
        (True, 1, False),
        (1, True, False),
        ("1", 1, False),
        ("New York, NY", "new-york ny", True),
        ("rome", "oslo", False),
        ("+", "-", False),
        ("+", " + ", True),
        ([1, "A."], [1.0, "a"], True),
        ([1, 2], [2, 1], False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (None, None, True),
    ],
)
def test_values(given: object, allowed: object, same: bool) -> None:
    assert same_value(given, allowed) is same


def test_calls_match_in_any_order_and_each_reference_once() -> None:
    """The first call fits both references, the second only the first: an assignment exists whatever the order."""
    references = [("f", {"a": [1, 2]}), ("f", {"a": [2]})]
    assert match_calls([call("f", a=2), call("f", a=1)], references)
    assert match_calls([call("f", a=1), call("f", a=2)], references)
    assert not match_calls([call("f", a=1), call("f", a=1)], references)
    assert not match_calls([call("f", a=2)], references)
    assert not match_calls([call("g", a=2), call("f", a=1)], references)
    assert not match_calls([BadCall(text="f(", problem="none")], references[1:])
    assert match_calls([], [])


def test_arguments_are_left_out_only_where_the_empty_text_is_allowed() -> None:
    references = [("f", {"a": [1], "b": ["", 3]})]
    assert match_calls([call("f", a=1)], references)
    assert match_calls([call("f", b=3, a=1)], references)
    assert not match_calls([call("f", b=3)], references)
    assert not match_calls([call("f", a=1, c=1)], references)
    assert not match_calls([call("f", a=1, b=4)], references)


def changed(value: object) -> object:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


@pytest.mark.parametrize("number", range(20))
def test_equal_calls_pay_one_and_any_change_pays_nothing(number: int) -> None:
    state = ENV.start(tasks()[number])
    (right,) = ENV.plan(state)
    assert right.text.startswith("<think>")
    shuffled = [
        replace(each, arguments=dict(random.Random(1).sample([*each.arguments.items()], len(each.arguments))))
        for each in reversed(right.calls)
        if isinstance(each, ToolCall)
    ]
    step = ENV.step(state, replace(right, calls=tuple(shuffled)))
    assert (step.reward, step.success, step.valid, step.outcome) == (1.0, True, True, Outcome.TERMINATED)
    for place, each in enumerate(shuffled):
        for key, value in each.arguments.items():
            wrong = replace(each, arguments={**each.arguments, key: changed(value)})
            calls = (*shuffled[:place], wrong, *shuffled[place + 1 :])
            assert ENV.step(state, replace(right, calls=calls)).reward == 0.0
    assert ENV.step(state, replace(right, calls=right.calls + right.calls[:1])).reward == 0.0
    assert ENV.step(state, replace(right, text="")).reward == 0.0, "the thought is required"
    assert ENV.step(state, replace(right, text="<think> </think>")).reward == 0.0
    assert ENV.step(step.state, right).valid is False


@pytest.mark.parametrize("form", [Pythonic(), Hermes()], ids=["python", "json"])
def test_what_a_model_writes_is_read_without_running_it(form: Pythonic | Hermes) -> None:
    """Each family's text, and a call that would do something if it were run."""
    for task in tasks()[:10]:
        state = ENV.start(task)
        (right,) = ENV.plan(state)
        assert ENV.step(state, ThinkingCalls().read(form.parse(form.write(right))).action).success
    state = ENV.start(tasks()[0])
    evil = form.parse("<think>x</think>[play(song=__import__('os').getcwd())]")
    assert ENV.step(state, ThinkingCalls().read(evil).action).reward == 0.0
    for module in (match_calls,):
        tree = ast.parse(inspect.getsource(inspect.getmodule(module)))  # type: ignore[arg-type]
        assert not {"eval", "exec"} & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_the_thinking_is_annotated() -> None:
    found = ThinkingCalls().read(Action(text="<think>play</think> so", calls=(call("play", song="tea"),)))
    assert found.spans["thought"] == (7, 11)
    assert ThinkingCalls().read(Action(text="play</think>")).spans == {"thought": (0, 4)}
    assert not ThinkingCalls().read(Action(text="<think>play")).spans


def test_rows_whose_reference_does_not_fit_are_named_or_left_out() -> None:
    """A wrong type, an unknown function, an argument outside of the schema, and rows without tools."""
    good = next(row for row in tool_requests() if row["split"] == "train" and len(row["calls"]) == 1)
    wrong: list[dict[str, object]] = [
        {"calls": [{"play": {"song": [1]}}]},
        {"calls": [{"dance": {}}]},
        {"calls": [{"play": {"song": ["tea"], "loud": ["", True]}}]},
        {"calls": [{"convert": {"amount": [1.5], "to": ["usd", "yen"]}}]},
        {"calls": [{"play": {}}]},
        {"tools": None},
    ]
    rows = [good, *({**good, "prompt": f"row {number}", **change} for number, change in enumerate(wrong))]
    env = function_calls_env(rows)
    with pytest.raises(ValueError, match=r"FunctionCalls.rows: got 6 rows whose reference calls do not fit, first .*:"):
        env.tasks("train", 1, 0)
    kept = function_calls_env(rows, drop_invalid=True)
    assert [task.data["prompt"] for task in kept.tasks("train", 1, 0)] == [good["prompt"]]
    assert len(kept.invalid) == 6
    with pytest.raises(ValueError, match=r"got count=2; need 0 to 1, the rows of split 'train' without the 6"):
        kept.tasks("train", 2, 0)


def test_a_request_that_no_function_serves_wants_a_text() -> None:
    row: dict[str, object] = {**next(tool_requests()), "prompt": "sing", "calls": [], "split": "train"}
    env = FunctionCalls(rows=(json.dumps(row),), thinking=False)
    state = env.start(env.tasks("train", 1, 0)[0])
    assert env.step(state, Action(text="I cannot sing.")).success
    assert not env.step(state, Action(calls=(call("play", song="tea"),))).success
