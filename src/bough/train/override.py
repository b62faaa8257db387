"""Changing a run by text: `optimizer.learning_rate=3e-4`, `credit=Grpo(std=none)`, `rewards.1.penalty=0`."""

import ast
import dataclasses
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args, get_type_hints

from bough.train.config import ConfigError, build, check, fields_of, unknown, wants_piece

CALL = re.compile(r"^(?P<name>[A-Za-z_]\w*)\((?P<arguments>.*)\)$", re.DOTALL)
SEVERAL = re.compile(r"^(\(.*\)|\[.*\])$", re.DOTALL)
NOTHING = ("none", "null")


def override(run: Any, changes: Sequence[str]) -> Any:
    """A run with fields changed.

    Each change is `path=value`. A path goes through pieces by field name and through tuples by number. A value is
    JSON where it can be read so, else text; a piece is written as its class, with or without arguments, and several
    pieces as a list: `credit=Grpo(mean=leave_one_out, std=none)`, `rewards=[EnvReward, InvalidAction(penalty=0.1)]`.

    Raises:
        ConfigError: on an unknown field (with the nearest known one) or a value that the field does not take.
    """
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not path:
            raise ConfigError(f"got {change!r}; need field=value, as in optimizer.learning_rate=3e-4")
        run = _set(run, path.split("."), text, done="")
    return run


def _set(piece: Any, path: Sequence[str], text: str, done: str) -> Any:
    name, rest = path[0], path[1:]
    where = f"{done}.{name}" if done else name
    if isinstance(piece, tuple):
        items = list(cast("tuple[Any, ...]", piece))
        if not name.isdigit() or int(name) >= len(items):
            raise ConfigError(f"{where}: got {name!r}; need a number from 0 to {len(items) - 1}")
        items[int(name)] = (
            _set(items[int(name)], rest, text, where) if rest else _read(text, items[int(name)], None, where)
        )
        return tuple(items)
    if not dataclasses.is_dataclass(piece) or isinstance(piece, type):
        raise ConfigError(f"{where}: {done} is {piece!r}, which has no fields; need {done}=VALUE")
    known = fields_of(type(piece))
    if name not in known:
        raise ConfigError(f"{where}: {unknown(name, known)} in {type(piece).__name__}")
    now = getattr(piece, name)
    value = _set(now, rest, text, where) if rest else _read(text, now, known[name], where)
    try:
        return dataclasses.replace(piece, **{name: value})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _read(text: str, now: object, annotation: Any, where: str) -> Any:
    """The value a text stands for, given what is there now and the type of the field."""
    text = text.strip()
    pieces = wants_piece(annotation) or _holds_pieces(now)
    if pieces and SEVERAL.match(text):
        there = cast("tuple[object, ...]", now) if isinstance(now, tuple) else ()
        known = (*there, *get_args(annotation))
        return tuple(_read(part, known, None, f"{where}.{place}") for place, part in enumerate(_parts(text[1:-1])))
    call = CALL.match(text)
    if pieces and (maker := _makers(now, annotation).get(call["name"] if call else text)):
        return _made(maker, call["arguments"] if call else "", where)
    if call or (text.isidentifier() and text[:1].isupper()):
        name = call["name"] if call else text
        options = _options(now, annotation)
        if name in options:
            return build(options[name], _arguments(options[name], call["arguments"] if call else "", where), where)
        if call or pieces:
            raise ConfigError(f"{where}: {unknown(name, options)}")
    if text.isidentifier() and pieces and text.lower() not in NOTHING:
        raise ConfigError(f"{where}: {unknown(text, _options(now, annotation))}")
    return interpret(type(now) if annotation is None else annotation, text, where)


def interpret(annotation: Any, text: str, where: str) -> Any:
    """A plain value from text: as a literal where the field takes it, else as the text that it is."""
    try:
        return check(annotation, _literal(text), where)
    except ConfigError as error:
        # "none" is no value for a field that wants one of several words, but may be one of the words.
        try:
            return check(annotation, text, where)
        except ConfigError:
            raise error from None


def _literal(text: str) -> Any:
    """A number, a truth value, nothing, a list, a mapping; else the text itself."""
    names = {"true": True, "false": False} | dict.fromkeys(NOTHING)
    if text.lower() in names:
        return names[text.lower()]
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError):
            continue
        return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
    return text


def _made(maker: Callable[..., Any], text: str, where: str) -> Any:
    """What a function makes of `a=1, b=x`."""
    known = {name: kind for name, kind in get_type_hints(maker).items() if name != "return"}
    given = _given(known, maker.__name__, text, where)
    try:
        return maker(**{name: check(known[name], value, f"{where}.{name}") for name, value in given.items()})
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _arguments(cls: type, text: str, where: str) -> dict[str, Any]:
    """`a=1, b=x` as field values of a class."""
    return _given(fields_of(cls), cls.__name__, text, where)


def _given(known: Mapping[str, Any], whose: str, text: str, where: str) -> dict[str, Any]:
    """`a=1, b=x` as values for names of known types."""
    given: dict[str, Any] = {}
    for part in _parts(text):
        name, equals, value = (side.strip() for side in part.partition("="))
        if not equals:
            raise ConfigError(f"{where}: got the argument {part!r}; need name=value")
        if name not in known:
            raise ConfigError(f"{where}.{name}: {unknown(name, known)} in {whose}")
        given[name] = _read(value, None, known[name], f"{where}.{name}")
    return given


def _parts(text: str) -> list[str]:
    """What stands between the commas that are in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _holds_pieces(now: object) -> bool:
    items = cast("tuple[object, ...]", now) if isinstance(now, tuple) else (now,)
    return any(dataclasses.is_dataclass(item) for item in items)


def _options(now: object, annotation: Any) -> dict[str, type]:
    """The dataclasses that may stand here: those of the present piece's room, and those that the field's type names."""
    kinds = _kinds(now, annotation)
    found = [each for each in _members(kinds) if inspect.isclass(each) and dataclasses.is_dataclass(each)]
    own = [kind for kind in kinds if dataclasses.is_dataclass(kind)]
    return {kind.__name__: kind for kind in (*found, *own)}


def _makers(now: object, annotation: Any) -> dict[str, Callable[[], Any]]:
    """The functions of the same rooms that make a piece without being told anything: settings with a name, `rloo`."""
    members = [each for each in _members(_kinds(now, annotation)) if inspect.isfunction(each)]
    return {
        each.__name__: each
        for each in members
        if _needs_nothing(each) and dataclasses.is_dataclass(get_type_hints(each).get("return"))
    }


def _needs_nothing(maker: Callable[..., Any]) -> bool:
    """Whether a function can be called without arguments."""
    return all(each.default is not each.empty for each in inspect.signature(maker).parameters.values())


def _kinds(now: object, annotation: Any) -> list[type]:
    """The classes of what is there now and of what the field's type names."""
    items = cast("tuple[object, ...]", now) if isinstance(now, tuple) else (now,)
    return [*_classes(annotation), *(kind for item in items for kind in _classes(item) or [type(item)])]


def _classes(annotation: Any) -> list[type]:
    """The classes that a type names, `Env` in `Sequence[Env] | None`."""
    own = [annotation] if inspect.isclass(annotation) and not get_args(annotation) else []
    return [*own, *(kind for part in get_args(annotation) for kind in _classes(part))]


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("bough.")


def _members(kinds: Sequence[type]) -> list[object]:
    """Everything that the rooms of these classes export, and the rooms within those."""
    rooms = {".".join(kind.__module__.split(".")[:2]) for kind in kinds if _is_ours(kind)}
    modules = [importlib.import_module(room) for room in sorted(rooms)]
    for room in tuple(modules):
        inner = (each.name for each in pkgutil.iter_modules(getattr(room, "__path__", ())) if each.ispkg)
        modules += [importlib.import_module(f"{room.__name__}.{name}") for name in inner]
    # Names that a package imports on first use (`bough.lazy`) are not settings.
    return [vars(module)[name] for module in modules for name in getattr(module, "__all__", ()) if name in vars(module)]
