"""Stop strings: the answer ends before the first one in its text."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bough.context import Renderer
from bough.engine import Completion, FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A completion that ends before a stop string.

    Attributes:
        completion: With the tokens that cover the text, and the finish reason `STOP`.
        text: The text before the stop string.
        stop: The stop string.
    """

    completion: Completion
    text: str
    stop: str


def cut_at(renderer: Renderer, completion: Completion, stop: Sequence[str]) -> Cut | None:
    """The completion before the first stop string in its text; None where there is none."""
    tokens, text = completion.tokens, renderer.text(completion.tokens)
    places = [(place, each) for each in stop if (place := text.find(each)) >= 0]
    if not places:
        return None
    place, first = min(places, key=lambda each: each[0])
    kept = text[:place]
    # A prefix of the tokens may end within a character, and then decodes to another one.
    counts = range(len(tokens) + 1)
    count = bisect_left(counts, True, key=lambda count: renderer.text(tokens[:count]).startswith(kept))
    shorter = replace(
        completion,
        tokens=tokens[:count],
        logprobs=None if completion.logprobs is None else completion.logprobs[:count],
        entropies=None if completion.entropies is None else completion.entropies[:count],
        top_probs=None if completion.top_probs is None else completion.top_probs[:count],
        finish=FinishReason.STOP,
    )
    return Cut(completion=shorter, text=kept, stop=first)
