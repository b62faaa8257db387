"""Prompts and reward functions as an environment: one prompt, one answer."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from inspect import iscoroutinefunction
from typing import Annotated, Any, ClassVar, TypeVar

from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.hub_dataset import HubDataset
from bough.env.prompts.reward_function import RewardFunction, Score, reward_function
from bough.env.rows import PROMPT, Lines, RowSource, RowTasks, check_row_file, check_settings, prompt_of, settings_of
from bough.env.state_value import value_of
from bough.needs import ORACLE, WHOLE_TEXT, Need
from bough.piece import NotEmpty, piece
from bough.tree import REWARD_PARTS, Outcome, Task, copied_fields
from bough.usercode.address import address_of, find_function
from bough.usercode.loop import synchronous

Logged = TypeVar("Logged")

LOGGED = "logged"
"""The key of `Step.info` with the values that reward functions logged for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The value of a state of `PromptsEnv`: the task, and whether it is answered."""

    task: Task
    answered: bool = False


@piece
class PromptsEnv:
    """Prompts, each with one answer that functions rate. `prompts_env` makes one; the fields hold addresses.

    The reward is the weighted sum of the functions; one that returns None for an answer is left out of its sum.
    `Step.info` has the reward of each function before its weight, and the numbers that it logged.

    Attributes:
        rows: A path to JSON lines, CSV or Parquet, the address of a function that returns rows, or JSON lines.
        dataset: A data set of the hub, in place of `rows`.
        rewards: Addresses of the reward functions.
        weights: By function, the factor on its reward; () for 1 each.
        success: The address of the function, one of `rewards`, that decides success; "" for the only one.
        success_at: Least reward of that function for a success, where it returns no bool.
        oracle: Address of the function that returns a right answer; "" without one.
        instructions: The system prompt.
        prompt: The column of the prompts.
        name: Begins the ids of tasks.

    Raises:
        ValueError: when a function is not found or has another form, or fields contradict each other.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({WHOLE_TEXT})

    rows: Lines = ()
    dataset: HubDataset | None = None
    rewards: Annotated[tuple[str, ...], NotEmpty("at least one function, each once", different=True)]
    weights: tuple[float, ...] = ()
    success: str = ""
    success_at: float = 1.0
    oracle: str = ""
    instructions: str = ""
    prompt: str = PROMPT
    name: str = "prompts"
    branching = Branching.COPY
    _functions: tuple[RewardFunction, ...] = field(init=False, repr=False, compare=False)
    _tasks: list[RowTasks] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings("PromptsEnv", self.rows, self.dataset)
        functions = tuple(map(reward_function, self.rewards))
        if self.weights and len(self.weights) != len(functions):
            raise ValueError(
                f"PromptsEnv.weights: got {len(self.weights)} weights; need {len(functions)}, one for each function"
            )
        names = [each.name for each in functions]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"PromptsEnv.rewards: got two functions with the name {twice[0]}; need different names")
        if (self.success or len(functions) > 1) and self.success not in self.rewards:
            raise ValueError(
                f"PromptsEnv.success: got {self.success!r}; need the function that decides success, one of the reward "
                f"functions {', '.join(names)}, such as success={names[-1]} in prompts_env; its weight may be 0"
            )
        object.__setattr__(self, "_functions", functions)
        object.__setattr__(self, "_tasks", [])

    def __reduce__(self) -> "tuple[partial[PromptsEnv], tuple[()]]":
        # The functions are imported again by their addresses.
        return partial(PromptsEnv, **{each.name: getattr(self, each.name) for each in fields(self) if each.init}), ()

    @property
    def gives(self) -> frozenset[Need]:
        """An oracle, where there is one."""
        return frozenset({ORACLE} if self.oracle else ())

    @property
    def waits(self) -> bool:
        """Whether several calls may run at a time: where a reward function is async."""
        return any(iscoroutinefunction(each.function) for each in self._functions)

    @property
    def data_hash(self) -> str:
        """SHA-256 of the rows."""
        return self._row_tasks().digest

    def check_files(self) -> None:
        """Checks that the file of rows exists.

        Raises:
            FileNotFoundError: when it does not.
        """
        check_row_file(self.rows, self.name)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split.

        Raises:
            ValueError: when the split has fewer, a row is wrong, or lacks a column of a reward function.
        """
        return self._row_tasks().draw(split, count, seed)

    def start(self, task: Task) -> State:
        """Returns the state with the prompt.

        Raises:
            ValueError: when the task has no prompt, or a system message besides `instructions`.
        """
        messages = prompt_of(self.name, task, self.prompt)
        if self.instructions and messages[0].role == "system":
            raise ValueError(f"{self.name}: task {task.id} got a system message and instructions; need one of the two")
        return State(observation=messages, key=task.id, value=Question(task=task))

    def step(self, state: State, action: str) -> Step:
        """Rates an answer, and ends the episode. An empty answer is rated too, and not valid.

        Raises:
            EnvFault: when a reward function returns no number, none rates the answer, or the one that decides success
            returns None: then the answer is not judged, and its path counts nowhere.
        """
        question = value_of(state, Question, "PromptsEnv")
        if question.answered:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        task = question.task
        scores = [each(task.data, task.data[self.prompt], action) for each in self._functions]
        weights = self.weights or (1.0,) * len(scores)
        rated = [weight * each.value for weight, each in zip(weights, scores, strict=True) if each.value is not None]
        if not rated:
            names = ", ".join(each.name for each in self._functions)
            raise EnvFault(f"{self.name}: task {task.id} got None from {names}; need a number from one of them")
        after = State(observation="", key=f"{task.id} answered", value=Question(task=task, answered=True))
        return Step(
            state=after,
            reward=math.fsum(rated),
            outcome=Outcome.TERMINATED,
            valid=bool(action.strip()),
            success=self._success(scores, task),
            info=self._info(scores),
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the oracle's answer; None without one, and after the answer."""
        question = value_of(state, Question, "PromptsEnv")
        if not self.oracle or question.answered:
            return None
        answer: object = synchronous(find_function(self.oracle))(copied_fields(question.task.data))
        if answer is not None and not isinstance(answer, str):
            raise TypeError(f"plan: got {answer!r:.100}; need the text of an answer, or None")
        return None if answer is None else (answer,)

    def _row_tasks(self) -> RowTasks:
        """The tasks, read at the first use."""
        if not self._tasks:
            found = RowTasks(self.name, self.dataset or self.rows, self.prompt)
            for task in (each for tasks in found.by_split.values() for each in tasks):
                for function in self._functions:
                    function.check_row(task.data, f"{self.name}: task {task.id}")
            self._tasks.append(found)
        return self._tasks[0]

    def _success(self, scores: Sequence[Score], task: Task) -> bool:
        place = self.rewards.index(self.success) if self.success else 0
        value = scores[place].value
        if value is None:
            name = self._functions[place].name
            raise EnvFault(
                f"{self.name}: task {task.id} got None from {name}, which decides success; need True, False or a "
                "number for each task, or success=FUNCTION with one that rates all"
            )
        return value if isinstance(value, bool) else value >= self.success_at

    def _info(self, scores: Sequence[Score]) -> dict[str, object]:
        """The rewards of several functions, and what functions logged."""
        own = {each.name: score.value for each, score in zip(self._functions, scores, strict=True)}
        parts = {name: float(value) for name, value in own.items() if value is not None and len(own) > 1}
        names = own if len(own) > 1 else ()
        logged = self._logged("metric", [each.metrics for each in scores], names)
        extra = self._logged("extra", [each.extra for each in scores])
        info: dict[str, object] = {REWARD_PARTS: {**logged, **parts}} if logged or parts else {}
        return info | ({LOGGED: extra} if extra else {})

    def _logged(
        self, what: str, logged: Sequence[Mapping[str, Logged]], names: Iterable[str] = ()
    ) -> dict[str, Logged]:
        """What each function logged, in one mapping.

        Args:
            what: "metric" or "extra".
            logged: What each function logged, by name.
            names: The names of rewards, which no metric may have.

        Raises:
            EnvFault: when two values have one name, so that one would replace the other.
        """
        found, owner = dict[str, Logged](), dict.fromkeys(names, "the reward of that function")
        for function, own in zip(self._functions, logged, strict=True):
            for name, value in own.items():
                if name in owner:
                    raise EnvFault(
                        f"{self.name}: got the {what} {name!r} of {function.name} beside {owner[name]}; need a name "
                        f"each; rename one in log_{what}, such as {f'{function.name}/{name}'!r}"
                    )
                found[name], owner[name] = value, f"that of {function.name}"
        return found


def prompts_env(
    *,
    tasks: RowSource,
    reward: Callable[..., Any] | Sequence[Callable[..., Any]],
    weights: Sequence[float] = (),
    success: Callable[..., Any] | None = None,
    success_at: float = 1.0,
    plan: Callable[[Any], Any] | None = None,
    instructions: str = "",
    prompt: str = PROMPT,
    name: str = "prompts",
) -> PromptsEnv:
    """Makes an environment of prompts and reward functions, plain or async, which have names at the top of a file.

    A row is a task: its prompt is a text or a list of messages, "split" (else by a hash) and "id" are optional, the
    rest is for the reward functions. A reward function has one of two forms:

    * `reward(task, answer)` returns a number, or True or False, which is the success. `task` is the row.
    * TRL's: `reward(completions, **columns)` takes lists by keyword, also `prompts`, and returns a list of numbers or
      None. With a prompt of messages a completion is a list of one message. The lists have one element: a function that
      compares the answers of a batch is a `Reward` of the run instead.

    Examples:
        >>> def correct(completions, answer, **_):
        ...     return [completion == right for completion, right in zip(completions, answer)]
        >>> env = prompts_env(tasks=[{"prompt": "2 + 3?", "answer": "5"}], reward=correct)  # doctest: +SKIP

    Args:
        tasks: Rows, a path to JSON lines, CSV or Parquet, a function that returns rows, a `HubDataset`, or the id of
            one, "owner/name" or "owner/name@REVISION".
        reward: One function or several.
        weights: The factors on their rewards; () for 1 each.
        success: With several functions the one that decides success.
        success_at: Least reward of that function for a success, where it returns no bool.
        plan: `plan(task)` returns a right answer, or None: the oracle, for warm-ups.
        instructions: The system prompt.
        prompt: The column of the prompts, such as "question".
        name: Begins the ids of tasks.

    Raises:
        ValueError: when a function has another form, or no name at the top of a module leads to it.
    """
    return PromptsEnv(
        **settings_of(tasks, prompt),
        rewards=tuple(map(address_of, [reward] if callable(reward) else reward)),
        weights=tuple(map(float, weights)),
        success="" if success is None else address_of(success),
        success_at=success_at,
        oracle="" if plan is None else address_of(plan),
        instructions=instructions,
        prompt=prompt,
        name=name,
    )
