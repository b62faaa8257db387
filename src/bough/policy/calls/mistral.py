"""Calls of Mistral: a special token, then a JSON list, or a name and JSON arguments."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.json_list import call_row, read_list
from bough.policy.calls.objects import decode_json, json_call, no_id, write_json
from bough.policy.calls.scan import ReadCalls, good_and_bad, scan
from bough.tree import Action, BadCall, Tool, ToolCall

TAG, CALL_ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
MARK = re.compile(rf"{re.escape(TAG)}\s*")
NAMED = re.compile(rf"([^\s\[\]{{}}]+)\s*(?:{re.escape(CALL_ID)}\s*(\w*)\s*)?{re.escape(ARGS)}\s*")
ID = re.compile(r"[a-zA-Z0-9]{9}")

LIST = f'{TAG} [{{"name": "NAME", "arguments": {{...}}}}]'


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistral(PlainFormat):
    """The calls are a JSON list after `[TOOL_CALLS]`, or one name with arguments after each. An id has 9 characters.

    All formats are parsed, whichever is written. A call without such an id gets one derived from its place and content,
    where the format has ids.

    Attributes:
        named: Whether calls are written as `[TOOL_CALLS]NAME[ARGS]{...}`, the format since tokenizers of version 11.
        ids: Whether these are written with `[CALL_ID]ID` after the name, as by version 11.
        space: Written between `[TOOL_CALLS]` and a list.

    Examples:
        >>> Mistral().parse('[TOOL_CALLS] [{"name": "find", "arguments": {"item": "tea"}, "id": "a1b2c3d4e"}]')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id='a1b2c3d4e'),))
        >>> Mistral().parse('[TOOL_CALLS]find[ARGS]{"item": "tea"}')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    named: bool = False
    ids: bool = False
    space: str = " "

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (TAG,)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        number = count()

        def read(mark: re.Match[str]) -> ReadCalls:
            named = NAMED.match(text, mark.end())
            place = next(number)
            other = f"{place}{text[mark.end() :]}" if self.ids else ""
            return _named(text, named, other) if named else _listed(text, mark.end())

        return scan(MARK, text, begin, read)

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        good, bad = good_and_bad(action)
        if not good:
            return action.text + bad
        ids = [self.template_id(call.call_id or f"{at}{call.name}{_json(call)}") for at, call in enumerate(good)]
        if self.named:
            parts = [
                f"{TAG}{hide(call.name)}{CALL_ID + each if self.ids else ''}{ARGS}{hide(_json(call))}"
                for call, each in zip(good, ids, strict=True)
            ]
            return action.text + "".join(parts) + bad
        rows = [{**call_row(call), "id": each} for call, each in zip(good, ids, strict=True)]
        return f"{action.text}{TAG}{self.space}{hide(write_json(rows))}{bad}"

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`: an id of another format becomes 9 digits of its hash."""
        return _nine(call_id)


def _nine(call_id: str) -> str:
    if ID.fullmatch(call_id):
        return call_id
    return hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=5).hexdigest()[:9]


def _json(call: ToolCall) -> str:
    return write_json(dict(call.arguments))


def _named(text: str, head: re.Match[str], other: str) -> ReadCalls:
    """The call whose arguments begin after a name; `other` stands for an id, "" for none."""
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


def _listed(text: str, begin: int) -> ReadCalls:
    """The calls of a list."""
    if not text.startswith("[", begin):
        return [BadCall(text=TAG + text[begin:], problem=f"got no list of calls; need {LIST}")], len(text)
    return read_list(text, begin, LIST, lambda number, part: partial(_given, f"{number}{part}"))


def _given(other: str, call: Mapping[str, object]) -> str:
    """The id of a call; one derived from another text where it has none of the right form."""
    found = call.get("id")
    return found if isinstance(found, str) and ID.fullmatch(found) else _nine(other)
