"""Validated environment calls: every error inside an environment becomes an `EnvFault`."""

import json
from asyncio import CancelledError
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

from bough.env.env import Env, EnvFault, Oracle, Split, State, Step, UserCodeError, seats_of
from bough.tree import Action, AgentAction, Message, Outcome, Task, Tool, message_record
from bough.tree.reward_range import MOST_REWARD
from bough.usercode.guards import contained
from bough.usercode.origin import describe, place, shorten

FINITE = f"a finite float of at most {MOST_REWARD:g}"

ENDINGS = (Outcome.OPEN, Outcome.TERMINATED, Outcome.TRUNCATED)

Piece = TypeVar("Piece", State, Step)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedEnv:
    """Calls an environment in this process and validates the results.

    NumPy scalars in the results are converted to Python's, so JSON can write them and every process can unpickle them.

    Raises:
        EnvFault: from every call, when the environment raises or returns the wrong type. The message has the file and
            line of the user's code.
        ImportError: from every call, when an environment of Bough lacks an extra.
    """

    env: Env

    @property
    def name(self) -> str:
        """The environment's class name, for messages."""
        return type(self.env).__name__

    def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """Calls `Env.tasks`; its ValueError passes through, as in `start`.

        `Task.data` is returned after a JSON round trip: tuples become lists, keys become strings.

        Raises:
            ValueError: when the result is not `count` tasks with different ids, or JSON cannot write one of them.
        """
        with self._guard("tasks", of_task=True):
            answer = cast("object", self.env.tasks(split, count, seed))
        call = f"{self.name}.tasks({split!r}, {count}, ...)"
        items = list(cast("Iterable[object]", answer)) if isinstance(answer, Iterable) else [answer]
        wrong = [item for item in items if not isinstance(item, Task)]
        if wrong:
            raise ValueError(f"{call}: got {_shown(wrong[0])}; need a list of Task")
        tasks = cast("list[Task]", items)
        different = len({task.id for task in tasks})
        if (len(tasks), different) != (count, count):
            raise ValueError(
                f"{call}: got {len(tasks)} tasks with {different} different ids; need {count} of each; for fewer set "
                f"tasks.count={different} (evaluation.tasks.count for held-out tasks)"
            )
        return tuple(_as_json(task, call) for task in tasks)

    def start(self, task: Task) -> State:
        """Calls `Env.start` with a copy of the task; its ValueError passes through: a bad task is a user error.

        Raises:
            UserCodeError: when the user's code raises a ValueError.
        """
        with self._guard("start", of_task=True):
            answer = self.env.start(task.copy())
        return self._state(answer, "start")

    def step(self, state: State, action: AgentAction) -> Step:
        """`Env.step`."""
        with self._guard("step"):
            answer = self.env.step(state, action)
        return self._step(answer)

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Calls `Oracle.plan`; returns None when the environment is no oracle."""
        if not isinstance(self.env, Oracle):
            return None
        with self._guard("plan"):
            answer = self.env.plan(state)
        if answer is None or _is_plan(answer):
            return answer
        raise self._wrong("plan", _shown(answer), "a tuple of strings or Action, or None")

    @contextmanager
    def _guard(self, call: str, *, of_task: bool = False) -> Generator[None]:
        """Converts an exception of the environment to `EnvFault`, except for a wrong task or a missing extra.

        The process afterwards is as before; see `contained`.
        """
        try:
            with contained(f"{self.name}.{call}"):
                yield
        except EnvFault as fault:
            raise EnvFault(shorten(str(fault))) from fault.__cause__
        except (Exception, SystemExit, CancelledError, GeneratorExit) as broken:
            # The call does not await: a cancellation is that of the environment's own client.
            message = f"{self.name}.{call} raised {describe(broken)}"
            if of_task and isinstance(broken, ValueError):
                if place(broken):
                    raise UserCodeError(message) from broken
                raise
            if isinstance(broken, ImportError) and not place(broken):
                raise
            raise EnvFault(message) from broken

    def _step(self, step: object) -> Step:
        if not isinstance(step, Step):
            raise self._wrong("step", _shown(step), "a Step")
        step = _plain_fields(step, "reward", "valid", "success", "replayed_steps")
        reward, outcome = cast("object", step.reward), cast("object", step.outcome)
        if not isinstance(reward, int | float) or not abs(reward) <= MOST_REWARD:
            raise self._wrong("step", f"Step.reward = {_shown(reward)}", FINITE)
        replayed = cast("object", step.replayed_steps)
        if not isinstance(replayed, int) or replayed < 0:
            raise self._wrong("step", f"Step.replayed_steps = {_shown(replayed)}", "a whole number, 0 or more")
        if not isinstance(cast("object", step.info), Mapping):
            raise self._wrong("step", f"Step.info = {_shown(step.info)}", "a mapping")
        if not isinstance(outcome, Outcome) or outcome not in ENDINGS:
            raise self._wrong("step", f"Step.outcome = {_shown(outcome)}", "OPEN, TERMINATED or TRUNCATED")
        for field, flag in (("valid", cast("object", step.valid)), ("success", cast("object", step.success))):
            if not isinstance(flag, int) or flag not in (0, 1):
                raise self._wrong("step", f"Step.{field} = {_shown(flag)}", "True or False")
        state = self._state(step.state, "step")
        if step.payoffs or step.successes:
            self._check_seats(step)
        plain = (step.valid is True or step.valid is False) and (step.success is True or step.success is False)
        if plain and state is step.state and not step.info:
            return step
        try:
            info = {str(key): self._plain(value, f"Step.info[{key!r}]") for key, value in step.info.items()}
        except RecursionError as error:
            raise self._wrong("step", "Step.info that contains itself", "a value that JSON can write") from error
        return replace(step, state=state, valid=bool(step.valid), success=bool(step.success), info=info)

    def _state(self, state: object, call: str) -> State:
        if not isinstance(state, State):
            raise self._wrong(call, _shown(state), "a State")
        state = _plain_fields(state, "observation", "key")
        observed = _texts(state.observation)
        if observed is None:
            raise self._wrong(
                call, f"State.observation = {_shown(state.observation)}", "a string, or a tuple of Message"
            )
        if not _is_tuple_of(state.tools, Tool):
            raise self._wrong(call, f"State.tools = {_shown(state.tools)}", "a tuple of Tool")
        if not isinstance(cast("object", state.seat), str):
            raise self._wrong(call, f"State.seat = {_shown(state.seat)}", "a string")
        # A state without a seat, in an environment without any, is checked without the slower protocol.
        has_seats = bool(state.seat) or hasattr(self.env, "seats")
        seats: Mapping[str, str] = seats_of(self.env) if has_seats else {}
        if state.seat not in seats and (seats or state.seat):
            raise self._wrong(call, f"State.seat = {_shown(state.seat)}", f"one of {[*seats]}" if seats else "no seat")
        texts: dict[str, object] = {"observation": observed, "key": state.key}
        for field, text in texts.items():
            if not isinstance(text, str):
                raise self._wrong(call, f"State.{field} = {_shown(text)}", "a string")
            if not _is_unicode(text):
                raise self._wrong(call, f"State.{field} = {_shown(text)}", "a string without lone surrogates")
        actions = state.admissible
        if actions is not None and not (_is_texts(actions) and _is_unicode("".join(actions))):
            raise self._wrong(call, f"State.admissible = {_shown(state.admissible)}", "a tuple of strings, or None")
        return state

    def _check_seats(self, step: Step) -> None:
        seats = seats_of(self.env)
        for field, by_seat in (("payoffs", step.payoffs), ("successes", step.successes)):
            if unknown := [name for name in by_seat if name not in seats]:
                raise self._wrong("step", f"Step.{field} of {unknown}", f"seats among {[*seats]}")
        for name, payoff in step.payoffs.items():
            if not isinstance(cast("object", payoff), int | float) or not abs(payoff) <= MOST_REWARD:
                raise self._wrong("step", f"Step.payoffs[{name!r}] = {_shown(payoff)}", FINITE)
        for name, success in step.successes.items():
            if not isinstance(cast("object", success), bool):
                raise self._wrong("step", f"Step.successes[{name!r}] = {_shown(success)}", "True or False")

    def _plain(self, value: object, where: str) -> object:
        """Returns `value` as a value that JSON can write."""
        if isinstance(value, np.generic | np.ndarray):
            value = cast("object", value.tolist())
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            items = cast("Mapping[object, object]", value).items()
            return {str(key): self._plain(item, f"{where}[{key!r}]") for key, item in items}
        if isinstance(value, list | tuple):
            return [self._plain(item, where) for item in cast("Sequence[object]", value)]
        raise self._wrong("step", f"{where} = {_shown(value)}", "a value that JSON can write")

    def _wrong(self, call: str, got: str, need: str) -> EnvFault:
        return EnvFault(f"{self.name}.{call}: got {got}; need {need}")


def _plain_fields(piece: Piece, *names: str) -> Piece:
    """Returns `piece` with NumPy scalars in the fields `names` converted to Python's; `piece` itself without any."""
    values: dict[str, object] = {name: getattr(piece, name) for name in names}
    plain: dict[str, Any] = {
        name: cast("np.generic", value).item()
        for name, value in values.items()
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    }
    return replace(piece, **plain) if plain else piece


def _as_json(task: Task, call: str) -> Task:
    """Returns the task with its data after a JSON round trip."""
    if not _is_unicode(task.id):
        raise ValueError(f"{call}: got the task id {task.id!r}; need one without lone surrogates")
    try:
        data = json.loads(json.dumps(dict(task.data), default=_python_value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{call}: task {task.id!r}: got data that JSON cannot write ({error}); need numbers, texts, lists, mappings"
        ) from error
    return task if data == task.data else replace(task, data=data)


def _python_value(value: object) -> object:
    """Converts a NumPy value to Python, for `json.dumps`."""
    if isinstance(value, np.generic | np.ndarray):
        return cast("object", value.tolist())
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _is_unicode(text: str) -> bool:
    """Whether UTF-8 can encode a string."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(observation: object) -> str | None:
    """All texts of an observation; None for a value that is none."""
    if isinstance(observation, str):
        return observation
    if not _is_tuple_of(observation, Message) or not observation:
        return None
    return json.dumps([message_record(each) for each in cast("tuple[Message, ...]", observation)], ensure_ascii=False)


def _is_tuple_of(value: object, kind: type) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, kind) for each in cast("tuple[object, ...]", value))


def _is_plan(answer: object) -> TypeGuard[tuple[AgentAction, ...]]:
    return isinstance(answer, tuple) and all(
        isinstance(each, str | Action) for each in cast("tuple[object, ...]", answer)
    )


def _is_texts(answer: object) -> bool:
    return isinstance(answer, tuple) and all(isinstance(text, str) for text in cast("tuple[object, ...]", answer))


def _shown(answer: object) -> str:
    """Formats a value with its type, shortened for a message."""
    text = repr(answer)
    return f"{text if len(text) <= 80 else text[:77] + '...'} of type {type(answer).__name__}"
