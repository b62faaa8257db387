"""Renders conversations in a chat template and keeps the sampled tokens as they are."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import TemplateError

from bough.policy.literal import LiteralEncoder, Tokens
from bough.tree import Action, AgentAction, Message, Tool, action_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class _Entry(NamedTuple):
    """A message as the template gets it, hashable.

    Attributes:
        role: The role.
        content: The text, for a sampled message decoded from its tokens.
        tokens: As sampled; () for a message that was not.
    """

    role: str
    content: str
    tokens: Tokens = ()


class ChatRenderer:
    """Renders the messages of a conversation in the model's chat template.

    Sampled tokens are never tokenised again: only the template's text around them is tokenised, and the sampled tokens
    are spliced in. The one exception is a template that rewrites earlier assistant messages (Qwen3's drops the
    thinking). Such a conversation can't be extended, only rendered again, and the rewritten messages are tokenised from
    the template's text. Blanks that a template trims around a message do not count as rewriting.

    A template without a system role gets the system prompt at the beginning of the first user message.

    Only the template adds special tokens: their texts in a system prompt, an observation or an action are encoded as
    plain text (`LiteralEncoder`).

    Attributes:
        stop_tokens: Tokens that end an action: first the template's end of an assistant message, then the other end
            tokens of the tokenizer and the model.
    """

    def __init__(
        self, tokenizer: "PreTrainedTokenizerBase", *, template: Mapping[str, object], end_tokens: Sequence[int] = ()
    ) -> None:
        """Derive the stop tokens and the special tokens from the template.

        Args:
            tokenizer: With a chat template.
            template: Arguments of the template besides the messages, such as {"enable_thinking": False}.
            end_tokens: End tokens that the model's own configuration names.

        Raises:
            ValueError: when there is no template, it fails, or it omits the assistant's messages or the special token
                after them.
        """
        self._tokenizer: Any = tokenizer
        if not self._tokenizer.chat_template:
            raise ValueError(
                "got a tokenizer without a chat template; need one: put chat_template.jinja next to tokenizer.json"
            )
        self._template = dict(template)
        # `extend` also renders the chat of the turn before, which is cached.
        self._chat = lru_cache(maxsize=1024)(self._write_chat)
        self._spoken = lru_cache(maxsize=65536)(self._decode)
        self._system_role = True
        self._system_role = self._takes_system()
        between = self._between()
        self.stop_tokens: Tokens = self._ends(between, end_tokens)
        self._encoder = LiteralEncoder(tokenizer, edges=self._edges(between))

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Tokens:
        """Render a whole context, up to the generation prompt."""
        entries = self._hidden(messages)
        text = self._chat(entries)
        frame = self._frame(entries)
        if frame is None or not text.startswith(frame[0]):
            return self._encoder.encode(text)
        read: list[int] = []
        last: Tokens = ()
        pending, rest = frame[0], text[len(frame[0]) :]
        for (_, words, tokens), after in zip(filter(_sampled, entries), frame[1:], strict=True):
            if rest.startswith(words + after):
                read += (*self._follow(last, pending), *tokens)
                last, pending, rest = tokens, after, rest[len(words + after) :]
                continue
            rewritten, found, rest = rest.partition(after)
            if not found:
                return self._encoder.encode(text)
            pending += rewritten + after
        return (*read, *self._follow(last, pending)) if not rest else self._encoder.encode(text)

    def extend(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Tokens | None:
        """The tokens from the last assistant's message to the generation prompt, with the messages in between.

        Adds a stop token to a message without one. None when the template rewrites earlier messages.
        """
        entries = self._hidden(messages)
        last = max(place for place, entry in enumerate(entries) if entry.role == "assistant")
        read = self._chat(entries[:last]) + entries[last].content
        text = self._chat(entries)
        return self._follow(entries[last].tokens, text[len(read) :]) if text.startswith(read) else None

    def write(self, action: AgentAction) -> Tokens:
        """The tokens of an action that the policy did not sample (a teacher's), with a stop token."""
        return (*self._encoder.literal(action_text(action)), self.stop_tokens[0])

    def parse(self, tokens: Sequence[int]) -> Action:
        """The calls in the tokens of an action."""
        return Action(text=self.text(tokens))

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without stop tokens and special tokens."""
        kept = [token for token in tokens if token not in self.stop_tokens]
        return self._tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def verbatim(self, tokens: Sequence[int]) -> str:
        """The text of tokens, with stop tokens and special tokens."""
        return self._tokenizer.decode([*tokens], skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def messages(self, messages: Sequence[Message]) -> list[dict[str, str]]:
        """The messages as the template gets them, each with a role and a content."""
        return self._messages(tuple(map(self._entry, messages)))

    def _entry(self, message: Message) -> _Entry:
        content = self._spoken(message.tokens) if message.tokens else message.content
        return _Entry(message.role, content, message.tokens)

    def _hidden(self, messages: Sequence[Message]) -> tuple[_Entry, ...]:
        """The messages, with the texts of special tokens replaced by placeholders."""
        entries = map(self._entry, messages)
        return tuple(entry._replace(content=self._encoder.hide(entry.content)) for entry in entries)

    def _decode(self, tokens: Tokens) -> str:
        kept = tokens[:-1] if tokens and tokens[-1] in self.stop_tokens else tokens
        return self._tokenizer.decode(kept, clean_up_tokenization_spaces=False).strip()

    def _messages(self, entries: Sequence[_Entry]) -> list[dict[str, str]]:
        if entries and entries[0].role == "system" and not self._system_role:
            system, first, *rest = entries
            entries = (first._replace(content=f"{system.content}\n\n{first.content}"), *rest)
        return [{"role": entry.role, "content": entry.content} for entry in entries]

    def _write_chat(self, entries: tuple[_Entry, ...]) -> str:
        messages = self._messages(entries)
        try:
            return self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._template
            )
        except TemplateError as error:
            raise ValueError(f"got a chat template that fails: {error}; need one for user and assistant") from error

    def _frame(self, entries: tuple[_Entry, ...]) -> list[str] | None:
        """The template's text before, between and after the sampled contents; None when it drops one."""
        salt = next(salt for salt in count() if not any(f"[[{salt}." in entry.content for entry in entries))
        marks = [f"[[{salt}.{place}]]" if entry.tokens else "" for place, entry in enumerate(entries)]
        pairs = zip(marks, entries, strict=True)
        rest = self._write_chat(tuple(_Entry(entry.role, mark) if mark else entry for mark, entry in pairs))
        frame: list[str] = []
        for mark in filter(None, marks):
            before, found, rest = rest.partition(mark)
            if not found:
                return None
            frame.append(before)
        return [*frame, rest]

    def _follow(self, tokens: Tokens, text: str) -> Tokens:
        """The tokens of `text` after `tokens`, without its leading end of message where `tokens` have one."""
        following = self._encoder.encode(text)
        ends = [i for i, token in enumerate(following) if token in self.stop_tokens]
        closed = tokens and tokens[-1] in self.stop_tokens
        return following[ends[0] + 1 :] if closed and ends else following

    def _takes_system(self) -> bool:
        user = _Entry("user", "a")
        self._write_chat((user,))
        try:
            return "[[system]]" in self._write_chat((_Entry("system", "[[system]]"), user))
        except ValueError:
            return False

    def _between(self) -> str:
        """The template's text between two assistant messages, with "[[user]]" for the user's message."""
        sampled = _Entry("assistant", "b", tokens=(0,))
        frame = self._frame((_Entry("user", "a"), sampled, _Entry("user", "[[user]]")))
        if frame is None:
            raise ValueError("got a chat template that leaves out what the assistant said; need one that writes it")
        return frame[1]

    def _ends(self, between: str, end_tokens: Sequence[int]) -> Tokens:
        special = {token for token, added in self._tokenizer.added_tokens_decoder.items() if added.special}
        following: list[int] = self._tokenizer.encode(between, add_special_tokens=False)
        ends = [token for token in following if token in special][:1]
        if not ends:
            raise ValueError(
                f"got a chat template that ends an assistant's message with {between!r}, where the tokenizer finds no "
                "special token; need one that ends the turn, such as <|im_end|>, among the tokenizer's special tokens"
            )
        eos: int | None = self._tokenizer.eos_token_id
        return tuple(dict.fromkeys([*ends, *([] if eos is None else [eos]), *end_tokens]))

    def _edges(self, between: str) -> set[str]:
        """Added tokens that end an action or a message, or begin a user message; some may not be marked as special."""
        added = {token: each.content for token, each in self._tokenizer.added_tokens_decoder.items()}
        before, _, after = between.partition("[[user]]")
        found: list[list[int]] = [self._tokenizer.encode(text, add_special_tokens=False) for text in (before, after)]
        edges = [*found[0], *[token for token in found[1] if token in added][:1], *self.stop_tokens]
        # Blanks and words may be added tokens, too.
        return {text for token in edges if (text := added.get(token, "")).strip() and not text.strip().isalnum()}


def _sampled(entry: _Entry) -> bool:
    return bool(entry.tokens)
