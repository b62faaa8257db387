"""Messages of gpt-oss (harmony): channels for thinking, calls and the answer."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import decode_json, json_call, no_id, write_json
from bough.policy.calls.scan import good_and_bad, skip
from bough.tree import Action, BadCall, Tool, ToolCall
from bough.tree.thinking import THINK, THINK_END, ThinkingState, split_thinking

START, CHANNEL, MESSAGE = "<|start|>assistant", "<|channel|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
TO = "to=functions."
HEAD = re.compile(
    r"(?:<\|start\|>assistant)?([^<]*)(?:<\|channel\|>([^<]*))?(?:<\|constrain\|>[^<]*)?<\|message\|>", re.DOTALL
)
BODY = re.compile(r"(.*?)(<\|(?:end|call|return)\|>|(?=<\|(?:start|channel)\|>)|$)", re.DOTALL)
ENDING = re.compile(r"\s*(?:<\|(?:end|call|return)\|>|(?=<\|(?:start|channel)\|>)|$)")
RECIPIENT = re.compile(r"to=(?:functions\.)?(\S.*?)\s*(?:\s(?:json|code))?\s*$", re.DOTALL)
MARKS = re.compile(r"<\|(?:start|channel|message|constrain|end|call|return)\|>(?:assistant)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Harmony(PlainFormat):
    """A call is a message to `functions.NAME`, whose content is JSON; `<|call|>` ends it, `<|return|>` an answer.

    Messages of the channel `analysis` are thinking, between `<think>` and `</think>` in the action's text. Other
    messages without a receiver are text.

    Examples:
        >>> Harmony().parse(' to=functions.find<|channel|>commentary json<|message|>{"item": "tea"}')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (TO,)

    @property
    def stops(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (RETURN, CALL)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        thoughts, shown = list[str](), list[str]()
        calls: list[ToolCall | BadCall] = []
        at, open_thought = 0, False

        def say(written: str, left: str) -> None:
            if TO not in left:
                shown.append(left)
                return
            problem = f"got a call without a message; need {TO}NAME{CHANNEL}commentary json{MESSAGE}{{...}}{CALL}"
            calls.append(BadCall(text=written, problem=problem))

        while at < len(text):
            head = HEAD.search(text, at)
            outside = text[at : head.start() if head else len(text)]
            if left := MARKS.sub("", outside):
                say(outside, left)
            if head is None:
                break
            header = next((part for part in (head[1], head[2] or "") if "to=" in part), "")
            if header and head.start() >= begin:
                call, at = _call(header, text, head)
                calls.append(call)
                continue
            body = BODY.match(text, head.end())
            content, ending, at = (body[1], body[2], body.end()) if body else ("", "", len(text))
            if (head[2] or "").strip().startswith("analysis"):
                thoughts.append(content)
                open_thought = ending != END
            else:
                say(content, content)
        spoken = "".join(shown)
        open_thought = open_thought and not spoken and not calls
        thought = f"{THINK}{''.join(thoughts)}{'' if open_thought else THINK_END}" if thoughts else ""
        return Action(text=(thought + spoken).strip(), calls=tuple(calls))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        good, bad = good_and_bad(action)
        thinking = split_thinking(action.text)
        thought, shown = thinking.state is not ThinkingState.ABSENT, thinking.rest
        messages = [f"{CHANNEL}analysis{MESSAGE}{thinking.content}"] if thought else []
        if action.calls:
            messages += [f"{CHANNEL}commentary{MESSAGE}{shown}"] if shown else []
            messages += [_written(call, hide) for call in good] + ([bad] if bad else [])
        elif thinking.state is not ThinkingState.OPEN:
            messages.append(f"{CHANNEL}final{MESSAGE}{shown}")
        return f"{END}{START}".join(messages) + (CALL if good and not bad else "")


def _call(header: str, text: str, head: re.Match[str]) -> tuple[ToolCall | BadCall, int]:
    """The call of a message after its head, and the position after it. Its JSON may have the texts of marks."""
    need = f"need {TO}NAME{CHANNEL}commentary json{MESSAGE}{{...}}{CALL}"
    body = BODY.match(text, head.end())
    stop = body.end() if body else len(text)
    try:
        value, end = decode_json(text, skip(text, head.end()))
    except ValueError as error:
        return BadCall(text=text[head.start() : stop], problem=f"got {error}; {need}"), stop
    ending = ENDING.match(text, end)
    if ending is None:
        stop = max(stop, end)
        return BadCall(text=text[head.start() : stop], problem=f"got text after the JSON of a call; {need}"), stop
    receiver = RECIPIENT.search(header)
    row = {"name": receiver[1] if receiver else "", "arguments": value}
    return json_call(row, text[head.start() : ending.end()], key="arguments", call_id=no_id), ending.end()


def _written(call: ToolCall, hide: Callable[[str], str]) -> str:
    arguments = hide(write_json(dict(call.arguments)))
    return f" {TO}{hide(call.name)}{CHANNEL}commentary json{MESSAGE}{arguments}"
