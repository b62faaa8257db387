"""The texts of single tokens."""

from collections.abc import Callable, Sequence

BROKEN = "\N{REPLACEMENT CHARACTER}"
"""What a decoder writes for bytes that are no whole letter."""

LONGEST = 8
"""Most tokens of one letter."""


def token_texts(tokens: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[str]:
    """The text of each of some tokens in a row; of the tokens of one letter the last one has it, the others have "".

    Args:
        tokens: The tokens.
        decode: Their text, special tokens included.
    """
    texts: list[str] = []
    begin = 0
    for at in range(len(tokens)):
        # Some tokenizers write a blank before a token only after another one.
        before = [tokens[begin - 1]] if begin else []
        text = decode([*before, *tokens[begin : at + 1]])[len(decode(before)) if before else 0 :]
        if text.endswith(BROKEN) and at + 1 < len(tokens) and at + 1 - begin < LONGEST:
            texts.append("")
            continue
        texts.append(text)
        begin = at + 1
    return texts
