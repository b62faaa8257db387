"""Renders conversations in a chat template and keeps the sampled tokens as they are."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bough.grammar import Grammar
from bough.policy.calls import FAMILIES, CallFormat, RestrictedFormat, action_grammar, family_name
from bough.policy.calls.lost import EXAMPLE, call_tags, with_lost_call
from bough.policy.literal import LiteralEncoder, Tokens
from bough.policy.marks import THINKING, plain_marks, used_marks
from bough.policy.template import ChatTemplate, Entry
from bough.policy.template_trial import RefusedByTemplate
from bough.policy.text_cache import TextCache
from bough.policy.tool_text import TextCalls
from bough.tree import (
    Action,
    AgentAction,
    BadCall,
    Message,
    Tool,
    action_text,
    call_record,
    tool_record,
)
from bough.tree.thinking import THINK_END, ThinkingState, without_empty_thinking
from bough.units import MIB

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class ChatRenderer:
    """Renders the messages of a conversation in the model's chat template.

    Sampled tokens are never tokenised again: only the template's text around them is tokenised, and the sampled tokens
    are spliced in. The one exception is a template that rewrites earlier assistant messages (Qwen3's drops the
    thinking). Such a conversation can't be extended, only rendered again, and the rewritten messages are tokenised from
    the template's text. Blanks that a template adds or removes do not count as rewriting.

    `ChatTemplate` writes what a template lacks: a system role, tools, calls.

    Only the template adds special tokens, and added tokens that are marks (`used_marks`): their texts in a system
    prompt, a tool or an observation are encoded as plain text (`LiteralEncoder`). So are those in an action, except for
    marks of thinking.

    Attributes:
        template: The chat template.
        call_tags: Matches what only calls have, in the format of the template: their marks, and the tags within them.
        stop_tokens: Tokens that end an action: first the template's end of an assistant message, then the other end
            tokens of the tokenizer and the model.
        plain_marks: Marks of messages that are plain text, because the tokenizer has no tokens for them: texts of
            others can imitate these.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        *,
        template: Mapping[str, object],
        end_tokens: Sequence[int] = (),
        date: datetime | None = None,
        context_tokens: int | None = None,
        call_format: CallFormat | None = None,
    ) -> None:
        """Derive the stop tokens and the special tokens from the template.

        Args:
            tokenizer: With a chat template.
            template: Arguments of the template besides the messages, such as {"enable_thinking": False}.
            end_tokens: End tokens that the model's own configuration names.
            date: The date that the template writes, if it writes one; None for the present one.
            context_tokens: The model's context. Of a text that exceeds it by far, `render` and `extend` encode a part
                that exceeds it too; None for whole texts.
            call_format: The format of calls; None for the one that is found from the template.

        Raises:
            ValueError: when there is no template, it fails, or it omits the assistant's messages or the special token
                after them.
        """
        self._tokenizer: Any = tokenizer
        if not self._tokenizer.chat_template:
            raise ValueError(
                "got a tokenizer without a chat template; need one: put chat_template.jinja next to tokenizer.json"
            )
        self.template = ChatTemplate(tokenizer, template, date, call_format)
        self.call_tags = call_tags(self.template.format)
        self._spoken = TextCache(self._decode, most_bytes=64 * MIB)
        self._readable = TextCache(self._without_marks, most_bytes=64 * MIB)
        self._context_tokens = context_tokens
        # Normalisation composes at most 4 characters to one.
        longest = 0 if context_tokens is None else max(map(len, self._tokenizer.get_vocab()))
        self._most_characters = 4 * longest * ((context_tokens or 0) + 1)
        between = self._between()
        self._ending, self.stop_tokens = self._ends(between, end_tokens)
        edges, marks = self._edges(between), used_marks(tokenizer)
        self._encoder = LiteralEncoder(tokenizer, edges={*marks, *edges})
        special = {each.content for each in self._tokenizer.added_tokens_decoder.values() if each.special}
        self._marks = [(mark, self._encoder.hide(mark)) for mark in sorted(marks - edges - special)]
        around = (*between.split("[[user]]"), *self.template.around_result)
        self.plain_marks = plain_marks(around, around[1], self._encoder.hidden)

    @property
    def vocab_tokens(self) -> int:
        """Number of tokens of the tokenizer; a model may have more rows."""
        return len(self._tokenizer)

    @property
    def prompt_thinking(self) -> ThinkingState | None:
        """See `Renderer`."""
        known = self.template.prompt_thinking is ThinkingState.OPEN or THINK_END in str(self._tokenizer.chat_template)
        return self.template.prompt_thinking if known else None

    @property
    def part_separator(self) -> str:
        """See `Renderer`: what the template writes between parts; a line feed where it takes none."""
        return self.template.part_separator

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Tokens:
        """Render a whole context, up to the generation prompt."""
        return self._shortened(self._render, messages, tools) or self._render(messages, tools)

    def extend(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Tokens | None:
        """The tokens from the last assistant's message to the generation prompt, with the messages in between.

        Adds a stop token to a message without one. None when the template rewrites earlier messages.
        """
        return self._shortened(self._extend, messages, tools) or self._extend(messages, tools)

    def _shortened(
        self,
        render: Callable[[Sequence[Message], Sequence[Tool]], Tokens | None],
        messages: Sequence[Message],
        tools: Sequence[Tool],
    ) -> Tokens | None:
        """The tokens with the longest contents cut, if they exceed the context all the same."""
        most = self._most_characters
        if self._context_tokens is None or all(len(each.content) <= most for each in messages):
            return None
        found = render([replace(each, content=each.content[:most]) for each in messages], tools)
        return found if found and len(found) > self._context_tokens else None

    def _render(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens:
        entries, shown = self._hidden(messages), self._tools(tools)
        if not any(entry.sampled for entry in entries):
            return self._encoder.encode(self.template.text(entries, shown))
        sampled = [(entry.content, each.tokens) for entry, each in zip(entries, messages, strict=True) if entry.sampled]
        frame, texts = self.template.frame(entries, shown), self._texts(shown, entries)
        if texts is None and frame is not None:
            return self._spliced([tokens for _, tokens in sampled], frame)
        text = texts[0] if texts else self.template.text(entries, shown)
        if frame is None or not text.startswith(frame[0]):
            return self._encoder.encode(text)
        read: list[int] = []
        last: Tokens = ()
        pending, rest = frame[0], text[len(frame[0]) :]
        for (words, tokens), after in zip(sampled, frame[1:], strict=True):
            written, found, rest = rest.partition(after)
            if not found:
                return self._encoder.encode(text)
            if _same(written, words):
                read += (*self._follow(last, pending), *tokens)
                last, pending = tokens, after
            else:
                pending += written + after
        return (*read, *self._follow(last, pending)) if not rest else self._encoder.encode(text)

    def _extend(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens | None:
        entries, shown = self._hidden(messages), self._tools(tools)
        last = max(place for place, entry in enumerate(entries) if entry.role == "assistant")
        tokens = messages[last].tokens
        texts = self._texts(shown, entries[:last], entries)
        if texts is None:
            before, after = (self.template.frame(part, shown) for part in (entries[:last], entries))
            appends = entries[last].sampled and before and after and after[: len(before)] == before
            return self._follow(tokens, after[-1]) if appends and after else None
        read, text = texts
        if not text.startswith(read):
            return None
        added, words = text[len(read) :], entries[last].content
        for begun in (added.removeprefix(self.template.lead), added):
            if begun.startswith(words):
                return self._follow(tokens, begun[len(words) :])
        after = (self.template.frame(entries, shown) or [text])[-1]
        return self._follow(tokens, after) if _same(added.removesuffix(after), words) else None

    def write(self, action: AgentAction) -> Tokens:
        """The tokens of an action that the policy did not sample (a teacher's), with a stop token.

        The marks of thinking and of the family's calls become tokens where the tokenizer has them; nothing else does.
        """
        if isinstance(action, str):
            written = self._with_marks(self._encoder.hide(action_text(action)), THINKING)
        else:
            text = self._with_marks(self._encoder.hide(action.text), THINKING)
            bad = {
                call: replace(call, text=self._encoder.hide(call.text))
                for call in action.calls
                if isinstance(call, BadCall)
            }
            calls = tuple(bad[call] if isinstance(call, BadCall) else call for call in action.calls)
            hidden = Action(text=text, calls=calls)
            written = self.template.after_prompt(self.template.format.write(hidden, self._encoder.hide))
        tokens = self._encoder.encode(written)
        return tokens if tokens and tokens[-1] in self.stop_tokens else (*tokens, self.stop_tokens[0])

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        """The text and the calls of an action, in the format that the template writes; see `CallFormat`.

        Thinking that the generation prompt opens has its `<think>` in the text. A call in thinking that does not end is
        bad, and so is one in the format of another family, where the action has no call of its own.
        """
        return self.parse_text(self.verbatim([token for token in tokens if token not in self.stop_tokens]), tools)

    def parse_text(self, text: str, tools: Sequence[Tool] = ()) -> Action:
        """The text and the calls of an action, from its text with special tokens and without a stop token."""
        action = self.template.parse(text, tools)
        return action if action.calls else with_lost_call(action, self.template.format, self.call_tags, tools)

    @property
    def call_format(self) -> str:
        """The format of calls, an example and where it was found, for people."""
        own = self.template.format
        example = own.write(EXAMPLE)
        name = "text" if isinstance(own, TextCalls) else f"the format of {family_name(own)}"
        return f"{name}: {self.template.found}; a call is {example!r}"

    def call_grammar(
        self,
        tools: Sequence[Tool],
        *,
        required: bool = False,
        most_calls: int | None = None,
        answer: Mapping[str, object] | None = None,
    ) -> Grammar:
        """See `Renderer`."""
        own = self.template.format
        if not isinstance(own, RestrictedFormat):
            raise ValueError(
                f"got calls in the format of {family_name(own)}, which no grammar enforces; need text, or that of Qwen3"
            )
        marks = sorted({mark for family in FAMILIES for mark in family.call_format.marks})
        return action_grammar(
            own,
            tools,
            marks,
            required=required,
            most_calls=most_calls,
            opens_thinking=self.prompt_thinking is ThinkingState.OPEN,
            answer=answer,
        )

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without stop tokens and special tokens."""
        return self._readable(tuple(tokens))

    def verbatim(self, tokens: Sequence[int]) -> str:
        """The text of tokens, with stop tokens and special tokens."""
        return self._tokenizer.decode([*tokens], skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def piece(self, token: int) -> str:
        """The text of a token in the vocabulary, in which bytes may be written as letters."""
        return self._tokenizer.convert_ids_to_tokens(token)

    def messages(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The messages as the template gets them, sampled ones as text."""
        return self.template.entries([self._entry(message) for message in messages], "")[0]

    def _entry(self, message: Message) -> Entry:
        empty = message.role == "assistant" and not message.content and not message.tool_calls
        if message.tokens or empty:
            return Entry(message.role, self._spoken(message.tokens), sampled=True)
        rows = [call_record(call) for call in message.tool_calls]
        calls = json.dumps(rows, ensure_ascii=False) if rows else ""
        return Entry(message.role, message.content, calls, message.call_id)

    def _hidden(self, messages: Sequence[Message]) -> tuple[Entry, ...]:
        """The messages, with the texts of special tokens replaced by placeholders."""
        return tuple(map(self._hide, map(self._entry, messages)))

    def _hide(self, entry: Entry) -> Entry:
        hide, content = self._encoder.hide, self._encoder.hide(entry.content)
        if entry.role == "assistant":
            # A model's own calls keep their marks where its message is rewritten.
            content = self._with_marks(content, () if entry.sampled else THINKING)
        calls = entry.calls and self._encoder.hide_json(entry.calls)
        return Entry(entry.role, content, calls, entry.call_id and hide(entry.call_id), entry.sampled)

    def _with_marks(self, text: str, kept: Sequence[str] = ()) -> str:
        """A hidden text with its marks, or with those of `kept` only."""
        for mark, placeholder in self._marks:
            text = text.replace(placeholder, mark) if not kept or mark in kept else text
        return text

    def _texts(self, tools: str, *conversations: tuple[Entry, ...]) -> list[str] | None:
        """The template's texts of conversations; None where it refuses calls as text, or empty messages."""
        if not self.template.takes_raw_calls:
            return None
        try:
            return [self.template.text(entries, tools) for entries in conversations]
        except RefusedByTemplate:
            return None

    def _tools(self, tools: Sequence[Tool]) -> str:
        """The tools as JSON, with placeholders; "" without any."""
        rows = [tool_record(tool) for tool in tools]
        return self._encoder.hide_json(json.dumps(rows, ensure_ascii=False)) if rows else ""

    def _spliced(self, sampled: Sequence[Tokens], frame: Sequence[str]) -> Tokens:
        """The sampled tokens within the template's text."""
        read = list(self._encoder.encode(frame[0]))
        for tokens, after in zip(sampled, frame[1:], strict=True):
            read += (*tokens, *self._follow(tokens, after))
        return tuple(read)

    def _without_marks(self, tokens: Tokens) -> str:
        kept = [token for token in tokens if token not in self.stop_tokens]
        return self._tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _decode(self, tokens: Tokens) -> str:
        kept = tokens[:-1] if tokens and tokens[-1] in self.stop_tokens else tokens
        return self._tokenizer.decode(kept, clean_up_tokenization_spaces=False).strip()

    def _follow(self, tokens: Tokens, text: str) -> Tokens:
        """The tokens of `text` after `tokens`, without its leading end of message where `tokens` have one."""
        following = self._encoder.encode(text)
        ends = [i for i, token in enumerate(following) if token in self._ending]
        closed = tokens and tokens[-1] in self.stop_tokens
        return following[ends[0] + 1 :] if closed and ends else following

    def _between(self) -> str:
        """The template's text between two assistant messages, with "[[user]]" for the user's message."""
        first, last = (f"[[{name}]]{' a b' * 512}" for name in ("first", "user"))
        entries = Entry("user", first), Entry("assistant", "b", sampled=True), Entry("user", last)
        frame = self.template.frame(entries, "")
        if frame is None:
            raise ValueError(
                "got a chat template that leaves out the assistant's messages; need one that contains them"
            )
        # A template may leave out earlier messages.
        if last not in frame[1] or first not in self.template.text(entries[:1], ""):
            raise ValueError(
                "got a chat template that leaves out, changes or moves the user's messages; need one that contains them"
            )
        return frame[1].replace(last, "[[user]]")

    def _ends(self, between: str, end_tokens: Sequence[int]) -> tuple[frozenset[int], Tokens]:
        """The tokens that end a message in the template's text, and the tokens that end an action."""
        special = {
            token: added.content for token, added in self._tokenizer.added_tokens_decoder.items() if added.special
        }
        following: list[int] = self._tokenizer.encode(between, add_special_tokens=False)
        ends = [token for token in following if token in special][:1]
        if not ends:
            raise ValueError(
                f"got a chat template that ends an assistant's message with {between!r}, where the tokenizer finds no "
                "special token; need one that ends the turn, such as <|im_end|>, among the tokenizer's special tokens"
            )
        eos: int | None = self._tokenizer.eos_token_id
        own = [token for stop in self.template.format.stops for token in special if special[token] == stop]
        found: list[int] = [*(own or ends), *([] if eos is None else [eos]), *end_tokens]
        return frozenset((*ends, *found)), tuple(dict.fromkeys(found))

    def _edges(self, between: str) -> set[str]:
        """Added tokens that end an action or a message, or begin a user message; some may not be marked as special."""
        added = {token: each.content for token, each in self._tokenizer.added_tokens_decoder.items()}
        before, _, after = between.partition("[[user]]")
        found: list[list[int]] = [self._tokenizer.encode(text, add_special_tokens=False) for text in (before, after)]
        edges = [*found[0], *[token for token in found[1] if token in added][:1], *self.stop_tokens]
        # Blanks and words may be added tokens, too.
        return {text for token in edges if (text := added.get(token, "")).strip() and not text.strip().isalnum()}


def _same(one: str, other: str) -> bool:
    """Whether two texts are equal but for blanks and empty thinking."""
    return one == other or _visible(one) == _visible(other)


def _visible(text: str) -> str:
    return "".join(without_empty_thinking(text).split())
