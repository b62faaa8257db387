"""The conversation of a request: the results of tools are matched with their calls."""

from collections.abc import Callable, Sequence

from bough.serve.errors import ApiError
from bough.tree import Message, in_call_order


def ordered(messages: Sequence[Message], place: Callable[[int], str]) -> tuple[Message, ...]:
    """The messages, with the results of tools in the order of their calls.

    Args:
        messages: The conversation.
        place: The field of a message, from its index, for errors.

    Raises:
        ApiError: 400 for a result of no call, a second result, or a call without one.
    """
    try:
        return in_call_order(messages, place)
    except ValueError as error:
        text = str(error)
        raise ApiError(400, text, param=text.partition(":")[0].partition("[")[0]) from None
