"""Parsers that extract the action from a completion."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.context.context import Turn
from bough.context.parser import Parsed
from bough.needs import WHOLE_TEXT, Need, annotation


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """The action is the first line that is not blank. Well formed when there is exactly one such line."""

    def __call__(self, text: str) -> Parsed:
        """See `Parser`."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return Parsed(action=lines[0] if lines else "", well_formed=len(lines) == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """The action stands between tags, after any other text: `I see a door. <action>go east</action>`.

    The last closed pair counts. Without one, or with an empty one, the text is not well formed. Without one the
    whole text is the action.

    Spans: "tag" and "tag 2", the tags of this pair.

    Attributes:
        tag: The name between the angle brackets.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({annotation("tag"), WHOLE_TEXT})

    tag: str = "action"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+", self.tag):
            raise ValueError(f"Tagged.tag: got {self.tag!r}; need a name of letters, digits and _, without brackets")

    def __call__(self, text: str) -> Parsed:
        """See `Parser`."""
        before, closed, _ = text.rpartition(f"</{self.tag}>")
        thought, opened, action = before.rpartition(f"<{self.tag}>")
        if not (closed and opened):
            return Parsed(action=text.strip(), well_formed=False)
        begin, end = len(thought), len(before)
        spans = {"tag": (begin, begin + len(opened)), "tag 2": (end, end + len(closed))}
        return Parsed(action=action.strip(), well_formed=bool(action.strip()), spans=spans)

    @property
    def instructions(self) -> str:
        """See `PromptedParser`."""
        return f"Write your action between <{self.tag}> and </{self.tag}>."

    def write(self, action: str, past: Sequence[Turn] = (), ahead: Sequence[str] = ()) -> str:  # noqa: ARG002
        """See `PromptedParser`."""
        return f"<{self.tag}>{action}</{self.tag}>"
