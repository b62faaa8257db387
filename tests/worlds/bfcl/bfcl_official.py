"""The package's own executor and checker, without traces of one run in the next."""

import copy
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bough.tree import ToolCall
from bough.worlds.bfcl.entries import Entry

EVAL = "bfcl_eval.eval_checker.multi_turn_eval"
SHARED = {
    "travel_booking": ("CREDIT_CARD_EXTENSION", "BOOKING_RECORD_EXTENSION"),
    "vehicle_control": ("LONG_WEATHER_EXTENSION",),
}
"""Module variables that the API classes change."""


def source(name: str) -> Any:
    return importlib.import_module(f"{EVAL}.func_source_code.{name}")


@contextmanager
def untouched() -> Iterator[Any]:
    """The module with the executor. What the package leaves in its modules is removed at the end."""
    utils = importlib.import_module(f"{EVAL}.multi_turn_utils")
    names = {*vars(utils)}
    before = {(module, name): getattr(source(module), name) for module, each in SHARED.items() for name in each}
    post = source("posting_api").TwitterAPI.post_tweet
    defaults = post.__defaults__
    post.__defaults__ = copy.deepcopy(defaults)
    for (module, name), value in before.items():
        setattr(source(module), name, copy.deepcopy(value))
    try:
        yield utils
    finally:
        for name in {*vars(utils)} - names:
            delattr(utils, name)
        for (module, name), value in before.items():
            setattr(source(module), name, value)
        post.__defaults__ = defaults


def record(entry: Entry) -> dict[str, Any]:
    return {"id": entry.name, "initial_config": entry.config, "involved_classes": [*entry.classes]}


def results(entry: Entry, turns: Sequence[Sequence[str]]) -> list[list[str]]:
    """The package's results of Python calls, by user turn."""
    with untouched() as utils:
        return [
            utils.execute_multi_turn_func_call(
                func_call_list=[*calls],
                initial_config=entry.config,
                involved_classes=[*entry.classes],
                model_name="model",
                test_entry_id=entry.name,
                long_context=entry.category == "long_context",
            )[0]
            for calls in turns
        ]


def verdict(entry: Entry, turns: Sequence[Sequence[ToolCall]]) -> bool:
    """Whether the package's checker accepts calls, one a step."""
    steps = [[[written(call)] for call in calls] for calls in turns]
    truth = [[*calls] for calls in entry.truth]
    with untouched():
        checker = importlib.import_module(f"{EVAL}.multi_turn_checker")
        return checker.multi_turn_checker(steps, truth, record(entry), entry.category, "model")["valid"]


def written(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
