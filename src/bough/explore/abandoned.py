"""The answers of calls that an agent program never got, or did not use."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from bough.explore.episode import Attempt
from bough.explore.placed import PlacedCall

LOST = "the request failed with another choice"
RETRIED = "the client sent the request again: it never got this answer"
UNUSED = "the program went on with another answer to the same prompt"


def abandoned(
    placed: Sequence[PlacedCall], inner: Collection[int], unanswered: Mapping[Attempt, int]
) -> Mapping[int, str]:
    """Why answers of an episode are on no path, by the node of their action.

    An answer that no later call continues is abandoned

        if its request got an error, because another of its choices failed
        if its request was sent again, by the number of retries in the header of OpenAI's and Anthropic's clients
        if another answer to the same prompt is used, and this one is not; an answer is used that a later call
        continues or quotes

    Several answers to one prompt of which none is used, such as votes, stay on their paths.

    Args:
        placed: The calls of an episode.
        inner: The nodes with other nodes below them.
        unanswered: The number of attempts without a completion.
    """
    found = {each.node: LOST for each in placed if each.node not in inner and not each.call.answered}
    prompts: defaultdict[tuple[int, ...], list[PlacedCall]] = defaultdict(list)
    for each in placed:
        if each.node not in found:
            prompts[each.call.prompt.tokens].append(each)
    for same in prompts.values():
        if len(same) > 1:
            retried = _retried(same, inner, unanswered)
            kept = [each for each in same if each.node not in retried]
            unused = _unused(kept, inner, placed)
            found |= dict.fromkeys(retried, RETRIED) | dict.fromkeys(unused, UNUSED)
    return found


def _retried(same: Sequence[PlacedCall], inner: Collection[int], unanswered: Mapping[Attempt, int]) -> list[int]:
    """The nodes of answers to one prompt whose request was sent again."""
    found: list[int] = []
    failed = Counter(unanswered)
    for retry in sorted(same, key=lambda each: each.call.began):
        prompt = retry.call.prompt
        before = (prompt.tokens, prompt.retry - 1)
        if failed[before]:
            failed[before] -= 1
            continue
        earlier = [
            each
            for each in same
            if each.call.ended < retry.call.began
            and each.call.prompt.retry < prompt.retry
            and each.node not in inner
            and each.node not in found
        ]
        if earlier:
            found.append(max(earlier, key=lambda each: each.call.ended).node)
    return found


def _unused(same: Sequence[PlacedCall], inner: Collection[int], placed: Sequence[PlacedCall]) -> list[int]:
    """The nodes of answers to one prompt that are not used; none where no other one is used."""
    continued = [each.answer for each in same if each.node in inner]
    unused = [
        each.node
        for each in same
        # The text of a continued answer is quoted for its sake.
        if each.node not in inner and (each.answer in continued or not _quoted(each, placed))
    ]
    return unused if len(unused) < len(same) else []


def _quoted(answer: PlacedCall, placed: Sequence[PlacedCall]) -> bool:
    """Whether a later call quotes an answer."""
    later = [each for each in placed if each.call.began > answer.call.ended]
    return any(each.history.quotes(answer.answer, shortest=1) for each in later)
