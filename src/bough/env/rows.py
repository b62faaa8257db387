"""Tasks from rows: mappings in a list, in a file, or made by a function."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, TypeAlias, TypedDict, cast, get_args

from bough.env.env import Split
from bough.env.hub_dataset import HubDataset
from bough.env.row_files import FORMATS, json_line, read_row_file
from bough.env.splits import instance_task, split_of
from bough.hub import hub_repo
from bough.nearest import close, suggest
from bough.tree import Message, Task
from bough.usercode.address import address_of, find_function
from bough.usercode.json_file import parse_object
from bough.usercode.loop import synchronous

Row: TypeAlias = Mapping[str, Any]
"""One task as the user writes it: its "prompt" is the first message; "id" and "split" are optional."""

RowSource: TypeAlias = str | Path | HubDataset | Iterable[Row | str] | Callable[[], Iterable[Row | str]]
"""Rows, a file of rows, a data set of the hub or its id, or a function that returns rows. A string among the rows is a
prompt."""

SPLITS: tuple[Split, ...] = get_args(Split)

Lines: TypeAlias = str | tuple[str, ...]
"""Rows as a setting: a path, the address of a function, or lines of JSON."""

PROMPT = "prompt"
"""The default column of the prompts."""

PROMPT_NEED = 'a text, or a list of messages {"role": "user", "content": TEXT} whose last one is the user\'s'

ROLES = ("system", "user", "assistant")
"""Roles of the messages of a prompt."""


class RowSettings(TypedDict):
    """The settings of an environment that hold the source of its rows: one of the two."""

    rows: Lines
    dataset: HubDataset | None


def settings_of(source: RowSource, prompt: str = PROMPT) -> RowSettings:
    """The source as settings of an environment.

    Raises:
        ValueError: see `place_of`.
    """
    dataset = _dataset_of(source)
    return RowSettings(rows=() if dataset else place_of(source, prompt), dataset=dataset)


def check_settings(name: str, rows: Lines, dataset: HubDataset | None) -> None:
    """Check that an environment has one source of rows.

    Raises:
        ValueError: when it has none, or two.
    """
    if (dataset is None) == (rows == ()):
        raise ValueError(f"{name}: got {'no' if dataset is None else 'both'} rows and dataset; need one of the two")


def place_of(source: RowSource, prompt: str = PROMPT) -> Lines:
    """The source as a setting.

    Raises:
        ValueError: when there is no row, one cannot be written as JSON, the function is not at the top of a module, or
            the source is a table or a data set of the hub.
    """
    if (dataset := _dataset_of(source)) is not None:
        raise ValueError(
            f"rows: got {dataset.id!r}, taken for the hub id of a data set; need a function that returns "
            f"HubDataset(id={dataset.id!r}).rows(), or a path"
        )
    if isinstance(source, str | Path):
        if not str(source) or "://" in str(source):
            raise ValueError(
                f"tasks: got {str(source)!r:.200}, which is no path; need {FORMATS}, or owner/name for a data set of "
                "the hub; download a file of the web first"
            )
        return str(Path(source).expanduser().resolve())
    if callable(source):
        return address_of(source)
    given = cast("Any", source)
    if hasattr(given, "columns") or isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ValueError(
            f"tasks: got an object of {type(source).__name__}; need rows, such as table.to_dict('records') of a "
            f"DataFrame, {FORMATS}, or a function that returns rows"
        )
    rows = tuple(
        _line(row, f"tasks: row {number}", prompt) for number, row in enumerate(cast("Iterable[Row | str]", given), 1)
    )
    if not rows:
        raise ValueError("tasks: got no rows; need at least one")
    return rows


def check_row_file(place: Lines, name: str) -> None:
    """Checks that the file of a source exists, where it is one.

    Args:
        place: As returned by `place_of`.
        name: Name of the environment.

    Raises:
        FileNotFoundError: when it does not.
    """
    if isinstance(place, str) and _is_path(place) and not (path := Path(place)).is_file():
        beside = [each.name for each in path.parent.iterdir() if each.is_file()] if path.parent.is_dir() else []
        # A suffix alone is no similarity.
        near = [each for each in close(path.name, beside) if close(path.stem, [Path(each).stem])]
        what = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"{name}: got tasks={place!r}, which {what}; need {FORMATS}, or owner/name for a data set of the hub"
            + (f"; {suggest(near)}" if near else "")
        )


def _is_path(place: str) -> bool:
    """Whether a source is a path, and not the address of a function."""
    return ":" not in Path(place).name or Path(place).is_file()


def _dataset_of(source: RowSource) -> HubDataset | None:
    """The data set of the hub that a source is; None for another one."""
    if isinstance(source, HubDataset):
        return source
    if isinstance(source, str) and hub_repo(source, "dataset", "tasks") is not None:
        return HubDataset(id=source)
    return None


def prompt_messages(prompt: object) -> tuple[Message, ...]:
    """The messages of a prompt: a text is one message of the user.

    Raises:
        ValueError: when it is neither a text nor a list of messages that ends with one of the user.
    """
    if isinstance(prompt, str):
        return (Message(role="user", content=prompt),)
    found = tuple(map(_message, cast("list[object]", prompt if isinstance(prompt, list) else [])))
    if not found or found[-1].role != "user":
        raise ValueError(f"got the prompt {prompt!r:.100}; need {PROMPT_NEED}")
    return found


def prompt_of(name: str, task: Task, prompt: str = PROMPT) -> tuple[Message, ...]:
    """The messages of a task's prompt.

    Args:
        name: Of the environment.
        task: The task of a row.
        prompt: The column of the prompts.

    Raises:
        ValueError: see `prompt_messages`.
    """
    try:
        return prompt_messages(task.data.get(prompt))
    except ValueError as error:
        raise ValueError(f"{name}: task {task.id} {error}") from error


def _message(value: object) -> Message:
    fields = cast("dict[str, Any]", value if isinstance(value, dict) else {})
    known = {name: each for name, each in fields.items() if each is not None}
    role, content = known.get("role"), known.get("content")
    if {*known} != {"role", "content"} or role not in ROLES or not isinstance(content, str):
        raise ValueError(
            f'got the message {value!r:.100}; need {{"role": ROLE, "content": TEXT}} with a role of {", ".join(ROLES)}'
        )
    return Message(role=role, content=content)


class RowTasks:
    """The tasks of rows, by split.

    The row's "split" decides where it is given, else a hash of the row without "id" and "split". So equal rows are
    always in one split. They are different tasks: the second of them has "-2" at the end of its id.

    Args:
        name: Name of the environment, for the ids of tasks.
        place: As returned by `place_of`, or a data set.
        prompt: The column of the prompts.

    Raises:
        ValueError: when there is no row, one has no prompt or an unknown split, two rows have one id, or equal rows two
            splits.
        OSError: when the file cannot be read, or the data set can't be had.
    """

    def __init__(self, name: str, place: Lines | HubDataset, prompt: str = PROMPT) -> None:
        lines = _lines(name, place, prompt)
        self.name = name
        self.digest = sha256("\n".join(line for _, line in lines).encode()).hexdigest()
        self.by_split: dict[Split, list[Task]] = {split: [] for split in SPLITS}
        splits: dict[str, Split] = {}
        ids: set[str] = set()
        copies: Counter[str] = Counter()
        if not lines:
            raise ValueError(f"{name}: got no rows of tasks; need at least one")
        for where, line in lines:
            row = _row(line, where, prompt)
            content = json.dumps({key: row[key] for key in row if key not in ("id", "split")}, sort_keys=True)
            split = cast("Split", row.get("split") or split_of(content))
            if split not in SPLITS:
                raise ValueError(f"{where}: got the split {split!r:.80}; need one of {', '.join(SPLITS)}")
            if splits.setdefault(content, split) != split:
                raise ValueError(
                    f"{where}: got equal tasks in the splits {splits[content]} and {split}; need one split"
                )
            task = instance_task(name=name, content=content, data=row)
            own_id = row.get("id") not in (None, "")
            copies[task.id] += not own_id
            if own_id or copies[task.id] > 1:
                task = replace(task, id=str(row["id"]) if own_id else f"{task.id}-{copies[task.id]}")
            if task.id in ids:
                raise ValueError(f"{where}: got a second task with the id {task.id!r:.80}; need different ids")
            ids.add(task.id)
            self.by_split[split].append(task)
        self.first = next((task for tasks in self.by_split.values() for task in tasks), None)

    def draw(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split, in an order that depends on the seed.

        Raises:
            ValueError: when the split has fewer.
        """
        tasks = self.by_split[split]
        if not 0 <= count <= len(tasks):
            sizes = ", ".join(f"{len(found)} of {name!r}" for name, found in self.by_split.items())
            raise ValueError(
                f"{self.name}: got count={count} for split {split!r}; there are {sizes}. Set tasks.count="
                f'{len(tasks)} or less (evaluation.tasks.count for held-out tasks), add tasks, or rows with a "split"'
            )
        return Random(f"{self.name} {seed} {split}").sample(tasks, len(tasks))[:count]


def _lines(name: str, place: Lines | HubDataset, prompt: str) -> Sequence[tuple[str, str]]:
    """The rows as lines of JSON, each after its place."""
    if isinstance(place, HubDataset):
        return [*place.lines()]
    if isinstance(place, str) and _is_path(place):
        return [*read_row_file(Path(place))]
    if isinstance(place, tuple):
        return [(f"{name}: task {number}", line) for number, line in enumerate(place, 1)]
    made = enumerate(cast("Iterable[Row | str]", synchronous(find_function(place))()), 1)
    return [(where, _line(row, where, prompt)) for where, row in ((f"{name}: task {at}", row) for at, row in made)]


def _line(row: Row | str, where: str, prompt: str = PROMPT) -> str:
    if not isinstance(cast("object", row), str | Mapping):
        raise ValueError(f"{where}: got {row!r:.80}; need a mapping, or a text, which is a prompt")
    return json_line({prompt: row} if isinstance(row, str) else row, where)


def _row(line: str, where: str, prompt: str) -> dict[str, Any]:
    need = f'a JSON object with a text or messages under "{prompt}"'
    row = parse_object(line, where, need)
    if prompt not in row:
        raise ValueError(f"{where}: got {line[:80]}; need {need}")
    try:
        prompt_messages(row[prompt])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    return row
