"""A hook's state is a dataclass: what it holds comes back bit for bit, and another one is refused."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.trees import chains, rewarded

from bough.hooks.hook_state import LazyPart, StateMismatch, restore, save
from bough.tree import Rewarded, StageError, Task


@dataclass(slots=True, kw_only=True)
class Row:
    value: float
    text: NDArray[np.int32]


class Weights:
    """A network of one array."""

    def __init__(self) -> None:
        self.weight = np.zeros(2)

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"weight": self.weight}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        if state["weight"].shape != (2,):
            raise ValueError("got another weight")
        self.weight = state["weight"]


@dataclass(slots=True, kw_only=True)
class State:
    rows: dict[int, list[Row]] = field(default_factory=dict[int, list[Row]])
    tasks: deque[tuple[Task, float | None]] = field(default_factory=deque[tuple[Task, float | None]])
    paths: list[Rewarded] = field(default_factory=list[Rewarded])
    fixed: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 3)))
    grows: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    steps: int = 0
    model: LazyPart[Weights] = field(default_factory=lambda: LazyPart(Weights))


def full() -> State:
    state = State(
        rows={7: [Row(value=0.1, text=np.arange(3, dtype=np.int32)), Row(value=-np.inf, text=np.zeros(0, np.int32))]},
        tasks=deque([(Task(id="ä", start=("go",), data={"a": [1]}), None), (Task(id="b"), 0.5)]),
        paths=[rewarded(chains([1.0, 0.5]))],
        fixed=np.full((2, 3), 1 / 3),
        grows=np.arange(6).reshape(3, 2),
        steps=3,
    )
    state.model().weight = np.asarray([1.0, np.nan])
    return state


def test_all_values_come_back_bit_for_bit() -> None:
    one, other = full(), State()
    arrays = save(one)
    one.model().weight[0] = 5.0
    restore(other, arrays)
    again = save(other)
    assert arrays.keys() == again.keys()
    assert all(arrays[name].tobytes() == again[name].tobytes() for name in arrays)
    assert other.rows[7][0].text.dtype == np.int32
    assert list(other.tasks) == list(one.tasks)
    assert isinstance(other.tasks, deque)
    assert other.paths[0].returns().tolist() == [1.0, 0.5]
    assert other.model().weight[0] == 1.0, "a copy"
    new = State(steps=5)
    new.model()
    restore(new, save(State()))
    assert (new.rows, new.steps, new.model.part) == ({}, 0, None)


@dataclass(slots=True, kw_only=True)
class Fewer:
    steps: int = 0


@dataclass(slots=True, kw_only=True)
class Text:
    steps: str = ""


@pytest.mark.parametrize(
    ("stored", "into", "message"),
    [
        (Fewer(), State(), r"State: got the fields \['steps'\]; need \['fixed', 'grows',"),
        (Fewer(), Text(), "Text.steps: got 0; need str"),
        (None, State(), r"got \[\]; need the state that this version saves"),
        (State(), None, "need the state that this version saves"),
        (State(fixed=np.zeros((2, 2))), State(), r"State.fixed: got float64 of shape \(2, 2\); need .*\(2, 3\)"),
        (State(fixed=np.zeros((2, 3), np.float32)), State(), "State.fixed: got float32"),
        (State(grows=np.zeros((4, 3), np.int64)), State(), r"State.grows: got int64 of shape \(4, 3\)"),
    ],
)
def test_another_state_is_refused(stored: object, into: object, message: str) -> None:
    with pytest.raises(StateMismatch, match=message):
        restore(into, save(stored))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"more": np.zeros(1)}, "State: got the unknown 'more'"),
        ({"pool_float64": np.zeros(400)}, "State: got 400 elements of float64; need"),
        ({"pool_float64": np.zeros(1)}, "need an array whose elements are in the checkpoint"),
        ({"model/weight": np.zeros(3)}, "State.model: got another weight"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes: dict[str, NDArray[Any]], message: str) -> None:
    with pytest.raises(StateMismatch, match=message):
        restore(State(), save(full()) | changes)


def test_a_value_of_another_kind_cannot_be_saved() -> None:
    @dataclass
    class Wrong:
        things: Any

    with pytest.raises(StageError, match=r"Wrong.things: got set; need JSON values, arrays, trees"):
        save(Wrong({1}))


class Mode(StrEnum):
    FAST = "fast"


@dataclass(kw_only=True)
class Choices:
    last: deque[int] = field(default_factory=lambda: deque([0], maxlen=2))
    mode: Literal["up", "down"] | None = None
    row: int | str | Row = 0
    some: NDArray[np.float64] | int = 0
    plain: list = field(default_factory=list)  # type: ignore[type-arg]


def test_bounded_queues_literals_and_alternatives_come_back() -> None:
    row = Row(value=1.0, text=np.arange(2, dtype=np.int32))
    one = Choices(last=deque([1, 2], maxlen=2), mode="down", row=row, some=np.arange(2.0), plain=[1, "a"])
    other = Choices()
    restore(other, save(one))
    other.last.append(3)
    assert list(other.last) == [2, 3]
    assert (other.mode, other.plain) == ("down", [1, "a"])
    assert isinstance(other.row, Row)
    assert other.row.text.tolist() == [0, 1]
    assert np.asarray(other.some).tolist() == [0, 1]


@pytest.mark.parametrize("value", [Counter("a"), Mode.FAST])
def test_a_value_that_would_come_back_as_another_is_not_saved(value: Any) -> None:
    with pytest.raises(StageError, match=r"Choices.row: got (Counter|Mode); need JSON values"):
        save(Choices(row=value))
