"""Calls as a Python list: `[find(item="tea"), wait()]`."""

import ast
import json
import re
import warnings
from dataclasses import dataclass

from bough.policy.calls.objects import split_thinking
from bough.tree import Action, BadCall, ToolCall

CALL = re.compile(r"^\s*\[\s*[A-Za-z_][\w.]*\s*\(", re.MULTILINE)
NEED = 'need [NAME(ARGUMENT="VALUE"), ...] with named arguments and literal values'


@dataclass(frozen=True, slots=True, kw_only=True)
class Pythonic:
    """The calls are a list of Python calls with named arguments and literal values, after any text.

    The list is parsed to a syntax tree; nothing is executed.

    Example:
        >>> Pythonic().parse('[find(item="tea")]')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    def parse(self, text: str) -> Action:
        """See `CallFormat`."""
        kept, rest = split_thinking(text)
        found = CALL.search(rest)
        if found is None:
            return Action(text=text.strip())
        body = rest[found.start() :].strip()
        return Action(text=(kept + rest[: found.start()]).strip(), calls=tuple(_calls(body)))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        calls = [_written(call) for call in action.calls if isinstance(call, ToolCall)]
        bad = [call.text for call in action.calls if isinstance(call, BadCall)]
        return "\n".join(filter(None, (action.text, f"[{', '.join(calls)}]" if calls else "", *bad)))

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`."""
        return call_id


def _calls(body: str) -> list[ToolCall | BadCall]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            parsed = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        return [BadCall(text=body, problem=f"got no Python list of calls ({type(error).__name__}); {NEED}")]
    if not isinstance(parsed, ast.List):
        return [BadCall(text=body, problem=f"got no list of calls; {NEED}")]
    return [_call(each, ast.get_source_segment(body, each) or body) for each in parsed.elts]


def _call(node: ast.expr, text: str) -> ToolCall | BadCall:
    if not isinstance(node, ast.Call):
        return BadCall(text=text, problem=f"got an entry that is no call; {NEED}")
    name = _name(node.func)
    if not name or node.args or any(each.arg is None for each in node.keywords):
        return BadCall(text=text, problem=f"got a call without a plain name, or with arguments without names; {NEED}")
    try:
        given = {each.arg or "": ast.literal_eval(each.value) for each in node.keywords}
        written = json.dumps(given, ensure_ascii=False, allow_nan=False)
        written.encode()
    except (TypeError, ValueError, MemoryError, RecursionError):
        return BadCall(text=text, problem=f"got an argument that is no text, number, truth value, list or dict; {NEED}")
    return ToolCall(name=name, arguments=json.loads(written))


def _name(node: ast.expr) -> str:
    """The dotted name of an expression; "" for any other."""
    if isinstance(node, ast.Name):
        return node.id
    inner = _name(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if isinstance(node, ast.Attribute) and inner else ""


def _written(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
