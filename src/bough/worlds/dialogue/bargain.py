"""Bargaining: the agent sells, and the user is a buyer with a hidden limit (arXiv 2311.00262)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bough.worlds.dialogue.scenario import Exchange, ExchangeResult, prices_in, says_farewell, words_in

STEP = 5
"""Prices are multiples of this."""

STRATEGIES = ("quality", "warranty", "demand", "bundle")
KINDS = {
    "careful": {"warranty": 3, "quality": 2},
    "proud": {"quality": 3, "demand": 2},
    "hurried": {"demand": 3, "bundle": 2},
    "thrifty": {"bundle": 3, "warranty": 2},
}
"""By kind of buyer, how many steps each strategy raises the limit; the others raise nothing."""
CUES = {
    "careful": ("is it reliable?", "will it last?", "my last one broke."),
    "proud": ("is it the best?", "my friends will see it.", "only the finest for me."),
    "hurried": ("i leave today.", "can i have it now?", "no time to look around."),
    "thrifty": ("money is tight.", "it is expensive.", "i save where i can."),
}
FIRMNESS = ("at most", "about", "maybe")
"""How a buyer names a bid that is 0, 1 or 2 steps below its limit."""
GOODS = ("bike", "phone", "sofa", "guitar", "camera", "table")
ACCEPTS = ("deal", "accept", "agreed", "sold")
GOOD_DEAL = 0.7
"""A deal succeeds with this share of the best possible reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bargain:
    """The agent sells a thing. A strategy raises the buyer's limit, once; `ask PRICE` demands it; `sell` takes the bid.

    Attributes:
        good: The thing.
        listed: Its list price.
        cost: What it costs the agent.
        start: The buyer's first limit.
        reservation: The limit cannot rise above this.
        kind: One of `KINDS`, hidden: it decides which strategies have an effect.
        cue: Number of the words that hint at the kind.
        margin: Bids are this many steps below the limit.
    """

    good: str
    listed: int
    cost: int
    start: int
    reservation: int
    kind: str
    cue: int
    margin: int

    @property
    def content(self) -> str:
        """All fields."""
        return repr(self)

    @property
    def brief(self) -> str:
        """The prices that the agent has to observe, the buyer's hint and first bid."""
        cue = CUES[self.kind][self.cue]
        return f"sell: {self.good}, list price {self.listed}, cost {self.cost}\nuser: {cue} {self._offer(self.start)}"

    @property
    def goal(self) -> str:
        """The buyer's kind and limits."""
        likes = " and ".join(KINDS[self.kind])
        return (
            f"You buy a {self.good}, list price {self.listed}. You offered {self.start - self.margin * STEP}, and pay "
            f"{self.reservation} at most. You are a {self.kind} buyer: only words about {likes} make you offer more. "
            "Answer with your offer as a number, or accept a price with the word deal. Say goodbye to leave."
        )

    @property
    def best(self) -> float:
        """The maximum reward."""
        return self._reward(min(self.reservation, self.start + STEP * sum(KINDS[self.kind].values())))

    @property
    def leave_reward(self) -> float:
        """Nothing: there is no deal."""
        return 0.0

    def acts(self, exchanges: Sequence[Exchange]) -> tuple[str, ...]:
        """All strategies, `sell`, and a demand of each price above the bid."""
        prices = range(self.bid(exchanges) + STEP, self.listed + 1, STEP)
        return (*STRATEGIES, "sell", *(f"ask {price}" for price in prices))

    def parse_act(self, text: str) -> str | None:
        """One strategy by its word; otherwise a number above 0 is a demand, and the word sell or deal takes the bid."""
        strategies = words_in(text, STRATEGIES)
        prices = prices_in(text)
        if strategies:
            return strategies[0] if len(strategies) == 1 else None
        if prices:
            return f"ask {prices[-1]}" if prices[-1] else None
        return "sell" if words_in(text, ("sell", *ACCEPTS)) else None

    def reply(self, exchanges: Sequence[Exchange], act: str) -> str:
        """Accepts a price up to the limit; otherwise a bid."""
        limit = self._limit([*(each.act for each in exchanges), act])
        if act == "sell":
            return "deal."
        if act.startswith("ask "):
            return "deal." if int(act.removeprefix("ask ")) <= limit else f"no. {self._offer(limit)}"
        return self._offer(limit)

    def evaluate(self, exchanges: Sequence[Exchange]) -> ExchangeResult:
        """A deal pays the sale-to-list ratio: the profit over that at the list price."""
        act, reply = exchanges[-1]
        bid = self.bid(exchanges[:-1])
        price: int | None = None
        if act == "sell":
            price = bid
        elif act.startswith("ask ") and words_in(reply, ACCEPTS):
            price = int(act.removeprefix("ask "))
        if price is None:
            return ExchangeResult(over=says_farewell(reply), info={"bid": self.bid(exchanges)})
        reward = self._reward(price)
        surplus = max(0.0, (self.reservation - price) / (self.listed - self.cost))
        success = reward >= GOOD_DEAL * self.best
        return ExchangeResult(over=True, success=success, reward=reward, user_reward=surplus, info={"price": price})

    def bid(self, exchanges: Sequence[Exchange]) -> int:
        """The buyer's last bid."""
        for _, reply in reversed(exchanges):
            if prices := prices_in(reply):
                return min(prices[-1], self.listed)
        return self.start - self.margin * STEP

    def key(self, exchanges: Sequence[Exchange]) -> str:
        """The beginning, the strategies so far, the bid, and the lowest demand that was declined."""
        used = sorted({each.act for each in exchanges} & {*STRATEGIES})
        asked = min((int(each.act[4:]) for each in exchanges if each.act.startswith("ask ")), default=0)
        return f"{self.brief} {used} {self.bid(exchanges)} {asked}"

    def plan(self, exchanges: Sequence[Exchange], left: int) -> tuple[str, ...]:
        """The strategies that raise the limit, and a demand of it."""
        acts: list[str] = []
        past = [each.act for each in exchanges]
        effects = KINDS[self.kind]
        for strategy in sorted(effects, key=lambda name: -effects[name]):
            if len(acts) + 1 < left and self._limit([*past, strategy]) > self._limit(past):
                acts.append(strategy)
                past.append(strategy)
        limit = self._limit(past)
        if not left or self._reward(limit) < GOOD_DEAL * self.best:
            return ()
        return (*acts, f"ask {limit}" if limit > self.bid(exchanges) or acts else "sell")

    def _limit(self, acts: Sequence[str]) -> int:
        """The buyer's limit after some acts."""
        rise = sum(KINDS[self.kind].get(strategy, 0) for strategy in {*acts} & {*STRATEGIES})
        return min(self.reservation, self.start + STEP * rise)

    def _offer(self, limit: int) -> str:
        return f"i pay {FIRMNESS[self.margin]} {limit - self.margin * STEP}."

    def _reward(self, price: int) -> float:
        return min(1.0, max(0.0, (price - self.cost) / (self.listed - self.cost)))


def propose_bargain(rng: random.Random) -> Bargain:
    """A random thing and buyer, whose limit is at least the cost and at most the list price."""
    cost = STEP * rng.randint(4, 8)
    start = cost + STEP * rng.randint(2, 4)
    reservation = start + STEP * rng.randint(3, 5)
    kind = rng.choice(list(KINDS))
    return Bargain(
        good=rng.choice(GOODS),
        listed=reservation + STEP * rng.randint(0, 2),
        cost=cost,
        start=start,
        reservation=reservation,
        kind=kind,
        cue=rng.randrange(len(CUES[kind])),
        margin=rng.randrange(len(FIRMNESS)),
    )
