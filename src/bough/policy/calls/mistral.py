"""Calls of Mistral: a special token, then a JSON list, or a name and JSON arguments."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.objects import decode_json, json_call, no_id
from bough.policy.calls.thinking import find_call
from bough.tree import Action, BadCall, ToolCall

TAG, CALL_ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
MARK = re.compile(rf"{re.escape(TAG)}\s*")
NAMED = re.compile(rf"([^\s\[\]{{}}]+)\s*(?:{re.escape(CALL_ID)}\s*(\w*)\s*)?{re.escape(ARGS)}\s*")
BLANK = re.compile(r"\s*")
ID = re.compile(r"[a-zA-Z0-9]{9}")

LIST = f'{TAG} [{{"name": "NAME", "arguments": {{...}}}}]'


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistral:
    """The calls are a JSON list after `[TOOL_CALLS]`, or one name with arguments after each. An id has 9 characters.

    All forms are parsed, whichever is written. A call without such an id gets one derived from its place and content,
    where the form has ids.

    Attributes:
        named: Whether calls are written as `[TOOL_CALLS]NAME[ARGS]{...}`, the form since tokenizers of version 11.
        ids: Whether these are written with `[CALL_ID]ID` after the name, as by version 11.
        space: Written between `[TOOL_CALLS]` and a list.

    Example:
        >>> Mistral().parse('[TOOL_CALLS] [{"name": "find", "arguments": {"item": "tea"}, "id": "a1b2c3d4e"}]')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id='a1b2c3d4e'),))
        >>> Mistral().parse('[TOOL_CALLS]find[ARGS]{"item": "tea"}')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    named: bool = False
    ids: bool = False
    space: str = " "

    def parse(self, text: str, begin: int = 0) -> Action:
        """See `CallFormat`."""
        kept, at = "", 0
        calls: list[ToolCall | BadCall] = []
        while found := find_call(MARK, text, max(begin, at)):
            kept += text[at : found.start()]
            named = NAMED.match(text, found.end())
            other = f"{len(calls)}{text[found.end() :]}" if self.ids else ""
            more, at = _named(text, named, other) if named else _listed(text, found.end())
            calls += more
        return Action(text=(kept + text[at:]).strip(), calls=tuple(calls))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        good = [call for call in action.calls if isinstance(call, ToolCall)]
        bad = "".join(call.text for call in action.calls if isinstance(call, BadCall))
        if not good:
            return action.text + bad
        ids = [self.template_id(call.call_id or f"{at}{call.name}{_json(call)}") for at, call in enumerate(good)]
        if self.named:
            parts = [
                f"{TAG}{call.name}{CALL_ID + each if self.ids else ''}{ARGS}{_json(call)}"
                for call, each in zip(good, ids, strict=True)
            ]
            return action.text + "".join(parts) + bad
        rows = [
            {"name": call.name, "arguments": dict(call.arguments), "id": each}
            for call, each in zip(good, ids, strict=True)
        ]
        return f"{action.text}{TAG}{self.space}{json.dumps(rows, ensure_ascii=False)}{bad}"

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`: an id of another form becomes 9 digits of its hash."""
        return _nine(call_id)


def _nine(call_id: str) -> str:
    if ID.fullmatch(call_id):
        return call_id
    return hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=5).hexdigest()[:9]


def _json(call: ToolCall) -> str:
    return json.dumps(dict(call.arguments), ensure_ascii=False)


def _named(text: str, head: re.Match[str], other: str) -> tuple[list[ToolCall | BadCall], int]:
    """The call whose arguments begin after a name, and the position after it; `other` stands for an id, "" for none."""
    try:
        arguments, end = decode_json(text, head.end())
    except ValueError as error:
        mark = MARK.search(text, head.end())
        end = mark.start() if mark else len(text)
        problem = f"got {error}; need {TAG}NAME{ARGS}{{...}}"
        return [BadCall(text=text[head.start() : end], problem=problem)], end
    given = partial(_given, head[2] or other) if head[2] or other else no_id
    row = {"name": head[1], "arguments": arguments}
    return [json_call(row, text[head.start() : end], key="arguments", call_id=given)], end


def _listed(text: str, begin: int) -> tuple[list[ToolCall | BadCall], int]:
    """The calls of a list, and the position after it. A call after which the list does not go on, or end, is bad."""
    if not text.startswith("[", begin):
        return [BadCall(text=TAG + text[begin:], problem=f"got no list of calls; need {LIST}")], len(text)
    calls: list[ToolCall | BadCall] = []
    at = begin
    while text[at] != "]" or not calls:
        start = _skip(text, at + 1)
        try:
            value, end = decode_json(text, start)
        except ValueError as error:
            return [*calls, BadCall(text=text[start:], problem=f"got {error}; need {LIST}")], len(text)
        part, at = text[start:end], _skip(text, end)
        if text[at : at + 1] not in {",", "]"}:
            return [*calls, BadCall(text=text[start:], problem=f"got no ] after the calls; need {LIST}")], len(text)
        calls.append(json_call(value, part, key="arguments", call_id=partial(_given, f"{len(calls)}{part}")))
    return calls, at + 1


def _given(other: str, call: Mapping[str, object]) -> str:
    """The id of a call; one derived from another text where it has none of the right form."""
    found = call.get("id")
    return found if isinstance(found, str) and ID.fullmatch(found) else _nine(other)


def _skip(text: str, at: int) -> int:
    """The position after blanks."""
    blank = BLANK.match(text, at)
    return blank.end() if blank else at
