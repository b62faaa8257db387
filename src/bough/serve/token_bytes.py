"""The UTF-8 bytes of each token of a completion."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from bough.context import Renderer

CUT = "\ufffd"
"""What decoders write for a part of a character."""

WINDOW = 16
"""Tokens before a token that are decoded with it: the blanks of some tokenizers depend on them."""

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
"""A token of one byte, as SentencePiece writes it."""


@runtime_checkable
class HasPieces(Protocol):
    """A renderer whose tokenizer has a vocabulary of texts."""

    def piece(self, token: int) -> str:
        """The text of a token in the vocabulary."""
        ...


def token_bytes(renderer: Renderer, tokens: Sequence[int]) -> list[bytes]:
    """The bytes of each token: joined, those of the text. Tokens may hold parts of a character."""
    found: list[bytes] = []
    for begin, end in _groups(renderer, tokens):
        start = max(0, begin - WINDOW)
        before, after = renderer.text(tokens[start:begin]), renderer.text(tokens[start:end])
        pieces = [piece_bytes(renderer, token) for token in tokens[begin:end]]
        text = after.removeprefix(before).encode("utf-8", "replace")
        whole = len(pieces) > 1 or CUT in after.removeprefix(before)
        if whole and (b"".join(pieces) == text or after.endswith(CUT)):
            found += pieces
        else:
            found += [*[b""] * (end - begin - 1), text]
    return found


def piece_bytes(renderer: Renderer, token: int) -> bytes:
    """The bytes of a token by itself; none for a part of a character without a known spelling."""
    text = renderer.text([token])
    if CUT not in text:
        return text.encode("utf-8", "replace")
    piece = renderer.piece(token) if isinstance(renderer, HasPieces) else ""
    if match := BYTE.fullmatch(piece):
        return bytes([int(match[1], 16)])
    return bytes(map(BYTES.__getitem__, piece)) if BYTES.keys() >= {*piece} else b""


def _groups(renderer: Renderer, tokens: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Begin and end of the shortest runs of tokens that hold whole characters."""
    begin = 0
    for end in range(1, len(tokens) + 1):
        if end == len(tokens) or not renderer.text(tokens[max(0, begin - WINDOW) : end]).endswith(CUT):
            yield begin, end
            begin = end


def _byte_letters() -> dict[str, int]:
    """The byte of each letter of a byte-level vocabulary, which has blanks and controls as letters from U+0100 on."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(0x100 + place): byte for place, byte in enumerate(hidden)}


BYTES = _byte_letters()
