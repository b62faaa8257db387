"""Applies a tokenizer's chat template to messages and tools."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import TemplateError

from bough.policy.calls import CallFormat, find_format
from bough.policy.template_date import CLOCK, date_of, with_date
from bough.policy.text_cache import TextCache
from bough.policy.tool_text import TextCalls, result_as_text, tools_as_text
from bough.tree import Action, Tool, ToolCall, read_call, tool_record
from bough.units import MIB
from bough.usercode.processor_limit import OutOfTime, processor_limit
from bough.usercode.trial import TrialError, try_in_child

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROBE = ToolCall(name="probe_tool", arguments={"probe": "[[argument]]"}, call_id="a1b2c3d4e")
PROBE_TOOL = Tool(
    name=PROBE.name,
    description="[[tool]]",
    schema={"type": "object", "properties": {"probe": {"type": "string", "description": "[[probe]]"}}},
)


DEADLINE_S, MEMORY_BYTES = 10.0, 1 << 29
"""Limits of the first renderings of a template together; the time is also that of each later one."""

MOST_CHARACTERS, MOST_COPIES = 100_000, 16
"""A template writes at most so many characters of its own, and so many copies of what it is given."""


class Entry(NamedTuple):
    """A message for the template, hashable.

    Attributes:
        role: Its role.
        content: Its text.
        calls: The calls of an assistant's message, as JSON; "" without any.
        call_id: The call that a tool's message answers.
        sampled: Whether its tokens were sampled.
    """

    role: str
    content: str
    calls: str = ""
    call_id: str = ""
    sampled: bool = False


class RefusedByTemplate(ValueError):
    """The template raised an error on a conversation."""


class ChatTemplate:
    """A chat template, with the parts that it lacks written by Bough.

    A template without a system role gets the system prompt at the beginning of the first user message. One that refuses
    two user messages in a row gets them as one. One without tools, or whose form of calls is unknown, gets the tools in
    the system prompt (`tools_as_text`), calls as text (`TextCalls`), and results in the user's message.

    Attributes:
        format: The form of its calls.
        takes_tools: Whether the template has a form of its own for tools, calls and results.
        opens_thinking: Whether the generation prompt ends with `<think>`, so that an action begins within thinking.
        takes_raw_calls: Whether a sampled message with calls can stand as plain text before the results. Otherwise only
            `frame` shows how the conversation is rendered.
        lead: The blanks that the template writes between the generation prompt and an assistant's text.
        call_lead: What it writes between the generation prompt and the name of a message's first call.
        call_tail: What it writes between the name of a call without arguments and the end of the message.
        around_result: What it writes between a call and the content of its result, and after it; "" each where it
            takes no tools.
    """

    def __init__(
        self, tokenizer: "PreTrainedTokenizerBase", arguments: Mapping[str, object], date: datetime | None = None
    ) -> None:
        """Try the template on short conversations.

        Args:
            tokenizer: With a chat template.
            arguments: Arguments of the template besides messages and tools.
            date: The date that the template writes, if it writes one; None for the present one.

        Raises:
            ValueError: when the template fails on one user message, does not end, fills memory, or writes too much.
        """
        self._tokenizer: Any = tokenizer
        self._arguments = dict(arguments)
        written: object = self._tokenizer.chat_template
        if isinstance(written, str) and CLOCK in written:
            self._arguments["chat_template"] = written = with_date(written, date or date_of(None))
        self._own = f"{written} {self._arguments}"
        self.format: CallFormat = TextCalls()
        self.takes_tools, self._takes_system, self._joins_users = False, True, False
        self.lead = self.call_lead = self.call_tail = ""
        self.around_result = ("", "")
        # A conversation is also rendered without its last turn, which is cached: thousands grow at once.
        self.text = TextCache(self._text, most_bytes=256 * MIB)
        try:
            _try(written, lambda: (self._probe(), self._probe_long()))
        except TrialError as error:
            raise ValueError(f"got a chat template that fails: {error}; need one for user and assistant") from error
        self._probe()

    def _probe(self) -> None:
        """Find out on short conversations what the template takes."""
        user, said = Entry("user", "[[user]]"), Entry("assistant", "[[said]]")
        self.opens_thinking = self._text((user,)).rstrip().endswith("<think>")
        self._takes_system = "[[system]]" in self._tried(Entry("system", "[[system]]"), user)
        self._joins_users = not self._tried(user, user)
        lead = self._begin("[[said]]", user, said)
        self.lead = lead if lead.isspace() else ""
        self._find_tools(user)
        result = Entry("tool", "[[result]]", call_id=PROBE.call_id)
        self.takes_raw_calls = not self.takes_tools or bool(self._tried(user, said, result, said, result))

    def _probe_long(self) -> None:
        """Render conversations of many and of long messages."""
        turn = (Entry("user", "[[user]]"), Entry("assistant", "[[said]]"))
        for turns, text in ((64, ""), (1, "a b " * 4096)):
            self._text(tuple(entry._replace(content=entry.content + text) for _ in range(turns) for entry in turn))

    def entries(self, entries: Sequence[Entry], tools: str) -> tuple[list[dict[str, Any]], list[Any] | None]:
        """The messages and tools as the template gets them; `tools` is the JSON of a list, "" without any."""
        shown = list(entries)
        if tools and not self.takes_tools:
            written = tools_as_text(json.loads(tools))
            begins = shown[:1] and shown[0].role == "system"
            system = f"{shown[0].content}\n\n{written}" if begins else written
            shown[: 1 if begins else 0] = [Entry("system", system)]
        if not self.takes_tools:
            shown = _without_tool_role(shown, self.format)
        if not self._takes_system:
            shown = _without_system_role(shown)
        if self._joins_users:
            shown = _joined(shown, "user", "\n\n")
        return [self._message(entry) for entry in shown], json.loads(tools) if tools and self.takes_tools else None

    def frame(self, entries: tuple[Entry, ...], tools: str) -> list[str] | None:
        """The template's text before, between and after the sampled messages; None when it drops one.

        The text after a message begins with its end. Sampled messages stand for themselves: their content is not read.
        """
        given = (self._own, tools, *(text for entry in entries for text in (entry.content, entry.calls, entry.call_id)))
        salt = next(salt for salt in count() if not any(f"[[{salt}." in text for text in given))
        marks = [f"[[{salt}.{place}]]" if entry.sampled else "" for place, entry in enumerate(entries)]
        calls = [self._marks_call(entries, place) for place in range(len(entries))]
        marked = [
            entry if not mark else _called(mark) if call else Entry(entry.role, mark)
            for mark, call, entry in zip(marks, calls, entries, strict=True)
        ]
        rest = self._text(tuple(marked), tools)
        frame: list[str] = []
        for mark, call in zip(marks, calls, strict=True):
            if mark:
                before, found, rest = rest.partition(mark)
                if not found:
                    return None
                frame.append(before.removesuffix(self.call_lead if call else self.lead))
                rest = rest.removeprefix(self.call_tail) if call else rest
        return [*frame, rest]

    def _marks_call(self, entries: Sequence[Entry], place: int) -> bool:
        """Whether a sampled message has to be marked as a call, because a result follows it."""
        follows = place + 1 < len(entries) and entries[place + 1].role == "tool"
        return entries[place].sampled and follows and not self.takes_raw_calls

    def _message(self, entry: Entry) -> dict[str, Any]:
        message: dict[str, Any] = {"role": entry.role, "content": entry.content}
        if entry.role == "tool":
            message["tool_call_id"] = self.format.template_id(entry.call_id)
        if entry.calls:
            message["tool_calls"] = [
                {
                    "type": "function",
                    "id": self.format.template_id(call["call_id"]),
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in json.loads(entry.calls)
            ]
        return message

    def _text(self, entries: tuple[Entry, ...], tools: str = "", generates: bool = True) -> str:
        messages, shown = self.entries(entries, tools)
        given = self._arguments if shown is None else {**self._arguments, "tools": shown}
        try:
            with processor_limit(DEADLINE_S):
                text: str = self._tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=generates, **given
                )
        except OutOfTime as error:
            raise ValueError(
                f"got a chat template that did not end within {DEADLINE_S:g} s of processor time on one of the "
                "conversations; need one for user and assistant"
            ) from error
        except MemoryError as error:
            raise ValueError("got a chat template that fills the memory; need one for user and assistant") from error
        # A template is a program, which may raise anything.
        except Exception as error:
            reason = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            raise RefusedByTemplate(
                f"got a chat template that fails: {reason:.300}; need one for user and assistant"
            ) from error
        most = MOST_CHARACTERS + MOST_COPIES * (len(tools) + sum(len(each) for entry in entries for each in entry[:4]))
        if len(text) > most:
            raise ValueError(f"got a chat template that writes {len(text):,} characters; need at most {most:,}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                "got a chat template that writes half of a surrogate pair; need whole characters"
            ) from error
        return text

    def _tried(self, *entries: Entry) -> str:
        """The text of messages; "" when the template refuses them."""
        try:
            return self._text(entries)
        except RefusedByTemplate:
            return ""

    def _begin(self, mark: str, *entries: Entry) -> str:
        """What the template writes between the generation prompt and a mark in the message after it."""
        begin, (whole, _, _) = self._text(entries[:1]), self._text(entries, "", False).partition(mark)
        return whole.removeprefix(begin) if whole.startswith(begin) else ""

    def _find_tools(self, user: Entry) -> None:
        """Whether the template renders tools, calls and results, each in a form that is known."""
        tools, result = json.dumps([tool_record(PROBE_TOOL)]), Entry("tool", "[[result]]", call_id=PROBE.call_id)
        self.takes_tools = True
        try:
            begin = self._text((user,), tools)
            whole = self._text((user, _called(PROBE.name, PROBE.arguments)), tools, False)
            shown = self._text((user, _called(PROBE.name, PROBE.arguments), result), tools)
        except RefusedByTemplate:
            begin = whole = shown = ""
        call = whole.removeprefix(begin) if begin and whole.startswith(begin) else ""
        found = find_format(self._before_end(call), PROBE) if "[[tool]]" in begin and "[[result]]" in shown else None
        self.takes_tools = found is not None
        if found is not None:
            self.format = found
            before, _, after = shown.partition("[[result]]")
            self.around_result = before[len(whole) :] if before.startswith(whole) else "", after
            bare = self._text((user, _called("[[name]]")), tools, False).removeprefix(begin)
            self.call_lead, _, tail = bare.partition("[[name]]")
            self.call_tail = tail[: len(tail) - len(call) + len(self._before_end(call))]

    def _before_end(self, said: str) -> str:
        """The text of a message without what ends it: the template's text after a message without calls."""
        whole = self._text((Entry("user", "a"), Entry("assistant", "[[said]]")), "", False)
        return said.removesuffix(whole.partition("[[said]]")[2])


_PASSED: set[str] = set()
"""The templates that passed their trial in this process."""


def _try(template: object, render: Callable[[], object]) -> None:
    """Render in a child first, once for each template.

    Raises:
        TrialError: when the template crashes, hangs or fills memory there. One that refuses its conversation passes.
    """
    name = str(template)

    def refuses() -> None:
        with suppress(RefusedByTemplate):
            render()

    if name not in _PASSED:
        try_in_child(refuses, deadline_s=DEADLINE_S, memory_bytes=MEMORY_BYTES)
        _PASSED.add(name)


def _called(name: str, arguments: Mapping[str, object] | None = None) -> Entry:
    row = {"name": name, "arguments": dict(arguments or {}), "call_id": PROBE.call_id}
    return Entry("assistant", "", calls=json.dumps([row]))


def _without_tool_role(entries: Sequence[Entry], form: CallFormat) -> list[Entry]:
    """Calls as text, and results as the user's messages; results in a row are one message."""
    shown: list[Entry] = []
    for entry in entries:
        if entry.calls:
            calls = tuple(map(read_call, json.loads(entry.calls)))
            shown.append(entry._replace(content=form.write(Action(text=entry.content, calls=calls)), calls=""))
        elif entry.role == "tool":
            shown.append(Entry("result", result_as_text(entry.content)))
        else:
            shown.append(entry)
    shown = _joined(shown, "result", "\n")
    return [Entry("user", entry.content) if entry.role == "result" else entry for entry in shown]


def _without_system_role(entries: Sequence[Entry]) -> list[Entry]:
    """System messages as the beginning of the user's message after them."""
    shown: list[Entry] = []
    for entry in entries:
        if entry.role == "user" and shown and shown[-1].role == "system":
            shown[-1] = Entry("user", f"{shown[-1].content}\n\n{entry.content}")
        else:
            shown.append(entry)
    return [Entry("user", entry.content) if entry.role == "system" else entry for entry in shown]


def _joined(entries: Sequence[Entry], role: str, between: str) -> list[Entry]:
    """Messages of a role in a row as one."""
    shown: list[Entry] = []
    for entry in entries:
        if shown and entry.role == role == shown[-1].role:
            shown[-1] = Entry(role, f"{shown[-1].content}{between}{entry.content}")
        else:
            shown.append(entry)
    return shown
