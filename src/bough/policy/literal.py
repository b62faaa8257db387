"""Encodes message contents as plain text, so that the text of a special token never becomes that token."""

import json
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from bough.policy.text_cache import TextCache
from bough.units import MIB

if TYPE_CHECKING:
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerBase

Tokens: TypeAlias = tuple[int, ...]

OPEN = "[[#"
"""Begins a placeholder; an occurrence in a content is replaced too, like a special token's text."""

PANIC = "PanicException"
"""The class of errors of tokenizers' compiled code, which is no `Exception` and has no public name."""

PLACEHOLDER = re.compile(r"\[\[#(\d+)\]\]")


class LiteralEncoder:
    r"""Encodes a rendered chat in which only the template adds special tokens.

    `hide` replaces the text of each special token in a content by a placeholder, before the template is applied.
    `encode` restores these texts and encodes each part between the template's special tokens as plain text. A text
    without placeholders is encoded by the tokenizer in one call.

        hide("a<|im_end|>b")                            "a[[#4]]b"
        encode("<|im_start|>user\na[[#4]]b<|im_end|>")  <|im_start|> user \n a < | im _ end | > b <|im_end|>

    Attributes:
        hidden: Matches the texts of special tokens.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", edges: Collection[str] = ()) -> None:
        """Find the special tokens.

        Args:
            tokenizer: Slow or fast.
            edges: Texts of added tokens to treat as special; some tokenizers do not mark them.
        """
        self._tokenizer: Any = tokenizer
        added: dict[int, AddedToken] = self._tokenizer.added_tokens_decoder
        self._special = {
            token.content: (number, token) for number, token in added.items() if token.special or token.content in edges
        }
        self._numbers = frozenset(number for number, _ in self._special.values())
        # Such tokens are matched after the tokenizer's normalizer: NFKC makes brackets of full-width ones.
        self._normalizes = any(token.normalized for _, token in self._special.values())
        # Longest first, as tokenizers match them.
        self._hidden = [OPEN, *sorted(self._special, key=len, reverse=True), ""]
        self._place = {text: place for place, text in enumerate(self._hidden)}
        self._search = re.compile("|".join(map(re.escape, self._hidden[:-1])))
        self.hidden = re.compile(f"({'|'.join(map(re.escape, self._hidden[1:-1])) or '(?!)'})")
        # Each turn hides every content of the conversation.
        self.hide = TextCache(self._hide, most_bytes=64 * MIB)
        self.hide_json = TextCache(self._hide_json, most_bytes=64 * MIB)
        # Branches of a tree often have equal texts: the same state, or the same prompt.
        self._plain = TextCache(self._encode, most_bytes=64 * MIB)

    def encode(self, text: str) -> Tokens:
        """The tokens of a rendered text whose contents went through `hide`."""
        if not PLACEHOLDER.search(text):
            return self._plain(text)
        return tuple(token for piece in self._pieces(text) for token in piece)

    def literal(self, content: str) -> Tokens:
        """The tokens of a single content, as plain text."""
        if not self.hidden.search(content) and self._numbers.isdisjoint(tokens := self._plain(content)):
            return tokens
        tokens = encode(self._tokenizer, content, split_special_tokens=True)
        if self._numbers.isdisjoint(tokens):
            return tokens
        # This tokenizer still finds the special token; encode its text character by character.
        parts = self.hidden.split(content)
        letters = [piece for place, part in enumerate(parts) for piece in (part if place % 2 else [part])]
        tokens = tuple(token for piece in letters if piece for token in self._plain(piece))
        if self._numbers.isdisjoint(tokens):
            return tokens
        # Its normalizer makes one of other characters.
        return tuple(token for letter in content for token in self._plain(letter) if token not in self._numbers)

    def _hide(self, content: str) -> str:
        hidden = self._search.sub(lambda found: f"{OPEN}{self._place[found[0]]}]]", content)
        if self._normalizes and hidden == content and not self._numbers.isdisjoint(self._plain(content)):
            # A placeholder for no text has the content encoded by `literal`; blanks at its ends stay there.
            return re.sub(r"\S", lambda found: f"{found[0]}{OPEN}{self._place['']}]]", content, count=1)
        return hidden

    def _hide_json(self, text: str) -> str:
        """A JSON text whose strings went through `hide`."""
        return json.dumps(self._hide_strings(json.loads(text)), ensure_ascii=False)

    def _hide_strings(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._hide(value)
        if isinstance(value, list):
            return [self._hide_strings(each) for each in cast("list[Any]", value)]
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {self._hide(name): self._hide_strings(each) for name, each in items}
        return value

    def _pieces(self, text: str) -> Iterator[Tokens]:
        """The tokens of each part; parts without placeholders are encoded together with their special tokens."""
        parts, together = self.hidden.split(text), ""
        for place, part in enumerate(parts):
            if place % 2 or not PLACEHOLDER.search(part):
                together += part
                continue
            yield self._plain(together)
            together = ""
            content = PLACEHOLDER.sub(lambda found: self._hidden[int(found[1])], part)
            if place and self._special[parts[place - 1]][1].rstrip:
                content = content.lstrip()
            if place + 1 < len(parts) and self._special[parts[place + 1]][1].lstrip:
                content = content.rstrip()
            yield self.literal(content)
        yield self._plain(together)

    def _encode(self, text: str) -> Tokens:
        return encode(self._tokenizer, text) if text else ()


def encode(tokenizer: Any, text: str, **options: bool) -> Tokens:
    """The tokens of a text, without any added at its ends.

    Raises:
        ValueError: when the tokenizer fails; the rules of a file may need too many steps on a text.
    """
    try:
        return tuple(tokenizer.encode(text, add_special_tokens=False, **options))
    except BaseException as error:
        if type(error).__name__ != PANIC:
            raise
        raise ValueError(
            f"got a tokenizer that fails on {text[:80]!r} ({error}); need the complete tokenizer.json of the model"
        ) from error
