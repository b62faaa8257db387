"""Checks that calls that fit no tool give an invalid step, never an exception."""

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, cast

from bough.env import EnvFault, State, Step, check_call
from bough.evaluate.envs.actor import takes_calls
from bough.evaluate.envs.arguments import arguments_for
from bough.evaluate.envs.comparison import shown
from bough.evaluate.envs.report import EnvCheck, failed, not_applicable, passed
from bough.evaluate.envs.timed import within
from bough.evaluate.envs.trial import Trial
from bough.tree import Action, BadCall, Tool, ToolCall, message_record, messages
from bough.tree.seeds import derive

MOST_CALLS = 50
WRONG_VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    10**30,
    float("nan"),
    float("inf"),
    "",
    "\x00",
    "a\ud800",
    "x" * 100_000,
    [],
    [[[[1]]]],
    {},
    {"a": {"b": None}},
)
"""Values for arguments: some of them have the wrong type for any schema."""


def check_calls(trial: Trial) -> EnvCheck:
    """Unknown tools, missing, extra and wrong arguments, malformed and very many calls: typed steps.

    A call that does not fit its schema gives valid=False. Each call gets one message of role "tool", in order; where
    another seat acts next, as with `SimulatedTools`, they come later.
    """
    if not takes_calls(trial.env.env):
        return not_applicable("no calls of tools")
    state = trial.branching_walk(trial.walks.walks[0]).states[0]
    rng = Random(derive(trial.sizes.seed, "calls"))
    count = invalid = 0
    for name, calls in within(trial.sizes.seconds, _actions(state, rng)):
        count += 1
        figure = f"{count} actions"
        try:
            step = trial.wrapped.step(state, Action(calls=calls))
        except EnvFault as fault:
            return failed(
                figure,
                got=f"{name}: {fault}",
                need="valid=False and a message for a call that cannot be executed",
                do="check calls by bough.env.check_call before they are executed",
            )
        invalid += not step.valid
        problem = next((each for call in calls if (each := check_call(call, state.tools))), "")
        if problem and step.valid:
            return failed(
                figure,
                got=f"valid=True for {name}: {problem[:200]}",
                need="valid=False for a call that fits no tool",
                do="set Step.valid by bough.env.check_call",
            )
        if step.state.seat == state.seat and (wrong := _wrong_messages(step, calls)):
            return failed(
                figure,
                got=f"{name}: {wrong}",
                need="one message of role tool for each call, in order, with its call_id",
                do="answer every call, also one that is not executed",
            )
    return passed(f"{count} actions, {invalid} invalid", actions=count, invalid=invalid)


def _actions(state: State, rng: Random) -> Iterator[tuple[str, tuple[ToolCall | BadCall, ...]]]:
    """Actions that fit no tool, and some that fit with odd values; each with its name."""
    bad = BadCall(text="<tool_call>{", problem="got no JSON; need an object")
    yield "a malformed call", (bad,)
    for name in ("no_such_tool", "", "\x00", "a\ud800", "__class__", "x" * 10_000):
        yield f"the unknown tool {name[:20]!r}", (ToolCall(name=name, arguments={}, call_id="c1"),)
    for tool in state.tools:
        for name, arguments in _arguments(tool, rng):
            yield f"{tool.name} with {name}", (ToolCall(name=tool.name, arguments=arguments, call_id="c1"),)
    for tool in state.tools[:1]:
        call = arguments_for(tool.schema, rng, ["a"])
        many = [ToolCall(name=tool.name, arguments=call, call_id=f"c{number}") for number in range(MOST_CALLS)]
        yield f"{MOST_CALLS} calls of {tool.name}", tuple(many)
        yield "a malformed call between two others", (many[0], bad, many[1])


def _arguments(tool: Tool, rng: Random) -> Iterator[tuple[str, dict[str, object]]]:
    """Arguments of a tool that do not fit, and some that do with odd values."""
    good = arguments_for(tool.schema, rng, ["a"])
    properties = cast("Mapping[str, Any]", tool.schema.get("properties", {}))
    yield "no arguments", {}
    yield "an extra argument", {**good, "no_such_argument": 1}
    for name in good:
        yield f"no {name}", {key: value for key, value in good.items() if key != name}
    for name in properties:
        for value in WRONG_VALUES:
            yield f"{name}={shown(value)[:40]}", {**good, name: value}
    yield "every argument as text", {name: json.dumps(value, default=str) for name, value in good.items()}


def _wrong_messages(step: Step, calls: tuple[ToolCall | BadCall, ...]) -> str:
    """What is wrong with the messages of role "tool" of a step; "" when there is one for each call."""
    found = [message_record(each) for each in messages(step.state.observation) if each.role == "tool"]
    ids = [call.call_id if isinstance(call, ToolCall) else "" for call in calls]
    got = [each.get("call_id", "") for each in found]
    return "" if got == ids else f"messages for the calls {shown(got)} of {shown(ids)}"
