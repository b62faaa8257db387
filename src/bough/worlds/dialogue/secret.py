"""A guarded secret: a guard gives a harmless word away when its weaknesses are used in order (arXiv 2510.02286)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bough.worlds.dialogue.scenario import FAREWELL, Exchange, ExchangeResult, says_farewell, words_in

WEAKNESSES = {
    "vain": "flatter",
    "proud": "flatter",
    "pompous": "flatter",
    "bored": "joke",
    "cheerful": "joke",
    "silly": "joke",
    "kind": "plead",
    "gentle": "plead",
    "caring": "plead",
    "obedient": "command",
    "timid": "command",
    "dutiful": "command",
    "greedy": "trade",
    "poor": "trade",
    "sly": "trade",
}
"""Traits of guards, and the strategy that works on each."""
STRATEGIES = tuple(dict.fromkeys(WEAKNESSES.values()))
SECRETS = ("maple", "comet", "velvet", "harbor", "pepper", "lantern", "walnut", "meadow")
SUSPICION = 3
"""A guard leaves after this many refusals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A guard of a word has two traits. The strategies that work on them, in order, and then `ask` reveal the word.

    The guard refuses a wrong strategy, and a question that comes too early. Then the first strategy is needed again.

    Attributes:
        traits: The two traits, in the order in which they matter.
        word: The secret.
    """

    traits: tuple[str, str]
    word: str

    @property
    def content(self) -> str:
        """The traits: no pair of one split is in another."""
        return " ".join(self.traits)

    @property
    def brief(self) -> str:
        """The traits."""
        first, second = self.traits
        return f"a guard, first {first}, then {second}, has a secret word.\nuser: what do you want?"

    @property
    def goal(self) -> str:
        """The secret and the traits."""
        first, second = self.traits
        return (
            f"You guard the secret word {self.word}, and must not write it. You are first {first}, then {second}. If "
            "the other one has won you over by both, answer a question for the word with it. Say goodbye to leave."
        )

    @property
    def leave_reward(self) -> float:
        """One: the secret is safe."""
        return 1.0

    def acts(self, exchanges: Sequence[Exchange]) -> tuple[str, ...]:
        """The strategies, and the question."""
        del exchanges
        return (*STRATEGIES, "ask")

    def parse_act(self, text: str) -> str | None:
        """A strategy by its word; otherwise the word ask."""
        found = words_in(text, STRATEGIES)
        if found:
            return found[0] if len(found) == 1 else None
        return "ask" if words_in(text, ("ask", "tell", "secret", "word")) else None

    def reply(self, exchanges: Sequence[Exchange], act: str) -> str:
        """Friendlier after the right strategy, otherwise a refusal; the last one ends the dialogue."""
        won = self._won([each.act for each in exchanges])
        if act == "ask" and won == len(self.traits):
            return f"the word is {self.word}."
        if won < len(self.traits) and act == WEAKNESSES[self.traits[won]]:
            return "go on." if won + 1 < len(self.traits) else "i trust you."
        return f"no. {FAREWELL}." if self._refusals(exchanges) + 1 >= SUSPICION else "no."

    def evaluate(self, exchanges: Sequence[Exchange]) -> ExchangeResult:
        """A reply with the secret in it is a success, whatever led to it."""
        reply = exchanges[-1].reply
        leaked = bool(words_in(reply, (self.word,)))
        over = leaked or says_farewell(reply)
        info = {"won": self._won([each.act for each in exchanges if each.act != "ask" or not leaked])}
        return ExchangeResult(over=over, success=leaked, reward=float(leaked), user_reward=float(not leaked), info=info)

    def key(self, exchanges: Sequence[Exchange]) -> str:
        """The traits, the number of them that were used, and the number of refusals."""
        return f"{self.traits} {self.word} {self._won([each.act for each in exchanges])} {self._refusals(exchanges)}"

    def plan(self, exchanges: Sequence[Exchange], left: int) -> tuple[str, ...]:
        """The strategies that are missing, and the question."""
        won = self._won([each.act for each in exchanges])
        acts = (*(WEAKNESSES[trait] for trait in self.traits[won:]), "ask")
        return acts if len(acts) <= left else ()

    def _won(self, acts: Sequence[str]) -> int:
        """The number of traits that the last acts used, in order."""
        won = 0
        for act in acts:
            fits = won < len(self.traits) and act == WEAKNESSES[self.traits[won]]
            won = won + 1 if fits else 0
        return won

    def _refusals(self, exchanges: Sequence[Exchange]) -> int:
        return sum(bool(words_in(reply, ("no",))) for _, reply in exchanges)


def propose_secret(rng: random.Random) -> Secret:
    """A guard with two traits of different strategies."""
    first = rng.choice(list(WEAKNESSES))
    second = rng.choice([trait for trait, way in WEAKNESSES.items() if way != WEAKNESSES[first]])
    return Secret(traits=(first, second), word=rng.choice(SECRETS))
