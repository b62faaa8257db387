"""The counts of tokens of an answer, which each dialect names in its own way."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.serve.choice import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Counts of tokens.

    Attributes:
        read: Of the prompts.
        sampled: Of the completions.
    """

    read: int
    sampled: int

    @property
    def total(self) -> int:
        """All tokens."""
        return self.read + self.sampled


def usage_of(choices: Sequence[Choice], prompts: int = 1) -> Usage:
    """The counts of the choices of some prompts; a prompt counts once, whatever its number of choices."""
    each = len(choices) // prompts
    return Usage(
        read=sum(len(choice.prompt_tokens) for choice in choices[::each]),
        sampled=sum(len(choice.completion.tokens) for choice in choices),
    )
