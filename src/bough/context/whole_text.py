"""A parser whose action is the whole text."""

from dataclasses import dataclass
from typing import ClassVar

from bough.context.parser import Parsed
from bough.needs import WHOLE_TEXT, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeText:
    """The action is the whole text, unchanged. Well formed when it has more than whitespace."""

    gives: ClassVar[frozenset[Need]] = frozenset({WHOLE_TEXT})

    def __call__(self, text: str) -> Parsed:
        """See `Parser`."""
        return Parsed(action=text, well_formed=bool(text.strip()))
