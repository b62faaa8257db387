"""The protocol of a format of calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bough.tree import Action, Tool


@runtime_checkable
class CallFormat(Protocol):
    """The format of one model family. A format of your own is a class with these members, and `policy.call_format`.

    `parse(write(action))` is the action, but for the ids of its calls. This holds for each action without blanks at
    the ends of its text and without bad calls, when no text contains a mark of calls.
    """

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts with which calls begin. No text of people should contain them."""
        ...

    @property
    def stops(self) -> tuple[str, ...]:
        """Special tokens that end an action in place of the template's end of a message; () for the template's."""
        ...

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """Parses an action with its special tokens as text; never fails. What begins like a call and is none is bad.

        Thinking between `<think>` and `</think>` stays in the action's text and has no calls.

        Args:
            text: The text of an action.
            begin: No call begins before this character.
            tools: The tools of the state. Formats that write texts without quotes take the types from their schemas.
        """
        ...

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """Returns the text of an action.

        Args:
            action: The action.
            hide: Applied to the names and values of calls as they are written, so that the texts of special tokens in
                them stay text.
        """
        ...

    def template_id(self, call_id: str) -> str:
        """Returns the id of a call as the family's templates accept it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFormat:
    """The defaults of a `CallFormat`: the template's end of a message, and ids as they are."""

    @property
    def stops(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return ()

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`."""
        return call_id
