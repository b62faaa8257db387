"""The protocol of a format of calls."""

from typing import Protocol

from bough.tree import Action


class CallFormat(Protocol):
    """The format of one model family."""

    def parse(self, text: str, begin: int = 0) -> Action:
        """Parses an action with its special tokens as text; never fails. What begins like a call and is none is bad.

        Thinking between `<think>` and `</think>` stays in the action's text and has no calls.

        Args:
            text: The text of an action.
            begin: No call begins before this character.
        """
        ...

    def write(self, action: Action) -> str:
        """Returns the text of an action."""
        ...

    def template_id(self, call_id: str) -> str:
        """Returns the id of a call as the family's templates accept it."""
        ...
