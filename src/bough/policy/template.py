"""Applies a tokenizer's chat template to messages and tools."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from bough.policy.calls import FAMILIES, CallFormat, Family, ToolCode, family_by_calls, family_by_marks
from bough.policy.calls.find import PROBE_NAME
from bough.policy.template_date import CLOCK, date_of, with_date
from bough.policy.template_gaps import Entry, joined_role, without_system_role, without_tool_role
from bough.policy.template_trial import DEADLINE_S, RefusedByTemplate, try_template
from bough.policy.text_cache import TextCache
from bough.policy.tool_text import TextCalls, tools_as_text
from bough.tree import Action, Tool, ToolCall, call_record, tool_record
from bough.tree.thinking import (
    THINK_END,
    ThinkingState,
    before_prompt_thinking,
    continue_thinking,
    is_empty_thinking,
    prompt_thinking,
    restore_thinking,
    without_empty_thinking,
)
from bough.units import MIB
from bough.usercode.processor_limit import OutOfTime, processor_limit
from bough.usercode.trial import TrialError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROBE = ToolCall(name=PROBE_NAME, arguments={"probe": "[[argument]]"}, call_id="a1b2c3d4e")
SECOND = ToolCall(name="probe_other", arguments={}, call_id="f6g7h8i9j")
PROBE_TOOL = Tool(
    name=PROBE.name,
    description="[[tool]]",
    schema={"type": "object", "properties": {"probe": {"type": "string", "description": "[[probe]]"}}},
)

MOST_CHARACTERS, MOST_COPIES = 100_000, 16
"""A template writes at most so many characters of its own, and so many copies of what it is given."""


class ChatTemplate:
    """A chat template, with the parts that it lacks written by Bough.

    A template without a system role gets the system prompt at the beginning of the first user message. One that refuses
    two user messages in a row gets them as one. The format of its calls is that in which it writes a call, else that of
    the family whose marks its text has; calls that it does not write are text of the message. One of an unknown format
    gets the tools in the system prompt (`tools_as_text`), calls as text (`TextCalls`), and results in the user's
    message.

    Attributes:
        format: The format of its calls.
        found: Where the format was found, a sentence.
        takes_tools: Whether the template writes tools.
        no_tools: What it gets as tools where there are none.
        tools_in_message: Whether it takes tools as the system message's "tools".
        takes_system: Whether it writes system messages.
        writes_calls: Whether it writes calls, in the format.
        takes_results: Whether it writes results.
        prompt_thinking: The thinking at the end of the generation prompt; where it is open, an action begins in it.
        empty_thinking: What ends thinking that was opened and has no content.
        takes_raw_calls: Whether a sampled message with calls can stand as plain text before the results. Otherwise only
            `frame` shows how the conversation is rendered.
        lead: What the template writes between the generation prompt and an assistant's text: blanks, empty thinking,
            or what the format writes there.
        call_lead: What it writes between the generation prompt and the name of a message's first call.
        call_tail: What it writes between the name of a call without arguments and the end of the message.
        part_separator: What it writes between the parts of a message's content; a line feed where it takes none.
        around_result: What it writes between a call and the content of its result, and after it; "" each where it
            takes no results.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        arguments: Mapping[str, object],
        date: datetime | None = None,
        call_format: CallFormat | None = None,
    ) -> None:
        """Try the template on short conversations.

        Args:
            tokenizer: With a chat template.
            arguments: Arguments of the template besides messages and tools.
            date: The date that the template writes, if it writes one; None for the present one.
            call_format: The format of its calls; None for the one that is found.

        Raises:
            ValueError: when the template fails on one user message, does not end, fills memory, or writes too much.
        """
        self._tokenizer: Any = tokenizer
        self._arguments = dict(arguments)
        written: object = self._tokenizer.chat_template
        if isinstance(written, str) and CLOCK in written:
            self._arguments["chat_template"] = written = with_date(written, date or date_of(None))
        self._own = f"{written} {self._arguments}"
        # Some templates iterate over tools without a test for None.
        self.no_tools: list[object] | None = None
        self._given, self._template = call_format, str(written)
        self.format: CallFormat = call_format or TextCalls()
        self.found, self.empty_thinking = "", ""
        self.takes_tools = self.writes_calls = self.takes_results = False
        self.takes_system, self._joins_users = True, False
        self.tools_in_message = self._json_arguments = False
        self.lead = self.call_lead = self.call_tail = ""
        self.around_result = ("", "")
        # A conversation is also rendered without its last turn, which is cached: thousands grow at once.
        self.text = TextCache(self._text, most_bytes=256 * MIB)
        try:
            try_template(written, lambda: (self._probe(), self._probe_long()))
        except TrialError as error:
            raise ValueError(f"got a chat template that fails: {error}; need one for user and assistant") from error
        self._probe()

    def _probe(self) -> None:
        """Find out on short conversations what the template takes."""
        user, said = Entry("user", "[[user]]"), Entry("assistant", "[[said]]")
        if not self._tried(user):
            self.no_tools = []
        prompt = self._text((user,))
        self.prompt_thinking = prompt_thinking(prompt)
        self.takes_system = "[[system]]" in self._tried(Entry("system", "[[system]]"), user)
        self._joins_users = not self._tried(user, user)
        lead = self._begin("[[said]]", user, said)
        ended = is_empty_thinking(lead, opened=True)
        self.empty_thinking = lead if ended else THINK_END + ("\n\n" if prompt.endswith("\n") else "")
        self._find_tools(user)
        own = self.parse(f"{lead}[[said]]") == Action(text="[[said]]")
        self.lead = lead if own or is_empty_thinking(lead) else ""
        result = Entry("tool", "[[result]]", call_id=PROBE.call_id)
        self.takes_raw_calls = not self.takes_results or bool(self._tried(user, said, result, said, result))
        self.part_separator = self._find_separator()

    def parse(self, text: str, tools: Sequence[Tool] = ()) -> Action:
        """The action in a text after the generation prompt."""
        opened = self.prompt_thinking is ThinkingState.OPEN
        return self.format.parse(restore_thinking(text, self.empty_thinking) if opened else text, 0, tools)

    def after_prompt(self, text: str) -> str:
        """The text of an action as it continues the generation prompt; thinking that the prompt opens is closed."""
        return continue_thinking(text, self.empty_thinking) if self.prompt_thinking is ThinkingState.OPEN else text

    def _probe_long(self) -> None:
        """Render conversations of many and of long messages."""
        turn = (Entry("user", "[[user]]"), Entry("assistant", "[[said]]"))
        for turns, text in ((64, ""), (1, "a b " * 4096)):
            self._text(tuple(entry._replace(content=entry.content + text) for _ in range(turns) for entry in turn))

    def entries(self, entries: Sequence[Entry], tools: str) -> tuple[list[dict[str, Any]], list[Any] | None]:
        """The messages and tools as the template gets them; `tools` is the JSON of a list, "" without any."""
        shown = list(entries)
        begins = shown[:1] and shown[0].role == "system"
        if tools and (self.tools_in_message or not self.takes_tools):
            written = "" if self.takes_tools else tools_as_text(json.loads(tools), self.format)
            system = "\n\n".join(filter(None, [shown[0].content if begins else "", written]))
            shown[: 1 if begins else 0] = [Entry("system", system)]
        if not self.writes_calls or not self.takes_results:
            shown = without_tool_role(shown, self.format, calls=not self.writes_calls, results=not self.takes_results)
        if not self.takes_system:
            shown = without_system_role(shown)
        if self._joins_users:
            shown = joined_role(shown, "user", "\n\n")
        messages = [self._message(entry) for entry in shown]
        rows = json.loads(tools) if tools and self.takes_tools else None
        if rows and self.tools_in_message:
            messages[0]["tools"] = json.dumps([each["function"] for each in rows], ensure_ascii=False)
        return messages, None if self.tools_in_message else rows

    def frame(self, entries: tuple[Entry, ...], tools: str) -> list[str] | None:
        """The template's text before, between and after the sampled messages; None when it drops one.

        The text after a message begins with its end. Sampled messages stand for themselves: their content is not read.
        """
        given = (self._own, tools, *(text for entry in entries for text in (entry.content, entry.calls, entry.call_id)))
        salt = next(salt for salt in count() if not any(f"[[{salt}." in text for text in given))
        marks = [f"[[{salt}.{place}]]" if entry.sampled else "" for place, entry in enumerate(entries)]
        calls = [self._marks_call(entries, place) for place in range(len(entries))]
        marked = [
            entry
            if not mark
            else _called(ToolCall(name=mark, arguments={}, call_id=PROBE.call_id))
            if call
            else Entry(entry.role, mark)
            for mark, call, entry in zip(marks, calls, entries, strict=True)
        ]
        rest = self._text(tuple(marked), tools)
        frame: list[str] = []
        for mark, call, entry in zip(marks, calls, entries, strict=True):
            if mark:
                before, found, rest = rest.partition(mark)
                if not found:
                    return None
                frame.append(before.removesuffix(self.call_lead if call else self.lead))
                # Some templates write the name of the call before its result.
                rest = rest.removeprefix(self.call_tail).replace(mark, self._name(entry)) if call else rest
        return [*frame, rest]

    def _name(self, entry: Entry) -> str:
        """The name of a sampled message's first call; "" without any."""
        return next((each.name for each in self.parse(entry.content).calls if isinstance(each, ToolCall)), "")

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
                    "function": {"name": call["name"], "arguments": self._arguments_of(call)},
                }
                for call in json.loads(entry.calls)
            ]
        return message

    def _arguments_of(self, call: Mapping[str, object]) -> object:
        return json.dumps(call["arguments"], ensure_ascii=False) if self._json_arguments else call["arguments"]

    def _text(self, entries: tuple[Entry, ...], tools: str = "", generates: bool = True) -> str:
        text = self._applied(*self.entries(entries, tools), generates)
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

    def _applied(self, messages: list[dict[str, Any]], tools: list[Any] | None, generates: bool) -> str:
        """The template's text of messages as it gets them."""
        tools_given = self.no_tools if tools is None else tools
        given = self._arguments if tools_given is None else {**self._arguments, "tools": tools_given}
        try:
            with processor_limit(DEADLINE_S):
                return self._tokenizer.apply_chat_template(
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

    def _tried(self, *entries: Entry, tools: str = "", generates: bool = True) -> str:
        """The text of messages; "" when the template refuses them."""
        try:
            return self._text(entries, tools, generates)
        except RefusedByTemplate:
            return ""

    def _begin(self, mark: str, *entries: Entry) -> str:
        """What the template writes between the generation prompt and a mark in the message after it."""
        begin, (whole, _, _) = self._text(entries[:1]), self._text(entries, "", False).partition(mark)
        return whole.removeprefix(begin) if whole.startswith(begin) else ""

    def _find_separator(self) -> str:
        """What the template writes between two parts of a content; a line feed where it takes no parts."""
        parts = [{"type": "text", "text": text} for text in ("[[one]]", "[[two]]")]
        with suppress(RefusedByTemplate):
            text = self._applied([{"role": "user", "content": parts}], None, True)
            _, first, rest = text.partition("[[one]]")
            between, second, _ = rest.partition("[[two]]")
            # A template that takes texts alone may write the list as Python or JSON does.
            if first and second and not re.search(r"\btext\b", between):
                return between
        return "\n"

    def _find_tools(self, user: Entry) -> None:
        """Find the format of calls, and which of tools, calls and results the template writes."""
        tools = json.dumps([tool_record(PROBE_TOOL)])
        for self._json_arguments in (False, True):
            if self._find_by_call(user, tools):
                return
        self._json_arguments = False
        whole = self._tried(user, _called(PROBE), tools=tools, generates=False)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(whole, self._tried(user, tools=tools), strict=False))
        # From the mark in which they differ.
        written = whole[max(0, whole.rfind("<", 0, sum(1 for _ in same))) :]
        self.writes_calls = False
        family = Family(name="", call_format=self._given) if self._given else family_by_marks(self._template, written)
        self.takes_tools, self.takes_results = family is not None, False
        if family is None:
            self.found = "the chat template has no calls, or their format is unknown (policy.call_format sets it)"
            return
        self.format = (
            TextCalls(python=family.call_format) if isinstance(family.call_format, ToolCode) else family.call_format
        )
        self.found = "set by policy.call_format" if self._given else "its marks are in the chat template"
        for self.tools_in_message in (False, True):
            self.takes_tools = True
            self.takes_tools = "[[tool]]" in self._tried(user, tools=tools)
            if self.takes_tools:
                break
        said, result = Entry("assistant", "[[said]]"), Entry("tool", "[[result]]", call_id=PROBE.call_id)
        self.takes_results = True
        shown = self._tried(user, said, result, said, result, tools=tools)
        self.takes_results = shown.count("[[result]]") == 2
        before = self._tried(user, said, tools=tools, generates=False)
        if self.takes_results:
            whole = self._tried(user, said, result, tools=tools)
            self.around_result = _around("[[result]]", whole, before)

    def _find_by_call(self, user: Entry, tools: str) -> bool:
        """Whether the template writes tools, results, and calls in a format that is known."""
        self.takes_tools = self.writes_calls = self.takes_results = True
        called, result = _called(PROBE), Entry("tool", "[[result]]", call_id=PROBE.call_id)
        begin = self._tried(user, tools=tools)
        whole = self._tried(user, called, tools=tools, generates=False)
        shown = self._tried(user, called, result, tools=tools)
        call = _after_prompt(begin, whole)
        if not call or "[[tool]]" not in begin or "[[result]]" not in shown:
            return False
        two = self._tried(user, _called(PROBE, SECOND, content="[[said]]"), tools=tools, generates=False)
        texts = {without_empty_thinking(self._before_end(call)): Action(calls=(PROBE,))}
        both = without_empty_thinking(self._before_end(_after_prompt(begin, two)))
        texts.setdefault(both, Action(text="[[said]]", calls=(PROBE, SECOND)))
        given = [Family(name="", call_format=self._given)] if self._given else FAMILIES
        family = family_by_calls(texts, given)
        if family is None:
            return False
        self.format = family.call_format
        self.found = "the chat template writes it" + (", and policy.call_format sets it" if self._given else "")
        self.around_result = _around("[[result]]", shown, whole)
        named = _called(ToolCall(name="[[name]]", arguments={}, call_id=PROBE.call_id))
        bare = _after_prompt(begin, self._tried(user, named, tools=tools, generates=False))
        self.call_lead, _, tail = bare.partition("[[name]]")
        self.call_tail = tail[: len(tail) - len(call) + len(self._before_end(call))]
        for stop in self.format.stops:
            self.call_tail = self.call_tail.removesuffix(stop)
        return True

    def _before_end(self, said: str) -> str:
        """The text of a message without what ends it: the template's text after a message without calls."""
        whole = self._text((Entry("user", "a"), Entry("assistant", "[[said]]")), "", False)
        return said.removesuffix(whole.partition("[[said]]")[2])


def _called(*calls: ToolCall, content: str = "") -> Entry:
    return Entry("assistant", content, calls=json.dumps([call_record(call) for call in calls]))


def _after_prompt(begin: str, whole: str) -> str:
    """What a text has after a generation prompt; a text may lack the thinking at the prompt's end."""
    bare = before_prompt_thinking(begin)
    prompts = (begin, bare, bare.rstrip())
    return next((whole.removeprefix(each) for each in prompts if each and whole.startswith(each)), "")


def _around(mark: str, whole: str, before: str) -> tuple[str, str]:
    """What stands between a text and a mark after it, and what follows the mark."""
    start, _, after = whole.partition(mark)
    return start[len(before) :] if start.startswith(before) else "", after
