"""Generated results of environments: a right step, or one fault that names the call."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.fuzz import inputs

from bough.env import Branching, EnvFault, State, Step
from bough.env.checked import ValidatedEnv
from bough.tree import Message, Outcome, Task

TASK = Task(id="one")

Draw = np.random.Generator


class Returning:
    """An environment that returns anything."""

    branching = Branching.COPY
    instructions = "Go."

    def __init__(self, start: object, step: object) -> None:
        self._start, self._step = start, step

    def tasks(self, split: str, count: int, seed: int) -> Any:
        del split, seed
        return [TASK] * count

    def start(self, task: Task) -> Any:
        del task
        return self._start

    def step(self, state: State, action: object) -> Any:
        del state, action
        return self._step


def cyclic() -> object:
    found: list[object] = []
    found.append(found)
    return found


WHOLE: tuple[Callable[[Draw], object], ...] = (
    lambda draw: draw.integers(-3, 4),
    lambda draw: int(draw.integers(1, 9)) ** 400,
    lambda draw: float(draw.choice([0.5, math.nan, math.inf, -math.inf, 1e308, -0.0])),
    lambda draw: draw.choice([np.float32(0.5), np.float16(math.nan), np.float64(1e308)]),
    lambda draw: np.full(tuple(draw.integers(0, 3, draw.integers(0, 3))), 1.0),
    lambda _: None,
    lambda draw: bool(draw.integers(2)),
    lambda draw: complex(draw.random(), 1.0),
    lambda draw: "".join(map(chr, draw.choice([0, 27, 65, 0x2028, 0xD800, 0x1F600, 0xFFFF], draw.integers(0, 6)))),
    lambda draw: 10 ** int(draw.integers(0, 6)) * "long ",
    lambda draw: draw.bytes(3),
    lambda _: cyclic(),
    lambda draw: tuple(str(number) for number in range(draw.integers(0, 5))),
    lambda _: (Message(role="tool", content="a"),),
    lambda _: {"a": cyclic()},
    lambda draw: {"a": [float(draw.random()), (None, {"b": np.int64(2)})]},
    lambda draw: draw.choice(list(Outcome)),
    lambda _: State(observation="s", key="k", value=0),
    lambda _: object(),
)


def anything(draw: Draw) -> object:
    return WHOLE[draw.integers(len(WHOLE))](draw)


def changed(draw: Draw, right: dict[str, object]) -> dict[str, Any]:
    """The fields, some of which have another value."""
    return {name: anything(draw) if draw.random() < 0.25 else value for name, value in right.items()}


def state(draw: Draw) -> object:
    right = {"observation": "o", "key": "k", "value": 0, "admissible": ("a", "b"), "tools": (), "seat": ""}
    return anything(draw) if draw.random() < 0.1 else State(**changed(draw, right))


def step(draw: Draw) -> object:
    right = {"reward": 0.5, "outcome": Outcome.OPEN, "valid": True, "success": False, "info": {"a": 1}}
    return anything(draw) if draw.random() < 0.1 else Step(state=state(draw), **changed(draw, right))  # pyright: ignore


def test_results_of_any_kind() -> None:
    right = 0
    for number, draw in inputs("environments"):
        env = ValidatedEnv(env=Returning(state(draw), step(draw)))  # pyright: ignore
        fault = ""
        try:
            after = env.step(env.start(TASK), "go")
        except EnvFault as found:
            fault = str(found)
        if fault:
            assert fault.startswith(("Returning.start", "Returning.step")), (number, fault)
            assert len(fault) < 5000, number
            continue
        assert math.isfinite(after.reward), number
        assert after.outcome in (Outcome.OPEN, Outcome.TERMINATED, Outcome.TRUNCATED), number
        assert (type(after.valid), type(after.success)) == (bool, bool), number
        json.dumps(after.info)
        right += 1
    assert right
