"""Arguments and options that several commands have."""

from enum import StrEnum
from typing import Annotated

import typer

from bough.cli.completion import complete_world

Changes = Annotated[
    list[str] | None,
    typer.Argument(help="Fields to change: steps=50 optimizer.learning_rate=3e-4 credit='Grpo(std=none)'"),
]

Accept = Annotated[
    bool,
    typer.Option("--accept-changes", help="Go on with files, data or tasks that changed since the run was made."),
]

On = Annotated[
    str | None,
    typer.Option(
        help="The world: frozenlake, 'sokoban(...)', or path/to/file.py:function; frozenlake if not given",
        autocompletion=complete_world,
    ),
]

Step = Annotated[int | None, typer.Option(help="The step whose checkpoint is loaded; the newest if not given.")]


class Library(StrEnum):
    """The libraries of `bough.train.like`."""

    TRL = "trl"
    VERL = "verl"


Like = Annotated[Library | None, typer.Option("--like", help="Begin with the defaults of another library.")]


class ExportKind(StrEnum):
    """What `bough export` writes."""

    PAIRS = "pairs"
    EXAMPLES = "examples"
    VALUES = "values"
    STEPS = "steps"
    REVISIONS = "revisions"
    CONVERSATIONS = "conversations"


class RewardLabels(StrEnum):
    """The labels of `RewardModel`."""

    OUTCOME = "outcome"
    SOFT = "soft"
    HARD = "hard"
    PAIRS = "pairs"


class TaskSplit(StrEnum):
    """The splits of tasks."""

    TRAIN = "train"
    DEV = "dev"
    TEST = "test"


class CheckName(StrEnum):
    """The checks of `bough check-env`, in order."""

    INSTRUCTIONS = "instructions"
    TASKS = "tasks"
    RESULTS = "results"
    DETERMINISM = "determinism"
    FRESH_PROCESSES = "fresh processes"
    BRANCHING = "branching"
    PICKLED_STATES = "pickled states"
    STATE_KEYS = "state keys"
    NO_STEP_COUNTER = "no step counter in keys"
    ORACLE = "oracle"
    ORACLE_ELSEWHERE = "oracle after random actions"
    SPLITS = "splits"
    GARBAGE_TEXTS = "garbage texts"
    GARBAGE_CALLS = "garbage calls"
    LATENCY = "latency"
    MEMORY = "memory"
    OPEN_FILES = "open files"
    PROCESSES_LEFT = "processes left"
