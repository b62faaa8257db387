"""`bough list`: methods, worlds, policies, recipes, and the pieces that fit each field of a run."""

import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from bough.appraise import Appraiser
from bough.ask.prompts import AnswerParser
from bough.cli.exports import exports, usage
from bough.cli.find import default_world, find_run, find_world
from bough.cli.functions import FUNCTIONS, Entry, entry_lines, modules, names, own_entries
from bough.config import ConfigError, unknown
from bough.config.installed import installed, load_installed, loadable
from bough.config.kinds import wrong_kind
from bough.config.naming import exported, made_by, packages
from bough.config.spell import settings
from bough.context import Context, Parser
from bough.credit import Credit
from bough.critics import ValueHead
from bough.curate import Filter
from bough.engine import OwnModel
from bough.env import Env, HubDataset
from bough.explore import Blame, Quality
from bough.guard import Guard
from bough.hooks.hook import HookRecipe
from bough.loggers import Logger
from bough.methods import SHARED
from bough.objective import Objective, Pairs
from bough.piece import Bounds, bounds_of
from bough.policy import Lora
from bough.reward import Reward
from bough.rewrite import PathRewriter
from bough.roles import EngineRecipe, ModelSource, PolicyRecipe
from bough.rollout import Explorer
from bough.search import Backup, Evaluate, Expand, Hint, Prune, Rate, Score, Select
from bough.tracing import OpenTelemetry
from bough.train import World
from bough.train.check import check
from bough.varying import ValueSchedule

Room: TypeAlias = tuple[str, tuple[str, ...], Any]
"""A title, the packages that export its pieces, and the type of its pieces."""

SEARCH = ("bough.search",)
PIECES: dict[str, Room] = {
    "env": ("Environments", packages("env"), Env),
    "rows": ("Rows of environments", ("bough.env",), HubDataset),
    "policy": ("Policies", ("bough.policy",), PolicyRecipe),
    "context": ("Contexts", ("bough.context",), Context),
    "parser": ("Parsers", ("bough.context",), Parser),
    "guard": ("Guards", ("bough.guard",), Guard),
    "models": ("Models of roles", ("bough.roles", "bough.engine"), ModelSource | OwnModel),
    "engine": ("Engines", ("bough.engine",), EngineRecipe),
    "explore": ("Explorers", ("bough.explore",), Explorer),
    "search": ("Searches, which are explorers", ("bough.searches", *SEARCH), Explorer),
    "select": ("Parts of searches: which node to expand", SEARCH, Select),
    "score": ("Parts of searches: scores of nodes", SEARCH, Score),
    "expand": ("Parts of searches: which actions to consider", SEARCH, Expand),
    "hint": ("Parts of searches: hints for the policy", SEARCH, Hint),
    "rate": ("Parts of searches: ratings of actions", SEARCH, Rate),
    "evaluate": ("Parts of searches: values of states", SEARCH, Evaluate),
    "backup": ("Parts of searches: backups of values", SEARCH, Backup),
    "prune": ("Parts of searches: pruning", SEARCH, Prune),
    "quality": ("Parts of explorers: quality of actions", ("bough.explore",), Quality),
    "blame": ("Parts of explorers: first wrong steps", ("bough.explore",), Blame),
    "read": ("Parts of judges: answers of engines", ("bough.ask",), AnswerParser),
    "appraise": ("Appraisers", ("bough.appraise", "bough.critics"), Appraiser),
    "reward": ("Rewards", ("bough.reward",), Reward),
    "hooks": ("Hooks", ("bough.hooks", "bough.critics", "bough.roles"), HookRecipe),
    "credit": ("Credit", ("bough.credit",), Credit),
    "curate": ("Filters", ("bough.curate",), Filter),
    "revise": ("Demonstrations from trees", ("bough.rewrite",), PathRewriter),
    "objective": ("Objectives", ("bough.objective",), Objective),
    "pairs": ("Parts of objectives: pairs", ("bough.objective",), Pairs),
    "schedule": ("Schedules of settings", ("bough.schedule",), ValueSchedule),
    "critic": ("Critics", ("bough.critics",), ValueHead),
    "lora": ("Adapters", ("bough.policy",), Lora),
    "loggers": ("Loggers", ("bough.loggers",), Logger),
    "tracing": ("Tracing", ("bough.tracing",), OpenTelemetry),
}
ROOMS = {**FUNCTIONS, **{room: title for room, (title, _, _) in PIECES.items()}}


def entries() -> Iterator[Entry]:
    """All entries, group by group."""
    for room in FUNCTIONS:
        yield from own_entries(room)
    yield from map(_installed_world, installed("bough.worlds"))
    others = list(loadable("bough.pieces"))
    for room, (_, homes, kind) in PIECES.items():
        groups = [sorted(exported(package), key=lambda pair: _place(pair[1])) for package in homes]
        for name, maker in chain.from_iterable([*groups, others]):
            made = made_by(maker)
            if made is not None and not wrong_kind(kind, made):
                yield Entry(room=room, name=name, text=inspect.getdoc(maker) or "", fields=fields_of(maker))


def _installed_world(name: str) -> Entry:
    """A world of another package; with the reason where it cannot be had."""
    try:
        made = load_installed("bough.worlds", name, "worlds", is_own=name in modules("worlds"))
    except ConfigError as error:
        return Entry(room="worlds", name=name, text=str(error))
    return Entry(room="worlds", name=name, text=inspect.getdoc(made) or "", fields=fields_of(made))


def _lines(found: Sequence[Entry]) -> str:
    """One line for each entry, under the heading of its group."""
    lines: list[str] = []
    for room, title in ROOMS.items():
        own = [entry for entry in found if entry.room == room]
        lines += ["", f"{title} ({room})", *entry_lines(own)] if own else []
    return "\n".join(
        [*lines[1:], "", "`bough list NAME` shows one whole; `bough train METHOD --on WORLD field=value ...` trains."]
    )


def _has_word(entry: Entry, word: str) -> bool:
    """Whether a word of the entry's name or line begins with `word`, such as "judge" in "a judge's verdicts"."""
    return re.search(rf"(?<![^\W_]){re.escape(word)}", f"{entry.name} {entry.summary}", re.IGNORECASE) is not None


def show_room(room: str) -> str:
    """One line for each entry of a group."""
    return "\n".join([ROOMS[room], *entry_lines([entry for entry in entries() if entry.room == room])])


def misfits(method: str) -> dict[str, str]:
    """The worlds that a method does not fit, each with the reason."""
    found: dict[str, str] = {}
    for name, world in _worlds().items():
        try:
            check(find_run(method, world))
        except ConfigError as error:
            found[name] = str(error)
    return found


@cache
def _worlds() -> dict[str, World]:
    """The worlds that can be had by name, each made once: some read thousands of rows."""
    found: dict[str, World] = {}
    for name in names("worlds"):
        # `bough list worlds` has the reason.
        with suppress(ConfigError):
            found[name] = find_world(name)
    return found


def show_one(name: str) -> str:
    """One entry with its docstring and fields; for a method, recipe or file also the settings of its run.

    Without an entry of that name, a line for each entry whose name or line has a word that begins with it.

    Raises:
        ConfigError: when there is none; suggests a similar name.
    """
    if ".py" in name:
        return f"Settings{_of_world(name)}:\n{_settings(name)}"
    found = list(entries())
    pages = [_page(entry) for entry in found if entry.name == name]
    if not pages and name in exports():
        pages = [_export_page(name)]
    if not pages and (having := [each for each in found if _has_word(each, name)]):
        return _lines(having)
    if not pages:
        known = dict.fromkeys([*ROOMS, *(entry.name for entry in found), *exports()])
        raise ConfigError(unknown(name, known, otherwise="see `bough list`"))
    return "\n\n".join(pages)


def _page(entry: Entry) -> str:
    below = "\nFields:\n" + textwrap.indent("\n".join(entry.fields), "    ") if entry.fields else ""
    if entry.room in ("methods", "recipes"):
        below = f"\n{SHARED}\n{below}" if entry.room == "methods" else below
        below += f"\nSettings{_of_world(entry.name)}:\n{_settings(entry.name)}"
        below += f"\n\n{_fits(entry.name)}" if entry.room == "methods" else ""
    elif entry.room == "worlds":
        below += f"\nSettings:\n{textwrap.indent(settings(find_world(entry.name)), '    ')}"
    return f"{entry.name} ({ROOMS[entry.room].lower()})\n\n{entry.text}\n{below}"


def _of_world(target: str) -> str:
    """The default world of a method, to which its settings belong: " on frozenlake (--on takes another)"."""
    world = default_world(target)
    return f" on {world} (--on takes another)" if world else ""


def _fits(method: str) -> str:
    """The worlds that a method does not fit, a line each; or that it fits all."""
    wrong = [f"Not on {world}: {reason}" for world, reason in misfits(method).items()]
    return "\n".join(wrong) or "It fits every world of `bough list worlds`."


def _export_page(name: str) -> str:
    """The page of an exported class or function that is in no group."""
    package, value = exports()[name]
    has_fields = inspect.isfunction(value) or dataclasses.is_dataclass(value)
    fields = textwrap.indent("\n".join(fields_of(value)), "    ") if has_fields else ""
    below = f"\n\nFields:\n{fields}" if fields else ""
    return f"{name} ({package})\n\n{inspect.getdoc(value) or ''}\n\n{usage(name, value)}{below}"


def _settings(target: str) -> str:
    return textwrap.indent(settings(find_run(target)), "    ")


def _place(maker: Any) -> tuple[str, int]:
    """Sort key: the file, and the line in the file."""
    return maker.__module__, list(vars(sys.modules[maker.__module__])).index(maker.__name__)


def fields_of(maker: Any) -> tuple[str, ...]:
    """Name, type and default of each setting, as in the source but without the names of modules."""
    made = {each.name: each.default_factory for each in dataclasses.fields(maker)} if isinstance(maker, type) else {}
    bounds: Mapping[str, tuple[tuple[Bounds, ...], bool]] = bounds_of(maker) if made else {}
    fields: list[str] = []
    for name, parameter in inspect.signature(maker).parameters.items():
        factory = made.get(name, dataclasses.MISSING)
        default = parameter.default if factory is dataclasses.MISSING else factory()
        needs, _ = bounds.get(name, ((), False))
        kind = ", ".join([_kind(parameter.annotation), *(each.need for each in needs)])
        fields.append(f"{name}: {kind}" + ("" if default is parameter.empty else f" = {default!r}"))
    return tuple(fields)


def _kind(annotation: Any) -> str:
    """A type as in the source, without the names of modules and without bounds: "float | None"."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join("None" if part is NoneType else _kind(part) for part in get_args(annotation))
    return re.sub(r"[A-Za-z_][\w.]*\.", "", inspect.formatannotation(annotation))
