"""Reward functions of two forms: of one answer, and of lists of answers with the columns of their tasks, as in TRL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, cast

from bough.env.reward_number import function_name, reward_number, wrong_result
from bough.tree import copied_fields
from bough.usercode.address import find_function
from bough.usercode.loop import synchronous
from bough.usercode.origin import definition

NEED = "a function (completions, **columns) -> list of numbers, or (task, answer) -> number"

NO_COLUMNS = ("prompt", "completion", "completion_ids")
"""Columns of a task that TRL does not hand on."""

OF_TRAINER = ("completion_ids", "trainer_state", "environments")
"""Arguments of TRL's trainer that an environment does not have."""

LOGS = ("log_metric", "log_extra")
"""Functions that TRL hands to a reward function, for numbers and texts of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The result of a reward function for one answer.

    Attributes:
        value: The reward; None where the function does not rate this task.
        metrics: The numbers that it logged, by name.
        extra: The values that it logged for the answer, by name.
    """

    value: bool | float | None
    metrics: Mapping[str, float]
    extra: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardFunction:
    """A reward function, called for one answer at a time.

    Attributes:
        name: Its name, for metrics.
        function: The function; an async one is awaited at each call.
        batched: Whether it takes lists, by keyword: `prompts`, `completions` and the columns, and returns a list.
        names: Its keyword parameters; None where it takes any.
        required: Those without a default.
    """

    name: str
    function: Callable[..., Any]
    batched: bool
    names: frozenset[str] | None = None
    required: frozenset[str] = field(default=frozenset())

    def check_row(self, row: Mapping[str, object], where: str) -> None:
        """Compare the columns of a task with the parameters.

        Raises:
            ValueError: when a parameter without a default has no column.
        """
        missing = sorted(self.required - row.keys() - {"prompts", "completions", *LOGS})
        if self.batched and missing:
            raise ValueError(
                f"{where}: got the columns {', '.join(row)}; need {missing[0]!r}, which the reward function "
                f"{self.name} ({definition(self.function)}) takes"
            )

    def __call__(self, row: Mapping[str, object], prompt: object, answer: str) -> Score:
        """Rates an answer.

        Args:
            row: The task. The function receives a copy.
            prompt: The prompt, a text or a list of messages; the answer has the same form.
            answer: The text.

        Raises:
            EnvFault: when the result is no number, or no list with one number or None.
            Exception: the function's own.
        """
        call, own = synchronous(self.function), copied_fields(row)
        if not self.batched:
            return Score(value=reward_number(call(own, answer), self.function), metrics={}, extra={})
        metrics, extra = dict[str, float](), dict[str, object]()
        given: dict[str, object] = {name: [value] for name, value in own.items() if name not in NO_COLUMNS}
        completion = answer if isinstance(prompt, str) else [{"role": "assistant", "content": answer}]

        def log_metric(name: object, value: object) -> None:
            number = float(reward_number(value, self.function, "as a metric of"))
            metrics[self._new_name("log_metric", name, metrics)] = number

        def log_extra(name: object, values: object) -> None:
            extra[self._new_name("log_extra", name, extra)] = self._only(values, "for log_extra in")

        given |= {"prompts": [prompt], "completions": [completion]}
        given |= {"log_metric": log_metric, "log_extra": log_extra}
        result = call(**{name: each for name, each in given.items() if self.names is None or name in self.names})
        return Score(value=self._value(result), metrics=metrics, extra=extra)

    def _value(self, result: object) -> bool | float | None:
        """The number in a result; None where the function does not rate the task."""
        value = self._only(result, "")
        return None if value is None else reward_number(value, self.function)

    def _only(self, values: object, what: str) -> object:
        """The only element of a list, with one for each completion."""
        try:
            found: list[object] = [] if isinstance(values, str | Mapping) else [*cast("Any", values)]
        except TypeError:
            found = []
        if len(found) != 1:
            need = "a list with one value for each completion, here one"
            if not what:
                need = "a list with one number for each completion, here one; None for a task that it does not rate"
            raise wrong_result(cast("object", values), self.function, need, what)
        return found[0]

    def _new_name(self, function: str, name: object, logged: Mapping[str, object]) -> str:
        """A name under which a call of `log_metric` or `log_extra` keeps its value."""
        if isinstance(name, str) and name in logged:
            raise wrong_result(name, self.function, "each name once for an answer", f"as a second {function} in")
        if isinstance(name, str) and name:
            return name
        raise wrong_result(
            name, self.function, f"a text, as in {function}('NAME', ...)", f"as the name of {function} in"
        )


def reward_function(address: str) -> RewardFunction:
    """The reward function of an address.

    Raises:
        ValueError: when there is none, or its parameters are of neither form.
    """
    function = find_function(address)
    parameters = signature(function).parameters.values()
    keywords = [each for each in parameters if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    anything = any(each.kind is Parameter.VAR_KEYWORD for each in parameters)
    places = [each for each in parameters if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    names = frozenset(each.name for each in keywords)
    required = frozenset(each.name for each in keywords if each.default is Parameter.empty)
    got = f"the reward function {function_name(function)}{signature(function)} ({definition(function)})"
    name = address.rpartition(":")[2]
    if "completions" in names or (anything and not places):
        if missing := sorted(required.intersection(OF_TRAINER)):
            raise ValueError(f"got {got}; need one without {missing[0]!r}, which only TRL's trainer has, or a default")
        return RewardFunction(
            name=name, function=function, batched=True, names=None if anything else names, required=required
        )
    needed = [each for each in places if each.default is Parameter.empty]
    if "prompts" in names or len(places) < 2 or len(needed) > 2 or {*required} - {each.name for each in places}:
        raise ValueError(f"got {got}; need {NEED}")
    return RewardFunction(name=name, function=function, batched=False)
