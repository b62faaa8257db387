"""Calls of an environment whose answers can be trusted: everything that goes wrong inside becomes an `EnvFault`."""

import math
from dataclasses import dataclass
from typing import cast

from bough.env import Env, EnvFault, Oracle, State, Step
from bough.tree import Outcome, Task

ENDINGS = (Outcome.OPEN, Outcome.TERMINATED, Outcome.TRUNCATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An environment, asked in this process.

    Raises:
        EnvFault: from every call, when the environment raised, or answered with the wrong type.
    """

    env: Env

    @property
    def name(self) -> str:
        """The environment's class, for messages."""
        return type(self.env).__name__

    def start(self, task: Task) -> State:
        """`Env.start`; its ValueError passes through, because a bad task is the user's to mend."""
        try:
            answer = self.env.start(task)
        except (EnvFault, ValueError):
            raise
        except Exception as broken:
            raise self._broken("start", broken) from broken
        return self._state(answer, "start")

    def step(self, state: State, action: str) -> Step:
        """`Env.step`."""
        try:
            answer = self.env.step(state, action)
        except EnvFault:
            raise
        except Exception as broken:
            raise self._broken("step", broken) from broken
        return self._step(answer)

    def plan(self, state: State) -> tuple[str, ...] | None:
        """`Oracle.plan`; None when the environment is no oracle."""
        if not isinstance(self.env, Oracle):
            return None
        try:
            answer = self.env.plan(state)
        except EnvFault:
            raise
        except Exception as broken:
            raise self._broken("plan", broken) from broken
        if answer is None or _is_texts(answer):
            return answer
        raise self._wrong("plan", _shown(answer), "a tuple of strings, or None")

    def _step(self, step: object) -> Step:
        if not isinstance(step, Step):
            raise self._wrong("step", _shown(step), "a Step")
        reward, outcome = cast("object", step.reward), cast("object", step.outcome)
        if not isinstance(reward, int | float) or not math.isfinite(reward):
            raise self._wrong("step", f"Step.reward = {_shown(reward)}", "a finite float")
        if not isinstance(outcome, Outcome) or outcome not in ENDINGS:
            raise self._wrong("step", f"Step.outcome = {_shown(outcome)}", "OPEN, TERMINATED or TRUNCATED")
        self._state(step.state, "step")
        return step

    def _state(self, state: object, call: str) -> State:
        if not isinstance(state, State):
            raise self._wrong(call, _shown(state), "a State")
        texts: dict[str, object] = {"observation": state.observation, "key": state.key}
        for field, text in texts.items():
            if not isinstance(text, str):
                raise self._wrong(call, f"State.{field} = {_shown(text)}", "a string")
        if state.admissible is not None and not _is_texts(state.admissible):
            raise self._wrong(call, f"State.admissible = {_shown(state.admissible)}", "a tuple of strings, or None")
        return state

    def _broken(self, call: str, error: Exception) -> EnvFault:
        return EnvFault(f"{self.name}.{call} raised {type(error).__name__}: {error}")

    def _wrong(self, call: str, got: str, need: str) -> EnvFault:
        return EnvFault(f"{self.name}.{call}: got {got}; need {need}")


def _is_texts(answer: object) -> bool:
    return isinstance(answer, tuple) and all(isinstance(text, str) for text in cast("tuple[object, ...]", answer))


def _shown(answer: object) -> str:
    """A value with its type, short enough for a message."""
    text = repr(answer)
    return f"{text if len(text) <= 80 else text[:77] + '...'} of type {type(answer).__name__}"
