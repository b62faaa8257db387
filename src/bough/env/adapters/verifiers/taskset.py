"""The tasks of a taskset of verifiers, and what of a taskset the adapter cannot play."""

import inspect
import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any, cast

from bough.env.env import Split
from bough.env.splits import content_hash, split_of
from bough.tree import Task
from bough.usercode.address import find_function
from bough.usercode.origin import describe
from bough.version import install

INSTALL = f"verifiers is not installed; do: {install('verifiers')}, which pins mcp 2.0 and openai 2"


def vf() -> Any:
    """The package verifiers.v1.

    Raises:
        ImportError: when it is not installed.
    """
    try:
        return import_module("verifiers.v1")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "verifiers":
            raise
        raise ImportError(INSTALL) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A taskset that was read.

    Attributes:
        taskset: The taskset.
        tasks: Its tasks by the hash of their content, without copies.
        program: The class of its environment program; None for one reply, with tool calls before it.
    """

    taskset: Any
    tasks: dict[str, Any]
    program: Any

    @property
    def has_tools(self) -> bool:
        """Whether the taskset or its tasks declare toolsets."""
        config = self.taskset.config
        return bool(self.taskset.toolsets(config) or self.taskset.task_type().toolsets(config.task))


@lru_cache(maxsize=16)
def load_taskset(name: str, config: str, most: int, program: str) -> Loaded:
    """Reads the tasks of a taskset.

    Args:
        name: The id of an installed taskset; or the address `module:name` or `path.py:name` of a class or a function
            that returns a taskset.
        config: JSON object with the fields of the taskset's config.
        most: Maximum number of tasks that are read.
        program: Id of an environment program of the package; "" for the taskset's own.

    Raises:
        ValueError: when there is no such taskset, or it needs what the adapter does not have.
        ImportError: when verifiers is not installed.
    """
    package = vf()
    taskset = _made(package, name, config)
    tasks: dict[str, Any] = {}
    try:
        for task in islice(taskset, most):
            tasks.setdefault(content_of(task), task)
    except Exception as error:  # the taskset's code may raise anything
        raise ValueError(
            f"Verifiers.taskset: got {name!r}, whose tasks cannot be read: {describe(error)}; need a `load` that "
            "returns tasks of verifiers.v1"
        ) from error
    if not tasks:
        raise ValueError(f"Verifiers.taskset: got {name!r} with the config {config}, which has no tasks; need some")
    for task in islice(tasks.values(), 1):
        _check(package, taskset, task)
    loaders = import_module("verifiers.v1.utils.loaders")
    found: Any = package.SingleAgentEnv
    if program or ":" not in name:
        try:
            found = loaders.environment_class("" if ":" in name else name, program)
        except Exception as error:  # imports the program's module, which may raise anything
            raise ValueError(
                f"Verifiers.program: got {program!r} for {name!r}: {describe(error)}; need the id of an installed "
                'environment program, or "" for the taskset\'s own'
            ) from error
    return Loaded(taskset=taskset, tasks=tasks, program=None if found is package.SingleAgentEnv else found)


def content_of(task: Any) -> str:
    """The hash of a task's data without its place."""
    data = task.data.model_dump(mode="json", exclude_none=True, exclude={"idx"})
    return content_hash(json.dumps(data, sort_keys=True))


def draw_tasks(loaded: Loaded, name: str, split: Split, count: int, seed: int) -> list[Task]:
    """`count` different tasks of a split, in an order that depends on the seed; a hash of the data decides the split.

    Raises:
        ValueError: when the split has fewer.
    """
    from random import Random

    found = [each for each in loaded.tasks if split_of(each) == split]
    if not 0 <= count <= len(found):
        raise ValueError(
            f"Verifiers: got count={count} for split {split!r} of {name}; it has {len(found)}. Need a smaller count, "
            "or a larger `most`"
        )
    order = Random(f"verifiers {seed} {split}").sample(found, len(found))[:count]
    return [
        Task(
            id=f"{name.rpartition(':')[2].rpartition('/')[2].lower()}-{each}",
            seed=int(each[:8], 16),
            data={"content": each, "prompt": loaded.tasks[each].data.prompt_text},
        )
        for each in order
    ]


def _made(package: Any, name: str, config: str) -> Any:
    """The taskset of an id or an address.

    Raises:
        ValueError: when there is none, it is of another protocol, or its code raises.
    """
    generic = import_module("verifiers.v1.utils.generic")
    fields = cast("dict[str, Any]", json.loads(config))
    try:
        if ":" in name:
            make: Any = find_function(name)
        else:
            make = import_module("verifiers.v1.utils.loaders").taskset_class(name)
            fields.setdefault("id", name)
        if isinstance(make, type) and issubclass(make, package.Taskset):
            kind = generic.concrete_type(make, package.TasksetConfig, origin=package.Taskset) or package.TasksetConfig
            made: Any = make(kind.model_validate(fields))
        else:
            made = make(**fields)
    except Exception as error:  # the taskset's code may raise anything
        if hasattr(sys.modules.get(name.replace("-", "_")), "load_environment"):
            raise ValueError(
                f"Verifiers.taskset: got {name!r}, which has `load_environment`, of the first protocol of verifiers; "
                "need a taskset of `verifiers.v1`, exported by `__all__`"
            ) from error
        raise ValueError(
            f"Verifiers.taskset: got {name!r} with the config {config}: {describe(error)}; need the id of an installed "
            "taskset, or the address of a Taskset class or of a function that returns one"
        ) from error
    if not isinstance(made, package.Taskset):
        raise ValueError(f"Verifiers.taskset: got {name!r}, which makes a {type(made).__name__}; need a Taskset")
    return made


def _check(package: Any, taskset: Any, task: Any) -> None:
    """Raises a ValueError for a task that needs a container, a model, or hooks on requests."""
    decorators = import_module("verifiers.v1.utils.decorators")
    session = import_module("verifiers.v1.session")
    where = f"Verifiers.taskset: got {type(taskset).__name__}"
    if task.NEEDS_CONTAINER or task.data.image:
        raise ValueError(f"{where}, whose tasks run in a container; need tasks that are scored without one")
    needs_box = [each.__name__ for each in task.hooks("reward") if _needs(each, "runtime")]
    if needs_box:
        raise ValueError(f"{where}, whose reward {needs_box[0]} needs a runtime; need rewards of the trace alone")
    if task.plugged_judges():
        raise ValueError(f"{where}, whose judge is a model; need rewards that are computed")
    kinds = [session.hook_boundary(each, allow_trace=True) for each in task.hooks("stop")]
    if decorators.discover_decorated(task, "intercept") or any(kind is not package.Trace for kind in kinds):
        raise ValueError(f"{where} with hooks on requests or responses; need @stop hooks on the trace alone")
    for each in [*taskset.toolsets(taskset.config), *task.toolsets(task.config)]:
        if each.config.url:
            raise ValueError(f"{where}, whose tools run at {each.config.url}; need toolsets that start here")


def _needs(function: Any, name: str) -> bool:
    """Whether a function has a parameter without a default."""
    found = inspect.signature(function).parameters.get(name)
    return found is not None and found.default is inspect.Parameter.empty
