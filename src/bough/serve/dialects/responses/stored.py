"""The conversations of earlier responses, by their ids."""

from collections import OrderedDict
from collections.abc import Sequence

from bough.serve.thinking import with_thinking
from bough.tree import Message
from bough.units import MIB

KEEP_RESPONSES = 10_000
"""Most responses of one key that are kept; the least recently used is dropped first."""

KEEP_CHARACTERS = 64 * MIB
"""Most characters of their conversations; one that several responses share counts for each."""

MESSAGE_CHARACTERS = 200
"""What a message counts besides its texts."""


class StoredResponses:
    """The conversations of one key up to and with each response."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[tuple[Message, ...], int]] = OrderedDict()
        self._characters = 0

    def find(self, name: str) -> tuple[Message, ...] | None:
        """The conversation that ends with a response; None for one that is not kept."""
        if name not in self._kept:
            return None
        self._kept.move_to_end(name)
        return self._kept[name][0]

    def keep(self, name: str, messages: Sequence[Message]) -> None:
        """Keep the conversation that ends with a response; one that is too large is dropped at once."""
        size = sum(map(_characters, messages))
        self._kept[name] = (*messages,), size
        self._characters += size
        while len(self._kept) > KEEP_RESPONSES or self._characters > KEEP_CHARACTERS:
            self._characters -= self._kept.popitem(last=False)[1][1]


def _characters(message: Message) -> int:
    # Arguments are compared and not written again: their size is about that of their text.
    calls = sum(len(call.name) + len(repr(call.arguments)) for call in message.tool_calls)
    return MESSAGE_CHARACTERS + len(with_thinking(message)) + calls
