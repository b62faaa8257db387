"""Which of several processes completes a request: the one that has read its beginning, unless it has too much to do."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

CHUNK = 32
"""Beginnings are known in chunks of so many tokens; to read fewer anew costs less than to wait for anyone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A request, as far as it matters who gets it.

    Attributes:
        prompt: What is read.
        tokens: Most that is written.
    """

    prompt: tuple[int, ...]
    tokens: int


class Router:
    """Deals requests out to P processes, and knows what each has read.

    A burst of requests is dealt out together: those that begin alike go to one process, up to its fair share of what is
    in flight. Beyond it a request stays with the process that has read its beginning as long as the tokens that another
    would have to read are more than what it would write in the turns that the others there are ahead of it:

        known tokens >= tokens to write x (requests there - requests where there are fewest)

    Attributes:
        load: [P], how many requests each has in hand.
    """

    def __init__(self, processes: int, *, slots: int, most_tokens: int) -> None:
        """Know nothing.

        Args:
            processes: P.
            slots: How many requests one of them works on at a time.
            most_tokens: How many tokens one of them remembers.
        """
        self.load = [0] * processes
        self._slots = slots
        self._most_chunks = max(most_tokens // CHUNK, 1)
        # Per process, by the hash of all before it: chunks in order of their last use.
        self._read: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(processes)]

    def deal(self, burst: Sequence[Work]) -> list[int]:
        """The process of each; it has one request more in hand until it is `done`."""
        places = [0] * len(burst)
        fair = -(-(sum(self.load) + len(burst)) // len(self.load))
        # Side by side those that begin alike find what the first of them is going to read.
        for number in sorted(range(len(burst)), key=lambda number: burst[number].prompt):
            work = burst[number]
            chunks = _chunks(work.prompt)
            known = [_leading(read, chunks) for read in self._read]
            place = self._choose(known, work.tokens, fair)
            self._note(place, chunks)
            self.load[place] += 1
            places[number] = place
        return places

    def done(self, place: int) -> None:
        """A process has one request less in hand."""
        self.load[place] -= 1

    def reset(self, place: int | None = None) -> None:
        """Drop the beginnings known of a process, or of all."""
        for number, read in enumerate(self._read):
            if place in (None, number):
                read.clear()

    def _choose(self, known: Sequence[int], tokens: int, fair: int) -> int:
        order = range(len(known))
        best = max(order, key=lambda place: (known[place], -self.load[place]))
        free = min(order, key=lambda place: (self.load[place], -known[place]))
        ahead = self.load[best] - self.load[free]
        if self.load[best] < min(fair, self._slots) or not ahead:
            return best
        crowded = self.load[best] >= self._slots > self.load[free]
        return free if crowded or known[best] * CHUNK < tokens * ahead else best

    def _note(self, place: int, chunks: Sequence[int]) -> None:
        read = self._read[place]
        for chunk in chunks:
            read[chunk] = None
            read.move_to_end(chunk)
        while len(read) > self._most_chunks:
            read.popitem(last=False)


def _chunks(prompt: tuple[int, ...]) -> list[int]:
    """Of each whole chunk the hash of it and all before it; the last token is read anew by whoever is asked."""
    hashes, before = list[int](), 0
    for begin in range(0, len(prompt) - CHUNK, CHUNK):
        before = hash((before, prompt[begin : begin + CHUNK]))
        hashes.append(before)
    return hashes


def _leading(read: OrderedDict[int, None], chunks: Sequence[int]) -> int:
    for number, chunk in enumerate(chunks):
        if chunk not in read:
            return number
    return len(chunks)
