"""Changes a run by text: `optimizer.learning_rate=3e-4`, `credit=Grpo(std=none)`, `rewards.1.penalty=0`."""

import ast
import dataclasses
import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast, get_type_hints

from bough.config.config import ConfigError, build, check, fields_of, is_piece
from bough.config.fields import short_names, unknown_field
from bough.config.kinds import NOT_FINITE, element_of, item_of, number_of, wants_piece
from bough.config.naming import find_piece
from bough.nearest import unknown

PIECE = re.compile(
    r"^(?:(?P<file>[^()\[\]{}'\",=]+\.py):)?(?P<name>[A-Za-z_]\w*)\s*(?P<call>\((?P<arguments>.*)\))?$", re.DOTALL
)
ARGUMENT = re.compile(r"^(?P<name>[A-Za-z_]\w*)\s*=(?P<value>.*)$", re.DOTALL)
NAMED = re.compile(r"^\{(.*)\}$", re.DOTALL)
ITEM = re.compile(r"^\s*(?P<quote>['\"]?)(?P<name>[A-Za-z_]\w*)(?P=quote)\s*:(?P<value>.*)$", re.DOTALL)
SEVERAL = re.compile(r"^(\(.*\)|\[.*\])$", re.DOTALL)
NOTHING = ("none", "null")
QUOTES, OPEN, CLOSE = "'\"", "([{", ")]}"


@dataclasses.dataclass(slots=True)
class _Change:
    """The change of a value: a text for all of it, and the changes of its parts by name.

    Attributes:
        label: Its path as the user wrote it; "" for a group that is named by its fields alone.
        written: The paths, as the user wrote them, of all changes in it.
        text: The text of its new value; None where only parts change.
        parts: The changes of its fields, or of its items by name or index.
    """

    label: str = ""
    written: list[str] = dataclasses.field(default_factory=list[str])
    text: str | None = None
    parts: "dict[str, _Change]" = dataclasses.field(default_factory=dict[str, "_Change"])


def override(run: Any, changes: Sequence[str]) -> Any:
    """A run with fields changed.

    Each change is `path=value`. A path goes through pieces by field name and through tuples by index. The names of
    groups are optional: `steps` is `world.schedule.steps`. A value is JSON if it parses, else text. A piece is written
    as its class, or as a function that makes it, with or without arguments. A user's piece follows its file:
    `credit=mine.py:FirstTurns(fade=0.8)`. Several pieces are a list: `rewards=[EnvReward, InvalidAction(penalty=0.1)]`.
    Pieces by name are a mapping: `models={judge: OpenAi(...)}`, or one of them `models.judge=OpenAi(...)`.
    Quoted text is not split.

    The order of changes is free: a piece comes before the changes of its fields, and its constructor checks the result
    of them all. Of two values for one path the last one stays.

    Raises:
        ConfigError: on an unknown field (with the nearest known one) or a value that the field does not take.
    """
    if isinstance(changes, str | Mapping):
        raise ConfigError(f"changes: got {changes!r}; need a list of texts, as in ['steps=20']")
    whole = _Change()
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not path:
            raise ConfigError(f"got {change!r}; need field=value, as in optimizer.learning_rate=3e-4")
        _add(whole, path, full_path(run, path), text)
    return _with_parts(run, whole, cast("Any", type(cast("object", run))))


def _add(whole: _Change, path: str, segments: Sequence[str], text: str) -> None:
    """Adds the change of one path to the changes of the run; `segments` begins with the groups of the path."""
    written = path.split(".")
    groups = len(segments) - len(written)
    found = whole
    for place, name in enumerate(segments):
        found = found.parts.setdefault(name, _Change())
        found.written.append(path)
        found.label = ".".join(written[: max(0, place + 1 - groups)]) or found.label
    found.text = text


def full_path(value: object, path: str) -> list[str]:
    """The segments of a dotted path in a dataclass, with the groups that its first segment is in.

    Raises:
        ConfigError: when no field has the name of the first segment; suggests a similar one.
    """
    first, *rest = path.split(".")
    known = short_names(type(value))
    if first not in known:
        raise ConfigError(f"{first}: {unknown_field(value, first)} in {type(value).__name__}")
    return [*known[first], *rest]


def _changed(now: Any, change: _Change, annotation: Any) -> Any:
    """The value after a change: first all of it, then its parts."""
    if change.text is None:
        return _with_parts(now, change, annotation)
    return read(change.text, now, annotation, change.label, change)


def _with_parts(value: Any, change: _Change, annotation: Any) -> Any:
    """A copy of `value` with its parts changed, all before the constructor checks them."""
    parts = change.parts
    if not parts:
        return value
    if isinstance(value, tuple):
        items = list(cast("tuple[Any, ...]", value))
        for name, part in parts.items():
            if not name.isdecimal() or int(name) >= len(items):
                need = f"a number from 0 to {len(items) - 1}" if items else "pieces first: the list is empty"
                raise ConfigError(f"{part.label}: got {name!r}; need {need}")
            now = items[int(name)]
            items[int(name)] = _changed(now, part, element_of(annotation) or cast("Any", type(now)))
        return tuple(items)
    if (item := item_of(annotation)) is not None:
        named = cast("Mapping[str, Any]", value)
        return {**named, **{name: _changed(named.get(name), part, item) for name, part in parts.items()}}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        label = next(iter(parts.values())).label
        raise ConfigError(f"{label}: {change.label} is {value!r}, which has no fields; need {change.label}=VALUE")
    fields = _fields(type(value), parts, {each: getattr(value, each) for each in fields_of(type(value))})
    try:
        return dataclasses.replace(value, **fields)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{_causes(value, fields, parts, error)}: {error}") from error


def _fields(cls: type, parts: Mapping[str, _Change], now: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass that change, from their present values.

    Raises:
        ConfigError: when the class has no such field.
    """
    known = fields_of(cls)
    for name, part in parts.items():
        if name not in known:
            raise ConfigError(f"{part.label}: {unknown(name, known)} in {cls.__name__}")
    return {name: _changed(now.get(name), part, known[name]) for name, part in parts.items()}


def _causes(value: Any, fields: Mapping[str, Any], parts: Mapping[str, _Change], error: Exception) -> str:
    """The fields that cause an error, as the user wrote them.

    A field causes it if it does not occur without the field's change; if no single field does, all of them cause it.
    """

    def occurs_without(name: str) -> bool:
        try:
            dataclasses.replace(value, **{each: fields[each] for each in fields if each != name})
        except (TypeError, ValueError) as other:
            return str(other) == str(error)
        return False

    causes = [name for name in fields if not occurs_without(name)] or [*fields]
    return ", ".join(parts[name].label or ", ".join(dict.fromkeys(parts[name].written)) for name in causes)


def read(text: str, now: object, annotation: Any, where: str, change: _Change | None = None) -> Any:
    """The value of a text with the changes of its parts, given the present value and the type of the field."""
    change = change or _Change()
    text = text.strip()
    plain = text.lower() in NOTHING or (number_of(annotation) is not None and text.lower() in NOT_FINITE)
    if not (wants_piece(annotation) or is_piece(now)) or plain:
        value = interpret(annotation, text, where)
    elif (item := item_of(annotation)) is not None and (named := NAMED.match(text)):
        pairs = [(part, ITEM.match(part)) for part in split_arguments(named[1], where)]
        if wrong := [part for part, pair in pairs if pair is None]:
            raise ConfigError(f"{where}: got {wrong[0]!r}; need name: Piece(field=value)")
        found = {pair["name"]: pair["value"] for _, pair in pairs if pair is not None}
        values = {name: read(each, None, item, f"{where}.{name}") for name, each in found.items()}
        value = check(annotation, values, where)
    elif SEVERAL.match(text):
        element = element_of(annotation)
        items = [
            read(part, now, element, f"{where}.{place}")
            for place, part in enumerate(split_arguments(text[1:-1], where))
        ]
        value = check(annotation, tuple(items), where)
    elif written := PIECE.match(text):
        maker = find_piece(written["name"], written["file"], now, annotation, where)
        return check(annotation, _piece(maker, written["arguments"] or "", where, change), where)
    else:
        split_arguments(text, where)  # raises for a bracket or a quote that is not closed
        value = interpret(annotation, text, where)
    return _with_parts(value, change, annotation)


def _piece(maker: Callable[..., Any], text: str, where: str, change: _Change) -> Any:
    """The piece of a dataclass or a function with arguments in text, and with its parts changed."""
    if not inspect.isclass(maker):
        made = make(maker, text, where)
        return _with_parts(made, change, cast("Any", type(made)))
    given = _arguments(fields_of(maker), maker.__name__, text, where)
    defaults = {each.name: default_of(each) for each in dataclasses.fields(cast("Any", maker))}
    return build(maker, given | _fields(maker, change.parts, defaults | given), where)


def default_of(each: "dataclasses.Field[Any]") -> Any:
    """The default of a field; None where it has none."""
    if each.default_factory is not dataclasses.MISSING:
        return each.default_factory()
    return None if each.default is dataclasses.MISSING else each.default


def interpret(annotation: Any, text: str, where: str) -> Any:
    """A plain value from text: a literal if the field's type accepts it, else a list of values, else the text itself.

    The texts of a list need no quotes: [up, down], or [[up, up], [left]].
    """
    try:
        return check(annotation, _literal(text), where)
    except ConfigError as error:
        if SEVERAL.match(text) and (element := element_of(annotation)) is not None:
            parts = enumerate(split_arguments(text[1:-1], where))
            return check(
                annotation, tuple(interpret(element, part.strip(), f"{where}.{at}") for at, part in parts), where
            )
        # "none" is no value for a field with a fixed set of words, but may be one of the words.
        try:
            return check(annotation, text, where)
        except ConfigError:
            raise error from None


def _literal(text: str) -> Any:
    """A number, a bool, None, a list, a mapping; else the text itself."""
    names = {"true": True, "false": False} | dict.fromkeys(NOTHING)
    if text.lower() in names:
        return names[text.lower()]
    for read in (json.loads, ast.literal_eval):
        try:
            with warnings.catch_warnings(action="ignore", category=SyntaxWarning):  # of `1e9x`
                value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two for thousands of brackets
            continue
        return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
    return text


def make(maker: Callable[..., Any], text: str, where: str, *given: object) -> Any:
    """The value that a dataclass or a function makes with arguments in text, `a=1, b=x`.

    Args:
        maker: The dataclass or function.
        text: The arguments.
        where: The field or option, for messages.
        given: Values of the first parameters of a function, which `text` does not name.

    Raises:
        ConfigError: when an argument is unknown, missing, or of the wrong type.
    """
    if inspect.isclass(maker):
        return build(maker, _arguments(fields_of(maker), maker.__name__, text, where), where)
    hints, every = (_known_hints if inspect.isfunction(maker) else _hints)(maker)
    parameters = dict(every[len(given) :])
    named = _arguments({name: hints.get(name, Any) for name in parameters}, maker.__name__, text, where)
    if lacking := [name for name, each in parameters.items() if each.default is each.empty and name not in named]:
        words = ", ".join(f"{name}=..." for name in lacking)
        raise ConfigError(
            f"{where}: got {maker.__name__} without {', '.join(lacking)}; need {maker.__name__}({words})"
            "; a function that is named here is called, and returns the piece"
        )
    try:
        return maker(*given, **named)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _hints(maker: Callable[..., Any]) -> tuple[Mapping[str, Any], Sequence[tuple[str, inspect.Parameter]]]:
    """The types of a callable's parameters, and the parameters."""
    return get_type_hints(maker), [*inspect.signature(maker).parameters.items()]


_known_hints = lru_cache(maxsize=1024)(_hints)
"""`_hints` of functions, read once for each."""


def _arguments(known: Mapping[str, Any], whose: str, text: str, where: str) -> dict[str, Any]:
    """The arguments `a=1, b=x` as values by name, each of its known type."""
    given: dict[str, Any] = {}
    for part in split_arguments(text, where):
        argument = ARGUMENT.match(part)
        if argument is None:
            raise ConfigError(f"{where}: got the argument {part!r}; need name=value")
        name = argument["name"]
        if name not in known:
            raise ConfigError(f"{where}.{name}: {unknown(name, known)} in {whose}")
        given[name] = read(argument["value"], None, known[name], f"{where}.{name}")
    return given


def split_arguments(text: str, where: str) -> list[str]:
    """Split a text at the commas outside brackets and quotes.

    Raises:
        ConfigError: when a bracket or a quote is not closed.
    """
    parts, waiting = [""], list[str]()
    for letter, begins in _letters(text):
        quoted = bool(waiting) and waiting[-1] in QUOTES
        if waiting and letter == waiting[-1]:
            waiting.pop()
        elif letter in QUOTES and begins and not quoted:
            waiting.append(letter)
        elif letter in OPEN and not quoted:
            waiting.append(CLOSE[OPEN.index(letter)])
        elif letter in CLOSE and not quoted:
            raise ConfigError(f"{where}: got {text!r} with a stray {letter!r}; remove it, or put text into quotes")
        if letter == "," and not waiting:
            parts.append("")
        else:
            parts[-1] += letter
    if waiting:
        raise ConfigError(f"{where}: got {text!r} without {waiting[-1]!r}; close it, or put text into quotes")
    return [part.strip() for part in parts if part.strip()]


def _letters(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character (an escape is one), and whether a value may begin with it."""
    before = ""
    for letter in re.findall(r"\\.|.", text, re.DOTALL):
        yield letter, not before or before in "=,:" + OPEN
        before = letter if letter.strip() else before
