"""Renders conversations in a chat template and keeps the sampled tokens as they are."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from jinja2 import TemplateError

from bough.policy.literal import LiteralEncoder, Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

ROLES = ("user", "assistant")


@runtime_checkable
class PastTurn(Protocol):
    """One past turn: the observation and the action's tokens as sampled, with the stop token if one was sampled."""

    @property
    def observation(self) -> str:
        """The observation."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The action's tokens."""
        ...


class ChatRenderer:
    """Renders a system prompt, past turns and an observation as a chat: system, user, assistant, user, ...

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

    def render(self, system: str, past: Sequence[PastTurn], observation: str) -> Tokens:
        """Render a whole context, up to the generation prompt."""
        system, contents = self._hidden(system, past, observation)
        text = self._chat(system, contents)
        frame = self._frame(system, contents)
        if frame is None or not text.startswith(frame[0]):
            return self._encoder.encode(text)
        read: list[int] = []
        last: Tokens = ()
        pending, rest = frame[0], text[len(frame[0]) :]
        for turn, words, after in zip(past, contents[1::2], frame[1:], strict=True):
            if rest.startswith(words + after):
                read += (*self._follow(last, pending), *turn.tokens)
                last, pending, rest = turn.tokens, after, rest[len(words + after) :]
                continue
            rewritten, found, rest = rest.partition(after)
            if not found:
                return self._encoder.encode(text)
            pending += rewritten + after
        return (*read, *self._follow(last, pending)) if not rest else self._encoder.encode(text)

    def extend(self, system: str, past: Sequence[PastTurn], observation: str) -> Tokens | None:
        """The tokens from the last action of `past` to the generation prompt, with `observation` in between.

        Adds a stop token to an action without one. None when the template rewrites earlier messages.
        """
        system, contents = self._hidden(system, past, observation)
        read = self._chat(system, contents[:-2]) + contents[-2]
        text = self._chat(system, contents)
        return self._follow(past[-1].tokens, text[len(read) :]) if text.startswith(read) else None

    def write(self, action: str) -> Tokens:
        """The tokens of an action that the policy did not sample (a teacher's), with a stop token."""
        return (*self._encoder.literal(action), self.stop_tokens[0])

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without stop tokens and special tokens."""
        kept = [token for token in tokens if token not in self.stop_tokens]
        return self._tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def verbatim(self, tokens: Sequence[int]) -> str:
        """The text of tokens, with stop tokens and special tokens."""
        return self._tokenizer.decode([*tokens], skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def messages(self, system: str, past: Sequence[PastTurn], observation: str) -> list[dict[str, str]]:
        """The messages that `render` turns into a context, each with a role and a content."""
        return self._messages(system, self._contents(past, observation))

    def _contents(self, past: Sequence[PastTurn], observation: str) -> tuple[str, ...]:
        """The contents of user and assistant in turn, the user's first and last."""
        said = [text for turn in past for text in (turn.observation, self._spoken(turn.tokens))]
        return (*said, observation)

    def _hidden(self, system: str, past: Sequence[PastTurn], observation: str) -> tuple[str, tuple[str, ...]]:
        """System prompt and contents, with the texts of special tokens replaced by placeholders."""
        hide = self._encoder.hide
        return hide(system), tuple(map(hide, self._contents(past, observation)))

    def _decode(self, tokens: Tokens) -> str:
        kept = tokens[:-1] if tokens and tokens[-1] in self.stop_tokens else tokens
        return self._tokenizer.decode(kept, clean_up_tokenization_spaces=False).strip()

    def _messages(self, system: str, contents: tuple[str, ...]) -> list[dict[str, str]]:
        if system and not self._system_role:
            system, contents = "", (f"{system}\n\n{contents[0]}", *contents[1:])
        messages = [{"role": "system", "content": system}] if system else []
        return messages + [{"role": ROLES[i % 2], "content": text} for i, text in enumerate(contents)]

    def _write_chat(self, system: str, contents: tuple[str, ...]) -> str:
        messages = self._messages(system, contents)
        try:
            return self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._template
            )
        except TemplateError as error:
            raise ValueError(f"got a chat template that fails: {error}; need one for user and assistant") from error

    def _frame(self, system: str, contents: tuple[str, ...]) -> list[str] | None:
        """The template's text before, between and after the assistant's contents; None when it drops one."""
        salt = next(salt for salt in count() if not any(f"[[{salt}." in text for text in (system, *contents)))
        marked = tuple(f"[[{salt}.{i}]]" if i % 2 else text for i, text in enumerate(contents))
        rest = self._write_chat(system, marked)
        frame: list[str] = []
        for mark in marked[1::2]:
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
        self._write_chat("", ("a",))
        try:
            return "[[system]]" in self._write_chat("[[system]]", ("a",))
        except ValueError:
            return False

    def _between(self) -> str:
        """The template's text between two assistant messages, with "[[user]]" for the user's message."""
        frame = self._frame("", ("a", "b", "[[user]]"))
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
        """Added tokens that end an action or a message, or begin a user message; some are not marked as special."""
        added = {token: each.content for token, each in self._tokenizer.added_tokens_decoder.items()}
        before, _, after = between.partition("[[user]]")
        found: list[list[int]] = [self._tokenizer.encode(text, add_special_tokens=False) for text in (before, after)]
        edges = [*found[0], *[token for token in found[1] if token in added][:1], *self.stop_tokens]
        # Blanks and words may be added tokens, too.
        return {text for token in edges if (text := added.get(token, "")).strip() and not text.strip().isalnum()}
