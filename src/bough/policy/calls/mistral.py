"""Calls of Mistral: a JSON list after a special token."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from bough.policy.calls.objects import decode_json, json_call, split_thinking
from bough.tree import Action, BadCall, ToolCall

TAG = "[TOOL_CALLS]"
ID = re.compile(r"[a-zA-Z0-9]{9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistral:
    """The calls are a JSON list after `[TOOL_CALLS]`. An id has 9 letters or digits.

    A call without such an id gets one derived from its place and content.

    Example:
        >>> Mistral().parse('[TOOL_CALLS] [{"name": "find", "arguments": {"item": "tea"}, "id": "a1b2c3d4e"}]')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id='a1b2c3d4e'),))
    """

    def parse(self, text: str) -> Action:
        """See `CallFormat`."""
        kept, rest = split_thinking(text)
        before, tag, body = rest.partition(TAG)
        if not tag:
            return Action(text=text.strip())
        body, need = body.strip(), f'need {TAG} [{{"name": "NAME", "arguments": {{...}}}}]'
        try:
            value, end = decode_json(body)
        except ValueError as error:
            return Action(
                text=(kept + before).strip(), calls=(BadCall(text=TAG + body, problem=f"got {error}; {need}"),)
            )
        if not isinstance(value, list) or not value:
            bad = BadCall(text=TAG + body, problem=f"got no list of calls; {need}")
            return Action(text=(kept + before).strip(), calls=(bad,))
        items = cast("list[object]", value)
        calls = [_call(item, place) for place, item in enumerate(items)]
        return Action(text=(kept + before + body[end:]).strip(), calls=tuple(calls))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        good = [call for call in action.calls if isinstance(call, ToolCall)]
        bad = "".join(call.text for call in action.calls if isinstance(call, BadCall))
        if not good:
            return action.text + bad
        rows = [
            {
                "name": call.name,
                "arguments": dict(call.arguments),
                "id": self.template_id(call.call_id or _name(call, at)),
            }
            for at, call in enumerate(good)
        ]
        return f"{action.text}{TAG} {json.dumps(rows, ensure_ascii=False)}{bad}"

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`: an id of another form becomes 9 digits of its hash."""
        if ID.fullmatch(call_id):
            return call_id
        return hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=5).hexdigest()[:9]


def _call(item: object, place: int) -> ToolCall | BadCall:
    text = json.dumps(item, ensure_ascii=False)

    def given(call: Mapping[str, object]) -> str:
        found = call.get("id")
        return found if isinstance(found, str) and ID.fullmatch(found) else Mistral().template_id(f"{place}{text}")

    return json_call(item, text, key="arguments", call_id=given)


def _name(call: ToolCall, place: int) -> str:
    return f"{place}{call.name}{json.dumps(dict(call.arguments))}"
