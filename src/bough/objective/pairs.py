"""Preferences: which of two paths of a task, or of two answers in one place, did better, and by how much."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jaxtyping import Bool, Float, Int

from bough.lazy import Tensor, torch
from bough.objective import Columns, Loss, Walk
from bough.objective.spans import span_means, span_sums, walk_of

Unit: TypeAlias = Literal["path", "turn"]
"""What is compared: paths of one task, or turns that answer the very same context."""

Choice: TypeAlias = Literal["best_worst", "best_second", "top_bottom", "opposite", "all"]
"""Which of the units of a group make pairs; each is explained at `Pairs`."""

TIE = 1e-6
"""Advantages that differ by no more are the same sum in another order."""

Anchor: TypeAlias = Literal["policy", "behaviour"]
"""What a policy is measured against: the frozen reference policy, or whoever sampled, as logged."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bundles:
    """n bundles of turns, each to be read as one text.

    Attributes:
        walk: The path view's ids.
        turn: [e] int64, the turns of the first bundle, then those of the second, and so on.
        bundle: [e] int64, ascending: which bundle.
        count: n.
    """

    walk: Walk
    turn: Int[Tensor, " e"]
    bundle: Int[Tensor, " e"]
    count: int

    def sums(self, value: Float[Tensor, " M"]) -> Float[Tensor, " n"]:
        """[n]: the sum over the tokens of each bundle."""
        of_turn = span_sums(value, self.walk.turn, len(self.walk.path_of_turn))
        return span_sums(of_turn[self.turn], self.bundle, self.count)

    def means(self, value: Float[Tensor, " M"]) -> Float[Tensor, " n"]:
        """[n]: the mean over the tokens of each bundle."""
        return self.sums(value) / self.sums(torch.ones_like(value))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """n things, of which those of one group may be compared.

    Attributes:
        walk: The path view's ids.
        group: [n] int64, 0 to g - 1.
        worth: [n] float64, the mean advantage.
        first: [n] int64, the first turn.
        turns: [n] int64, how many turns, which lie together.
        of_turn: [K] int64, the unit of each turn of the path view.
    """

    walk: Walk
    group: Int[Tensor, " n"]
    worth: Float[Tensor, " n"]
    first: Int[Tensor, " n"]
    turns: Int[Tensor, " n"]
    of_turn: Int[Tensor, " K"]

    def bundles(self) -> Bundles:
        """All of each."""
        return _bundles(self.walk, self.first, self.turns)

    def rivals(self) -> tuple[Int[Tensor, " r"], Int[Tensor, " r"]]:
        """Every two different units of one group, in both orders."""
        order, size = self.group.argsort(stable=True), self.group.bincount()
        begin, peers = (each[self.group[order]] for each in (size.cumsum(0) - size, size))
        one = order.repeat_interleave(peers)
        other = order[begin.repeat_interleave(peers) + _places(peers)]
        return one[one != other], other[one != other]

    def ranks(self, score: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
        """[n]: place of each in its group by score, 1 for the highest; of equal scores the worthier comes first."""
        order = self._sorted(score)
        ranks = torch.empty_like(self.group)
        ranks[order] = _places(self.group.bincount()) + 1
        return ranks

    def _sorted(self, score: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Group by group, the highest score first, then the highest worth."""
        order = self.worth.argsort(descending=True, stable=True)
        order = order[score[order].argsort(descending=True, stable=True)]
        return order[self.group[order].argsort(stable=True)]

    def leads_to(self, end: int) -> Bool[Tensor, " n"]:
        """[n]: whether some path through each ended with `end`: 1 success, -1 without success.

        Raises:
            ValueError: when the path view lacks the ends of paths.
        """
        if self.walk.end is None:
            raise ValueError("Pairs.ends: got columns without the ends of paths; need `walk.end`, or ends=False")
        there = (self.walk.end == end)[self.walk.path_of_turn]
        return torch.zeros_like(self.group).index_add(0, self.of_turn, there.long()) > 0

    def top_over_bottom(
        self, won: Int[Tensor, " r"], lost: Int[Tensor, " r"], gap: float, ends: bool
    ) -> Bool[Tensor, " r"]:
        """Which rivals are one of the two best over one of the two worst; four where the other side has one.

        The best are chosen among those that lead to a success with `ends`, else among those that beat another; the
        worst among those that lead to a failure, or that another beats.
        """
        beats = self.worth[won] - self.worth[lost] > gap
        if ends:
            can_win, can_lose = self.leads_to(1), self.leads_to(-1)
        else:
            can_win, can_lose = (torch.zeros_like(self.group).index_add(0, at, beats.long()) > 0 for at in (won, lost))
        groups = len(self.group.bincount())
        winners, losers = (self.group[can].bincount(minlength=groups) for can in (can_win, can_lose))
        from_top = self.ranks(self.worth.where(can_win, -torch.inf))
        from_bottom = self.ranks((-self.worth).where(can_lose, -torch.inf))
        top = can_win & (from_top <= torch.where(losers == 1, 4, 2)[self.group])
        bottom = can_lose & (from_bottom <= torch.where(winners == 1, 4, 2)[self.group])
        return beats & top[won] & bottom[lost]

    def extremes(self, choice: Choice, gap: float) -> tuple[Int[Tensor, " g"], Int[Tensor, " g"]]:
        """The best of each group, and the worst or the best of those that are worse."""
        order, size = self._sorted(self.worth), self.group.bincount()
        begin, where = size.cumsum(0) - size, self.group[order]
        if choice == "best_worst":
            return order[begin], order[begin + size - 1]
        as_good = self.worth[order] >= (self.worth[order[begin]] - gap)[where]
        next_one = begin + span_sums(as_good.double(), where, len(size)).long()
        return order[begin], order[next_one.minimum(begin + size - 1)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Duels:
    """N pairs of units of one group.

    Attributes:
        units: What is compared.
        won: [N] int64, which units were better.
        lost: [N] int64, than which.
        winner: N bundles: what a winner has after all turns that it shares with the loser.
        loser: The same of the losers.
        gap: [N], by how much the advantages differ.
    """

    units: Units
    won: Int[Tensor, " N"]
    lost: Int[Tensor, " N"]
    winner: Bundles
    loser: Bundles
    gap: Float[Tensor, " N"]

    def lead(self, columns: Columns, anchor: Anchor = "policy") -> Float[Tensor, " N"]:
        """How much further from the reference the policy has moved toward the winner than toward the loser, nats.

            (log p(winner) - log reference(winner)) - (log p(loser) - log reference(loser))

        Raises:
            ValueError: when `columns.reference` is missing, and is the anchor.
        """
        moved = moved_from_reference(columns) if anchor == "policy" else columns.logprob - columns.behaviour
        return self.winner.sums(moved) - self.loser.sums(moved)

    def doubt(self) -> Float[Tensor, " N"]:
        """How likely each preference is the wrong way round, by how often a search came to its two sides.

        With N the visits of where winner and loser lead (MCTS-DPO, arXiv 2405.00451): 1 - 1 / (1 + N_loser /
        max(1, N_winner)), at most a half. 7 against 1: .125.
        """
        visits = self._visits(self.winner), self._visits(self.loser)
        ratio = visits[1] / visits[0].clamp(min=1)
        return (ratio / (1 + ratio)).clamp(max=0.5)

    def _visits(self, side: Bundles) -> Float[Tensor, " N"]:
        """Of where each side's first turn leads; an answer that was written several times has most of them."""
        walk = self.units.walk
        first = side.turn[torch.searchsorted(side.bundle, torch.arange(side.count, device=side.turn.device))]
        if walk.visits is None or walk.answer is None:
            return self.gap.new_zeros(side.count) if walk.visits is None else walk.visits[first].to(self.gap.dtype)
        answer = _numbered(walk.answer)
        most = walk.visits.new_zeros(len(answer)).scatter_reduce(0, answer, walk.visits, "amax")
        return most[answer[first]].to(self.gap.dtype)

    def mean(self, value: Float[Tensor, " N"]) -> Float[Tensor, ""]:
        """Each pair alike; 0 when there are none."""
        return value.sum() / max(1, len(value))

    def loss(self, value: Float[Tensor, ""], margin: Float[Tensor, " N"]) -> Loss:
        """A loss, and about the pairs: how many, in how many the margin is on the winner's side, its mean."""
        margin = margin.detach()
        return Loss(
            value=value,
            metrics={
                "pairs": margin.new_tensor(float(len(margin))),
                "pair_accuracy": self.mean((margin > 0).to(margin.dtype)),
                "pair_margin": self.mean(margin),
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Preferences from advantages: of two paths of a task, or two answers in one place, the better one is preferred.

    A path is worth the mean advantage of its turns, an answer the mean advantage of the turns with these words in this
    place: one that several paths share, or that was written several times, is one answer. Four paths of a task:

        advantage      1  1  0  -1
        best_worst     the first over the fourth
        best_second    the first over the third, the best of those that are worse
        opposite       the first and the second, above 0, each over the fourth, below 0
        all            the first and the second each over the third and the fourth, the third over the fourth
        top_bottom     the first and the second each over the third and the fourth

    The last takes the two best of those that beat another and the two worst of those that another beats, four where the
    other side has but one, each of the best over each of the worst that is worse. With `ends` the best are those of
    the answers that lead to a success, the worst those of the answers that lead to a failure; one answer may do both
    (rStar-Math, arXiv 2501.04519).

    Of two paths, what counts is what each has after the turns they share. A pair of which nothing is left on one side
    is no pair. No pairs, as where all tie: the loss is 0.

    Attributes:
        unit: What is compared: "path", or "turn" for answers. Answers compete where a tree forks, and in chains at
            their first turn.
        choice: Which pairs of a group.
        gap: Advantages that differ by no more tie, >= 0.
        ends: Whether the better one must lead to a success, and the worse one to an end without success. A path
            abandoned by the explorer has no end. With "best_worst" and "best_second" the pair is chosen first.
    """

    unit: Unit = "path"
    choice: Choice = "best_worst"
    gap: float = TIE
    ends: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.gap < math.inf:
            raise ValueError(f"Pairs.gap: got {self.gap}; need 0 or more")

    def __call__(self, columns: Columns, who: str) -> Duels:
        """The pairs of an optimizer step.

        Args:
            columns: In the path view.
            who: Is named when they are not.
        """
        units = units_of(columns, self.unit, who)
        if self.choice in ("best_worst", "best_second"):
            won, lost = units.extremes(self.choice, self.gap)
        else:
            won, lost = units.rivals()
            if self.choice == "top_bottom":
                stays = units.top_over_bottom(won, lost, min(self.gap, TIE), self.ends)
                won, lost = won[stays], lost[stays]
        worth = units.worth
        apart = worth[won] - worth[lost] > self.gap
        if self.choice == "opposite":
            apart &= (worth[won] > 0) & (worth[lost] < 0)
        if self.ends:
            apart &= units.leads_to(1)[won] & units.leads_to(-1)[lost]
        won, lost = won[apart], lost[apart]
        shared = _shared(units, won, lost)
        differ = (units.turns[won] > shared) & (units.turns[lost] > shared)
        won, lost, shared = won[differ], lost[differ], shared[differ]
        return Duels(
            units=units,
            won=won,
            lost=lost,
            winner=_bundles(units.walk, units.first[won] + shared, units.turns[won] - shared),
            loser=_bundles(units.walk, units.first[lost] + shared, units.turns[lost] - shared),
            gap=(worth[won] - worth[lost]).to(columns.logprob.dtype),
        )


def units_of(columns: Columns, unit: Unit, who: str) -> Units:
    """What may be compared in an optimizer step.

    Raises:
        ValueError: when the columns are not in the path view.
    """
    walk = walk_of(columns, who)
    turns, paths = len(walk.path_of_turn), len(walk.task)
    of_turn = span_means(columns.advantage.detach().double(), walk.turn, turns)
    if unit == "path":
        count = walk.path_of_turn.bincount(minlength=paths)
        worth = span_means(of_turn, walk.path_of_turn, paths)
        return Units(
            walk=walk,
            group=_numbered(walk.task),
            worth=worth,
            first=count.cumsum(0) - count,
            turns=count,
            of_turn=walk.path_of_turn,
        )
    numbers = torch.arange(turns, device=walk.turn.device)
    answer = numbers if walk.answer is None else _numbered(walk.answer)
    count = answer.bincount()
    first = torch.full_like(count, turns).scatter_reduce(0, answer, numbers, "amin")
    return Units(
        walk=walk,
        group=_numbered(walk.fork[first]),
        worth=span_means(of_turn, answer, len(count)),
        first=first,
        turns=torch.ones_like(first),
        of_turn=answer,
    )


def moved_from_reference(columns: Columns) -> Float[Tensor, " M"]:
    """[M]: how much likelier than under the reference each token has become, nats.

    Raises:
        ValueError: when `columns.reference` is missing.
    """
    if columns.reference is None:
        raise ValueError("got columns without `reference`; need log-probabilities of the reference policy")
    return columns.logprob - columns.reference


def _shared(units: Units, one: Int[Tensor, " N"], other: Int[Tensor, " N"]) -> Int[Tensor, " N"]:
    """[N]: how many turns both begin with. Paths that have parted never meet again."""
    most = units.turns[one].minimum(units.turns[other])
    pair, place = torch.arange(len(one), device=one.device).repeat_interleave(most), _places(most)
    left, right = (units.first[side][pair] + place for side in (one, other))
    answer = units.walk.answer
    same: Bool[Tensor, " e"] = left == right if answer is None else answer[left] == answer[right]
    return torch.zeros_like(most).index_add(0, pair, same.long())


def _bundles(walk: Walk, first: Int[Tensor, " n"], turns: Int[Tensor, " n"]) -> Bundles:
    """From first turns and numbers of turns."""
    bundle = torch.arange(len(first), device=first.device).repeat_interleave(turns)
    return Bundles(walk=walk, turn=first[bundle] + _places(turns), bundle=bundle, count=len(first))


def _numbered(ids: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """The same ids numbered 0, 1, ..., in their order."""
    order, number = ids.argsort(stable=True), torch.empty_like(ids)
    rises = (ids[order].diff() > 0).long()
    number[order] = torch.cat([rises.new_zeros(min(1, len(ids))), rises]).cumsum(0)
    return number


def _places(length: Int[Tensor, " r"]) -> Int[Tensor, " n"]:
    """0, 1, ... (length[0] of them), then 0, 1, ... (length[1] of them), and so on."""
    begin = (length.cumsum(0) - length).repeat_interleave(length)
    return torch.arange(len(begin), device=length.device) - begin
