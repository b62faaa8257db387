"""A grammar: the texts that a completion may be."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

SEPARATORS = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""Settings of llguidance: one form of blanks. With any blanks, a model may write them without end."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The texts that a completion may be; tokens that leave them are never sampled.

    A log-probability under a grammar is that of the distribution over the allowed tokens. A token that is the only
    allowed one has log-probability 0 and no gradient.

    Attributes:
        lark: Rules from `start` on, in the variant of Lark's syntax that llguidance reads; `%json {...}` stands for the
            texts of a JSON schema.
    """

    lark: str

    @staticmethod
    def of_schema(schema: Mapping[str, object]) -> "Grammar":
        """The JSON texts of a schema, in the form of Python's `json.dumps`.

        Raises:
            ValueError: when it is no mapping that JSON can write.
        """
        return Grammar(f'start: " "? value\nvalue: {json_rule(schema)}\n')

    @staticmethod
    def of_texts(texts: Sequence[str]) -> "Grammar":
        """One of some texts.

        Raises:
            ValueError: when there is none, one is no text, or they are a single text.
        """
        given = cast("object", texts)
        if isinstance(given, str) or not isinstance(given, Sequence) or not texts:
            raise ValueError(f"Grammar.of_texts: got {given!r:.80}; need a list of at least one text")
        if wrong := [each for each in cast("Sequence[object]", texts) if not isinstance(each, str)]:
            raise ValueError(f"Grammar.of_texts: got {wrong[0]!r:.80} among the texts; need texts alone")
        # A tokenizer may begin a text, and a line, with a blank of its own.
        each = " | ".join(' "\\n" " "? '.join(json.dumps(line) for line in text.split("\n")) for text in texts)
        # A terminal, because llguidance follows at most 2,000 alternatives of a rule.
        return Grammar(f'start: TEXT\nTEXT: " "? ({each})\n')


def json_rule(schema: Mapping[str, object]) -> str:
    """The texts of a JSON schema as the right side of a rule of Lark, in the form of Python's `json.dumps`.

    Raises:
        ValueError: when it is no mapping that JSON can write.
    """
    if not isinstance(cast("object", schema), Mapping):
        raise ValueError(
            f"got the schema {schema!r:.80}; need a JSON schema as a mapping, such as {{'type': 'object'}}"
        )
    try:
        return f"%json {json.dumps({**schema, 'x-guidance': SEPARATORS})}"
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"got a schema that JSON can't write ({error}); need values of JSON") from error
