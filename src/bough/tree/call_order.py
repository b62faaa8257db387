"""The results of tools in the order of their calls."""

from collections.abc import Callable, Sequence
from itertools import takewhile

from bough.tree.message import AgentAction, BadCall, Message, ToolCall


def in_call_order(
    messages: Sequence[Message], place: Callable[[int], str] = "messages[{}]".format
) -> tuple[Message, ...]:
    """A conversation whose results follow the order of their calls, for chat templates that show no ids.

    Results are matched by `call_id`. Without ids they are those of the calls in order; after a message without calls
    they stay as they are. The calls of the last message have no results yet.

    Args:
        messages: The conversation.
        place: The name of a message in errors, from its index.

    Raises:
        ValueError: for a result of no call, a second result, or a call without one; has the message's place.
    """
    ordered: list[Message] = []
    while (at := len(ordered)) < len(messages):
        begin = at if messages[at].role == "tool" else at + 1
        ordered += messages[at:begin]
        if begin < len(messages):
            results = tuple(takewhile(lambda each: each.role == "tool", messages[begin:]))
            ordered += _ordered(messages[at].tool_calls, results, begin, place)
    return tuple(ordered)


def after_action(action: AgentAction, observation: Sequence[Message]) -> tuple[Message, ...]:
    """The messages after an action, its results in the order of its calls.

    Results are matched by `call_id`; those without one answer the calls without one, in order. Where no call or no
    result has one, or two calls have the same, the messages stay as they are.

    Raises:
        ValueError: for a result of no call, a second result, or a call with an id and without a result; names the id.
    """
    calls = () if isinstance(action, str) else action.calls
    known = ["" if isinstance(call, BadCall) else call.call_id for call in calls]
    named = [each for each in known if each]
    places = [place for place, each in enumerate(observation) if each.role == "tool"]
    given = [observation[place].call_id for place in places]
    if not named or not any(given) or len(set(named)) < len(named):
        return tuple(observation)
    for call_id in filter(None, given):
        if call_id not in named or given.count(call_id) > 1:
            which = "two results" if call_id in named else "a result"
            raise ValueError(
                f"the environment: got {which} of the call {call_id!r}; need one of each of {named}, the calls of the "
                "action: give a result the call_id of its call"
            )
    if missing := [each for each in named if each not in given]:
        raise ValueError(f"the environment: got no result of the call {missing[0]!r}; need a message of the role tool")
    found = {observation[place].call_id: observation[place] for place in places}
    unnamed = iter([observation[place] for place in places if not observation[place].call_id])
    results = [found[each] if each else next(unnamed, None) for each in known]
    ordered = [*(each for each in results if each is not None), *unnamed]
    shown = list(observation)
    for place, result in zip(places, ordered, strict=True):
        shown[place] = result
    return tuple(shown)


def _ordered(
    calls: Sequence[ToolCall], results: Sequence[Message], begin: int, place: Callable[[int], str]
) -> Sequence[Message]:
    """The results of calls in the order of the calls; `begin` is the index of the first."""
    if not any(result.call_id for result in results):
        if not results and (ids := [call.call_id for call in calls if call.call_id]):
            raise ValueError(_missing(place(begin - 1), ids[0]))
        if calls and len(results) != len(calls):
            raise ValueError(
                f"{place(begin - 1)}: got {len(results)} results of {len(calls)} calls; need one of each, next to it"
            )
        return results
    known = [call.call_id for call in calls]
    if len(set(known)) < len(known):
        raise ValueError(f"{place(begin - 1)}: got calls with equal ids, {known}; need an id for each")
    found: dict[str, Message] = {}
    for number, result in enumerate(results, start=begin):
        if result.call_id not in known or result.call_id in found:
            which = "a second result" if result.call_id in found else "a result"
            raise ValueError(
                f"{place(number)}: got {which} of the call {result.call_id!r}; need one of each of {known}, the "
                "calls before it"
            )
        found[result.call_id] = result
    if missing := [each for each in known if each not in found]:
        raise ValueError(_missing(place(begin - 1), missing[0]))
    return [found[each] for each in known]


def _missing(place: str, call_id: str) -> str:
    return f"{place}: got no result of the call {call_id!r}; need one, next to it"
