"""Questions that a search asks the agent's engine, and how their answers are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Protocol, TypeVar, runtime_checkable

from bough.engine import EngineFault, Sampling
from bough.explore.cursor import Cursor
from bough.explore.search.node import SearchNode
from bough.explore.search.tree import SearchTree

UNANSWERED = "unanswered"
"""In the notes of a node, and in the info of its action: how many questions about it got no answer that can be read."""

STORY = frozenset({"instructions", "turns", "observation"})
"""The places that every prompt may use: what the agent was told first, what happened, and what it reads now."""

Answer = TypeVar("Answer")
Read = TypeVar("Read", covariant=True)


@runtime_checkable
class Reader(Protocol[Read]):
    """Finds the answer in what an engine wrote."""

    def __call__(self, text: str) -> Read | None:
        """The answer; None when there is none in the form that was asked for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Answers that are one of a few words, and what each is worth.

    Of the words that occur in a text, as whole words in any case, the last counts, and the longest of those that end
    there: "No, but on track." is "on track".

    Attributes:
        worth: By word, at least one.
    """

    worth: Mapping[str, float] = field(default_factory=lambda: {"yes": 1.0, "on track": 0.5, "no": 0.0})

    def __post_init__(self) -> None:
        if not self.worth or not all(self.worth):
            raise ValueError(f"Words.worth: got {dict(self.worth)}; need at least one word, and none that is empty")

    def __call__(self, text: str) -> float | None:
        """What the answer is worth."""
        said = text.casefold()
        found = [
            (place.end(), len(word), worth)
            for word, worth in self.worth.items()
            for place in re.finditer(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", said)
        ]
        return max(found)[2] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """Answers that are a number in a range, of which the lowest is worth 0 and the highest 1.

    The last number of a text counts: "8", "8/10" and "8 out of 10" are .8 with a range from 0 to 10. One that lies
    outside of the range is no answer.

    Attributes:
        low: The lowest.
        high: The highest, above it.
    """

    low: float = 0.0
    high: float = 10.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"Number: got low={self.low}, high={self.high}; need high above low")

    def __call__(self, text: str) -> float | None:
        """What the answer is worth."""
        found = re.findall(r"(?<![\w.])(-?\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*\d+(?:\.\d+)?)?", text)
        number = float(found[-1]) if found else self.low - 1
        return (number - self.low) / (self.high - self.low) if self.low <= number <= self.high else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Answers that order things by their numbers, the best first: "2, 1, 3", and the first of them alone: "2".

    Attributes:
        count: How many things there are, numbered from 1.
        all: Whether all of them are to be ordered.
    """

    count: int
    all: bool = False

    def __call__(self, text: str) -> tuple[int, ...] | None:
        """The order, counted from 0."""
        named = tuple(dict.fromkeys(int(number) - 1 for number in re.findall(r"\d+", text)))
        known = set(named) <= set(range(self.count))
        return named if named and known and (len(named) == self.count or not self.all) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Answers in words of their own: all that is written; nothing is no answer."""

    def __call__(self, text: str) -> str | None:
        """The answer."""
        return text.strip() or None


def check_places(owner: str, prompt: str, *more: str) -> None:
    """See that a prompt has no place that nobody fills: `STORY`, and `more`.

    Raises:
        ValueError: when it has; braces that are meant as such are written twice.
    """
    places = STORY | set(more)
    try:
        asked = {name for _, name, _, _ in Formatter().parse(prompt) if name is not None}
    except ValueError as error:
        raise ValueError(f"{owner}: got {prompt!r} ({error}); need braces in pairs, or doubled") from error
    if asked - places:
        raise ValueError(f"{owner}: got the places {sorted(asked - places)}; need some of {sorted(places)}")


def story(tree: SearchTree, node: SearchNode) -> dict[str, str]:
    """What there is to say of the place where a node led, or of where its action was written if nobody did it yet."""
    nodes, draft = tree.player.growth.nodes, node.draft
    if node.ended and draft is not None:
        past = [(turn.observation, turn.action) for turn in draft.cursor.past]
        past.append((draft.cursor.state.observation, draft.parsed.action))
        observation = str(nodes[tree.player.answered[draft.node]].info["text"])
    else:
        cursor = node.at if isinstance(node.at, Cursor) else None
        if cursor is None and draft is not None:
            cursor = draft.cursor
        if cursor is None:
            raise ValueError(f"story: got {node}, which is nowhere; need one that was carried out or written")
        past = [(turn.observation, turn.action) for turn in cursor.past]
        observation = cursor.state.observation
    return {
        "instructions": str(nodes[0].info["instructions"]),
        "turns": "\n".join(f"{read}\n> {action}" for read, action in past),
        "observation": observation,
    }


def place(node: SearchNode) -> tuple[int, ...]:
    """What tells a node apart from all others of its tree, for the names of questions."""
    return () if node.draft is None else node.draft.branches


async def asked(
    tree: SearchTree,
    node: SearchNode,
    *name: int | str,
    system: str,
    text: str,
    read: Reader[Answer],
    sampling: Sampling | None = None,
) -> Answer | None:
    """Ask the agent's engine about a node; once more when the answer can't be read, or the engine broke.

    Args:
        tree: The search.
        node: What the question is about.
        name: Tells the question apart from others about the node.
        system: What the engine is told first.
        text: The question.
        read: Finds the answer.
        sampling: How the answer is sampled, if not as the agent samples.

    Returns:
        The answer; None when there is none, which is then counted as `UNANSWERED`.

    Raises:
        Spent: when a budget can't pay for it.
    """
    for attempt in range(2):
        try:
            said = await tree.player.ask(system, text, *name, *place(node), attempt, sampling=sampling)
        except EngineFault:
            tree.faults += 1
            continue
        answer = read(said)
        if answer is not None:
            return answer
    unanswered(tree, node)
    return None


def unanswered(tree: SearchTree, node: SearchNode) -> None:
    """Count a question about a node to which there is no answer."""
    info = tree.player.growth.nodes[0 if node.draft is None else node.draft.node].info
    for where in (node.notes, info):
        known = where.get(UNANSWERED, 0)
        where[UNANSWERED] = 1 + (known if isinstance(known, int) else 0)
