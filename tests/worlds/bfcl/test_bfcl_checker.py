"""Results and verdicts are those of the package's own executor and checker."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from tests.worlds.bfcl import bfcl_official as official

from bough.tree import Action, Outcome, Task, ToolCall
from bough.worlds.bfcl import Bfcl
from bough.worlds.bfcl.apis import execute, load_apis
from bough.worlds.bfcl.entries import Entry, entries
from bough.worlds.bfcl.solution import solution

ENV = Bfcl(executes_unlisted=True, max_steps=50)
"""Two episodes have more than 20 calls in a user turn."""

DONE = Action(text="Done.")


def outcome(entry: Entry, turns: list[list[ToolCall]]) -> bool:
    """Whether an agent with these calls succeeds."""
    state = ENV.start(Task(id="a", data={"episode": entry.name}))
    for calls in turns:
        for call in calls:
            state = ENV.step(state, Action(calls=(call,))).state
        step = ENV.step(state, DONE)
        state = step.state
    assert step.outcome == Outcome.TERMINATED
    return step.success


def mutated(turns: list[list[ToolCall]], rng: random.Random) -> list[list[ToolCall]]:
    """A copy with one change: a call left out, doubled, changed, moved, or exchanged with the next."""
    copies = [[*calls] for calls in turns]
    at = rng.choice([index for index, calls in enumerate(copies) if calls])
    calls, kind = copies[at], rng.choice(("drop", "double", "change", "move", "swap", "look"))
    index = rng.randrange(len(calls))
    call = calls[index]
    if kind == "drop":
        del calls[index]
    elif kind == "double":
        calls.insert(index, call)
    elif kind == "swap":
        calls.append(calls.pop(index))
    elif kind == "look":
        calls.insert(index, ToolCall(name=rng.choice(("pwd", "ls", "get_account_info", "nothing")), arguments={}))
    elif kind == "move" and at + 1 < len(copies):
        copies[at + 1].insert(0, calls.pop(index))
    elif call.arguments:
        name = rng.choice([*call.arguments])
        value = call.arguments[name]
        other = {bool: True, int: 3, float: 2.5, str: "other"}.get(type(value), [])
        calls[index] = replace(call, arguments={**call.arguments, name: other})
    return copies


def test_results_are_the_package_s_own_in_all_800_episodes() -> None:
    assert len(entries()) == 800
    for entry in entries().values():
        mine = [[*turn.results] for turn in solution(entry.name).turns]
        assert mine == official.results(entry, entry.truth), entry.name


@pytest.mark.parametrize(
    ("number", "call"),
    [
        (0, ToolCall(name="cd", arguments={})),
        (0, ToolCall(name="cd", arguments={"folder": 3})),
        (0, ToolCall(name="cd", arguments={"folder": "document", "more": 1})),
        (0, ToolCall(name="nothing", arguments={})),
        (0, ToolCall(name="mkdir", arguments={"dir_name": "new"})),
        (0, ToolCall(name="echo", arguments={"content": "a", "file_name": "document"})),
        (0, ToolCall(name="find", arguments={"name": None})),
        (0, ToolCall(name="get_user_tweets", arguments={"username": "analyst_pro"})),
    ],
)
def test_results_of_wrong_calls_are_the_package_s_own(number: int, call: ToolCall) -> None:
    entry = entries()[f"multi_turn_base_{number}"]
    apis = load_apis(entry.classes, entry.config, long_context=False)
    assert [[execute(apis, call)]] == official.results(entry, [[official.written(call)]])


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(name="logarithm", arguments={"value": 10, "base": 3, "precision": 30}),
        ToolCall(name="square_root", arguments={"number": 2, "precision": 30}),
        ToolCall(name="power", arguments={"base": 10, "exponent": 5000}),
        ToolCall(name="power", arguments={"base": 2, "exponent": 100_000_000}),
        ToolCall(name="divide", arguments={"a": 1, "b": 0}),
        ToolCall(name="mean", arguments={"numbers": ["a"]}),
    ],
    ids=official.written,
)
def test_results_of_arithmetic_are_the_package_s_own(call: ToolCall) -> None:
    entry = next(entry for entry in entries().values() if "MathAPI" in entry.classes)
    apis = load_apis(entry.classes, entry.config, long_context=False)
    mine = execute(apis, call)
    if call.arguments.get("exponent") == 100_000_000:  # would take minutes in the package
        call = ToolCall(name="power", arguments={"base": 2, "exponent": 100_000})
    assert [mine.partition(";")[0]] == [
        each.partition(";")[0] for each in official.results(entry, [[official.written(call)]])[0]
    ]


def test_verdicts_on_the_ground_truth_and_on_changed_ones_are_the_package_s_own() -> None:
    rng = random.Random(0)
    verdicts: Counter[bool] = Counter()
    for entry in [*entries().values()][::2]:
        truth = [[*turn.calls] for turn in solution(entry.name).turns]
        assert official.verdict(entry, truth)
        changed = mutated(truth, rng)
        good = official.verdict(entry, changed)
        assert outcome(entry, changed) == good, (entry.name, changed)
        verdicts[good] += 1
    assert verdicts[False] > 150, "most changes matter"
    assert verdicts[True] > 25, "some do not"
