"""Clarifying questions: the user has one thing of a list in mind (arXiv 2508.13514)."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import TypeAlias

from bough.worlds.dialogue.scenario import FAREWELL, Exchange, ExchangeResult, says_farewell, words_in

VALUES = {
    "color": ("red", "blue", "green"),
    "size": ("tiny", "medium", "huge"),
    "material": ("wood", "steel", "glass"),
    "style": ("plain", "modern", "old"),
}
NAMES = ("lamp", "chair", "desk", "clock", "shelf", "vase", "bench", "stool")

Item: TypeAlias = tuple[str, tuple[str, ...]]
"""A name, and the value of each attribute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The user wants one thing of a list. `ask ATTRIBUTE` reveals a value; `offer NAME` ends the dialogue.

    Attributes:
        items: The list: names, and values of the first attributes of `VALUES`.
        target: The name of the thing that the user wants.
    """

    items: tuple[Item, ...]
    target: str

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the user can be asked about."""
        return tuple(VALUES)[: len(self.items[0][1])]

    @property
    def content(self) -> str:
        """The list, without the target."""
        return str(sorted(self.items))

    @property
    def brief(self) -> str:
        """The list and the attributes."""
        return "\n".join([*(f"{name} {' '.join(values)}" for name, values in self.items), "user: find my thing."])

    @property
    def goal(self) -> str:
        """The target and its values."""
        values = dict(self.items)[self.target]
        own = ", ".join(f"{name} {value}" for name, value in zip(self.attributes, values, strict=True))
        return (
            f"You want the {self.target} ({own}). Answer a question about one attribute with its value alone. Do not "
            "name the thing. Answer yes or no to an offer."
        )

    @property
    def leave_reward(self) -> float:
        """Nothing: its thing was not found."""
        return 0.0

    def acts(self, exchanges: Sequence[Exchange]) -> tuple[str, ...]:
        """A question about each attribute, and an offer of each thing."""
        del exchanges
        return (*(f"ask {each}" for each in self.attributes), *(f"offer {name}" for name, _ in self.items))

    def parse_act(self, text: str) -> str | None:
        """One name is an offer; otherwise one attribute is a question."""
        names = words_in(text, (name for name, _ in self.items))
        asked = words_in(text, self.attributes)
        if len(names) == 1:
            return f"offer {names[0]}"
        return f"ask {asked[0]}" if len(asked) == 1 and not names else None

    def reply(self, exchanges: Sequence[Exchange], act: str) -> str:
        """The value of the attribute, or a yes or no."""
        del exchanges
        kind, _, word = act.partition(" ")
        if kind == "ask":
            return f"{dict(self.items)[self.target][self.attributes.index(word)]}."
        return "yes." if word == self.target else f"no. {FAREWELL}."

    def evaluate(self, exchanges: Sequence[Exchange]) -> ExchangeResult:
        """An offer ends the dialogue; the information gain is in bits, of a uniform belief over the possible things."""
        kind, _, word = exchanges[-1].act.partition(" ")
        before, after = self._possible(exchanges[:-1]), self._possible(exchanges)
        info = {
            "information_gain": log2(len(before) / len(after)),
            "expected_information_gain": self._expected_gain(before, exchanges[-1].act),
            "possible": len(after),
        }
        success = kind == "offer" and word == self.target
        paid = float(success)
        over = kind == "offer" or says_farewell(exchanges[-1].reply)
        return ExchangeResult(over=over, success=success, reward=paid, user_reward=paid, info=info)

    def key(self, exchanges: Sequence[Exchange]) -> str:
        """The list, and the names of the things that are possible."""
        return f"{self.items} {sorted(name for name, _ in self._possible(exchanges))}"

    def plan(self, exchanges: Sequence[Exchange], left: int) -> tuple[str, ...]:
        """The acts of maximum success probability, without knowledge of the target; among equals the fewest."""
        acts: list[str] = []
        past = list(exchanges)
        for turns in range(left, 0, -1):
            _, _, act = _best(frozenset(self._possible(past)), turns)
            acts.append(act)
            past.append(Exchange(act, self.reply(past, act)))
            if act.startswith("offer"):
                return tuple(acts) if act == f"offer {self.target}" else ()
        return ()

    def _possible(self, exchanges: Sequence[Exchange]) -> list[Item]:
        """The things that fit the replies; a reply that fits none is ignored."""
        found = list(self.items)
        for act, reply in exchanges:
            kind, _, word = act.partition(" ")
            fits = found
            if kind == "offer":
                fits = [each for each in found if (each[0] == word) == (word == self.target)]
            else:
                place = self.attributes.index(word)
                values = words_in(reply, VALUES[word])
                fits = [each for each in found if len(values) != 1 or each[1][place] == values[0]]
            found = fits or found
        return found

    def _expected_gain(self, items: Sequence[Item], act: str) -> float:
        """The mean information gain of an act, in bits, over all possible targets."""
        kind, _, word = act.partition(" ")
        if kind == "ask":
            place = self.attributes.index(word)
            counts = Counter(each[1][place] for each in items)
        else:
            counts = Counter(name == word for name, _ in items)
        return sum(count / len(items) * log2(len(items) / count) for count in counts.values())


def propose_questions(rng: random.Random, *, items: int, attributes: int) -> Questions:
    """A random list of different things, and a target."""
    names = rng.sample(NAMES, items)
    profiles: list[tuple[str, ...]] = []
    while len(profiles) < items:
        profile = tuple(rng.choice(VALUES[each]) for each in tuple(VALUES)[:attributes])
        if profile not in profiles:
            profiles.append(profile)
    return Questions(items=tuple(zip(names, profiles, strict=True)), target=rng.choice(names))


@lru_cache(maxsize=20_000)
def _best(items: frozenset[Item], left: int) -> tuple[float, float, str]:
    """The best act for a uniform belief: success probability, minus the expected number of turns, and the act."""
    ordered = sorted(items)
    found = [(1 / len(ordered), -1.0, f"offer {ordered[0][0]}")]
    for place, name in enumerate(tuple(VALUES)[: len(ordered[0][1])] if left > 1 and len(ordered) > 1 else ()):
        groups: dict[str, list[Item]] = {}
        for each in ordered:
            groups.setdefault(each[1][place], []).append(each)
        if len(groups) < 2:
            continue
        after = [(len(group) / len(ordered), _best(frozenset(group), left - 1)) for group in groups.values()]
        success = sum(share * each[0] for share, each in after)
        turns = sum(share * each[1] for share, each in after) - 1
        found.append((round(success, 12), round(turns, 12), f"ask {name}"))
    return max(found, key=lambda each: each[:2])
