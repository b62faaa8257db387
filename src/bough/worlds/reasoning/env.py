"""The tasks of reasoning-gym: one question, one answer, its own scorer (arXiv 2505.24760)."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, Any, cast

from bough.env.env import Branching, Split, State, Step
from bough.env.last_tagged import last_tagged
from bough.env.splits import content_hash, draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, NotEmpty, piece
from bough.tree import Outcome, Task
from bough.worlds.reasoning.scorer import reasoning_gym, score

SYMPY = "its scorer evaluates an answer with sympy, without a limit of time"
HASHES = "its questions differ from process to process: they depend on PYTHONHASHSEED"

UNUSABLE: Mapping[str, str] = {
    "complex_arithmetic": "its scorer pays 1 for nan",
    "composite": "it is a mixture; name the datasets themselves",
    "game_of_life_halting": "its scorer pays 1 for every text when the reference answer is True",
    "intermediate_integration": SYMPY,
    "isomorphic_strings": HASHES,
    "list_functions": "its questions differ from process to process: they are drawn without the seed",
    "polynomial_multiplication": HASHES,
    "ransom_note": HASHES,
    "simple_integration": SYMPY,
}
"""Names of datasets that make no tasks, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question of a dataset.

    Attributes:
        dataset: Name of the dataset.
        index: Index of the item.
        question: The question.
    """

    dataset: str
    index: int
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningState:
    """The value of a state of `ReasoningGym`: the item, and whether it is answered."""

    item: Item
    answered: bool = False


@piece
class ReasoningGym:
    """Questions of the package reasoning-gym; needs the extra `reasoning`.

    The answer is the text, or the part of it between `<answer>` and `</answer>`. The reward is the score of the
    dataset's own scorer, 0 to 1; 1 is success. A scorer that fails on an answer gives 0. Six scorers evaluate the
    answer as Python code. They get only literals or short sums and products, so an answer cannot run code.
    Datasets whose scorers have no limit of time or pay for wrong answers are left out: see `UNUSABLE`.

    The question decides the split.

    Attributes:
        datasets: Names of datasets, such as "chain_sum"; tasks are drawn evenly from them.
        config: JSON object with the settings of datasets by name: `{"chain_sum": {"max_terms": 3}}`.
        size: Number of items of each dataset. Some datasets make all of them at the start.

    Raises:
        ValueError: when there is no dataset, or `config` is not a JSON object of objects.
    """

    datasets: Annotated[tuple[str, ...], NotEmpty("a name, such as chain_sum")] = ("chain_sum",)
    config: str = "{}"
    size: Annotated[int, AtLeast(1, "1 or more")] = 5000
    branching = Branching.COPY

    def __post_init__(self) -> None:
        for name in self.datasets:
            if name in UNUSABLE:
                raise ValueError(f"ReasoningGym.datasets: got {name!r}, which makes no tasks: {UNUSABLE[name]}")
        _settings(self.config)

    @property
    def instructions(self) -> str:
        """The form of an answer."""
        return "Answer the question. Give only the answer, or the answer between <answer> and </answer>."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer, a dataset is unknown, or its settings are wrong.
            ImportError: when reasoning-gym is not installed.
        """
        for name in self.datasets:
            _dataset(name, self.config, self.size)
        items = draw_instances(
            name="ReasoningGym",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, datasets=self.datasets, config=self.config, size=self.size),
            content=_content,
            accept=self._answerable,
        )
        return [
            instance_task(
                name=f"reasoning-{item.dataset}",
                content=_content(item),
                data={"dataset": item.dataset, "index": item.index, "question": item.question},
            )
            for item in items
        ]

    def start(self, task: Task) -> State:
        """Returns the state with the question.

        Raises:
            ValueError: when `task.data` is no item, or another version of the package gives another question.
            ImportError: when reasoning-gym is not installed.
        """
        data = cast("Mapping[str, Any]", task.data)
        try:
            item = Item(dataset=str(data["dataset"]), index=int(data["index"]), question=str(data["question"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"ReasoningGym: task {task.id} got {dict(data)!r:.200}; need an item ({error})") from error
        found = _entry(item, self.config, self.size)["question"]
        if found != item.question:
            raise ValueError(
                f"ReasoningGym: task {task.id} got another question in this version of reasoning-gym ({found[:80]!r}); "
                "need the version and the config that made the task"
            )
        return _state(ReasoningState(item=item))

    def step(self, state: State, action: str) -> Step:
        """Scores an answer, and ends the episode. An empty answer is not valid."""
        current = value_of(state, ReasoningState, "ReasoningGym")
        if current.answered:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        item = current.item
        answer = answer_of(action)
        entry = _entry(item, self.config, self.size)
        reward = score(_dataset(item.dataset, self.config, self.size), item.dataset, answer, entry) if answer else 0.0
        after = ReasoningState(item=item, answered=True)
        return Step(
            state=_state(after),
            reward=reward,
            outcome=Outcome.TERMINATED,
            valid=bool(answer),
            success=reward >= 1,
            info={"dataset": item.dataset},
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the reference answer where it scores 1; None where there is none, or after the answer."""
        current = value_of(state, ReasoningState, "ReasoningGym")
        entry = _entry(current.item, self.config, self.size)
        answer: object = entry["answer"]
        if current.answered or not isinstance(answer, str):
            return None
        dataset = _dataset(current.item.dataset, self.config, self.size)
        right = score(dataset, current.item.dataset, answer_of(answer), entry) >= 1
        return (answer,) if right else None

    def _answerable(self, item: Item) -> bool:
        """Whether the reference answer, where there is one, is more than spaces."""
        answer: object = _entry(item, self.config, self.size)["answer"]
        return not isinstance(answer, str) or bool(answer_of(answer))


def answer_of(action: str) -> str:
    """The answer in a text: the last part between tags, or all of it, without spaces around it."""
    tagged = last_tagged(action, "answer")
    return (action if tagged is None else tagged).strip()


def _propose(rng: random.Random, *, datasets: tuple[str, ...], config: str, size: int) -> Item:
    item = Item(dataset=rng.choice(datasets), index=rng.randrange(size), question="")
    return replace(item, question=str(_entry(item, config, size)["question"]))


def _content(item: Item) -> str:
    return item.question


def _settings(config: str) -> Mapping[str, Mapping[str, Any]]:
    try:
        found: object = json.loads(config)
        if not isinstance(found, dict) or not all(
            isinstance(each, dict) for each in cast("dict[str, object]", found).values()
        ):
            raise ValueError("no object of objects")
    except ValueError as error:
        raise ValueError(
            f'ReasoningGym.config: got {config!r:.99} ({error}); need JSON, such as {{"chain_sum": {{"max_terms": 3}}}}'
        ) from error
    return cast("Mapping[str, Mapping[str, Any]]", found)


@lru_cache(maxsize=256)
def _dataset(name: str, config: str, size: int) -> Any:
    package = reasoning_gym()
    known = dataset_names(package)
    if name not in known:
        raise ValueError(f"ReasoningGym.datasets: got {name!r}; need one of {', '.join(known)}")
    try:
        return package.create_dataset(name, seed=0, size=size, **_settings(config).get(name, {}))
    except (TypeError, AssertionError, ValueError) as error:
        raise ValueError(f"ReasoningGym.config: {name} got settings that it refuses ({error})") from error


def dataset_names(package: Any) -> list[str]:
    """The names of the datasets that make tasks."""
    return sorted({*package.factory.DATASETS} - {*UNUSABLE})


@lru_cache(maxsize=4096)
def _entry(item: Item, config: str, size: int) -> Mapping[str, Any]:
    return _dataset(item.dataset, config, size)[item.index]


def _state(current: ReasoningState) -> State:
    key = content_hash(f"{current.item.question}\n{current.answered}")
    return State(observation=current.item.question, key=key, value=current)
