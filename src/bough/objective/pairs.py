"""Preference pairs from advantages: of paths of a task, or of responses to one context."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from jaxtyping import Bool, Float, Int

from bough.lazy import Tensor, torch
from bough.objective.inputs import LossInputs, PathIds
from bough.objective.most_visited import most_visited_contexts
from bough.objective.objective import Loss
from bough.objective.spans import path_ids_of, span_means, span_sums
from bough.piece import AtLeast, piece

Unit: TypeAlias = Literal["path", "turn"]
"""The candidates: paths of one task, or turns with exactly the same context."""

Choice: TypeAlias = Literal["best_worst", "best_second", "top_bottom", "opposite", "all"]
"""The pairs of a group; each choice is explained at `Pairs`."""

Below: TypeAlias = Literal["all", "most_visited"]
"""The contexts with pairs; see `Pairs`."""

TIE = 1e-6
"""Advantages within this distance tie: they are the same sum in another order."""

Anchor: TypeAlias = Literal["policy", "rollout"]
"""The reference of the log ratios: the frozen reference policy, or the rollout policy as logged."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnSets:
    """n sets of turns, each one text.

    Attributes:
        path_ids: The path view's ids.
        turn: [e] int64, the turns of the first set, then those of the second, and so on.
        set_id: [e] int64, ascending: the set of each turn.
        count: n.
    """

    path_ids: PathIds
    turn: Int[Tensor, " e"]
    set_id: Int[Tensor, " e"]
    count: int

    def sums(self, value: Float[Tensor, " M"]) -> Float[Tensor, " n"]:
        """[n]: the sum over the tokens of each set."""
        of_turn = span_sums(value, self.path_ids.turn, len(self.path_ids.path_of_turn))
        return span_sums(of_turn[self.turn], self.set_id, self.count)

    def means(self, value: Float[Tensor, " M"]) -> Float[Tensor, " n"]:
        """[n]: the mean over the tokens of each set."""
        return self.sums(value) / self.sums(torch.ones_like(value))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """n candidates, compared within groups.

    Attributes:
        path_ids: The path view's ids.
        group: [n] int64, 0 to g - 1.
        score: [n] float64, the mean advantage.
        first: [n] int64, the first turn.
        turns: [n] int64, number of turns, which lie together.
        candidate_of_turn: [K] int64, the candidate of each turn of the path view.
    """

    path_ids: PathIds
    group: Int[Tensor, " n"]
    score: Float[Tensor, " n"]
    first: Int[Tensor, " n"]
    turns: Int[Tensor, " n"]
    candidate_of_turn: Int[Tensor, " K"]

    def turn_sets(self) -> TurnSets:
        """Returns all turns of each candidate."""
        return _turn_sets(self.path_ids, self.first, self.turns)

    def rivals(self) -> tuple[Int[Tensor, " r"], Int[Tensor, " r"]]:
        """Returns every two different candidates of one group, in both orders."""
        order, size = self.group.argsort(stable=True), self.group.bincount()
        begin, peers = (each[self.group[order]] for each in (size.cumsum(0) - size, size))
        one = order.repeat_interleave(peers)
        other = order[begin.repeat_interleave(peers) + _places(peers)]
        return one[one != other], other[one != other]

    def ranks(self, score: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
        """[n]: rank of each in its group by `score`, 1 for the highest; ties are ordered by `self.score`."""
        order = self._sorted(score)
        ranks = torch.empty_like(self.group)
        ranks[order] = _places(self.group.bincount()) + 1
        return ranks

    def _sorted(self, score: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Sorts group by group, the highest `score` first, then the highest `self.score`."""
        order = self.score.argsort(descending=True, stable=True)
        order = order[score[order].argsort(descending=True, stable=True)]
        return order[self.group[order].argsort(stable=True)]

    def leads_to(self, end: int) -> Bool[Tensor, " n"]:
        """[n]: whether some path through each ended with `end`: 1 success, -1 without success.

        Raises:
            ValueError: when the path view lacks the ends of paths.
        """
        if self.path_ids.end is None:
            raise ValueError("Pairs.ends: got columns without the ends of paths; need `path_ids.end`, or ends=False")
        there = (self.path_ids.end == end)[self.path_ids.path_of_turn]
        return torch.zeros_like(self.group).index_add(0, self.candidate_of_turn, there.long()) > 0

    def top_over_bottom(
        self, won: Int[Tensor, " r"], lost: Int[Tensor, " r"], gap: float, ends: bool
    ) -> Bool[Tensor, " r"]:
        """[r]: the rivals with one of the two best over one of the two worst; four where the other side has one.

        With `ends` the best are chosen among the candidates that lead to a success, else among those with a worse
        rival; the worst among the candidates that lead to a failure, or have a better rival.
        """
        beats = self.score[won] - self.score[lost] > gap
        if ends:
            can_win, can_lose = self.leads_to(1), self.leads_to(-1)
        else:
            can_win, can_lose = (torch.zeros_like(self.group).index_add(0, at, beats.long()) > 0 for at in (won, lost))
        groups = len(self.group.bincount())
        winners, losers = (self.group[can].bincount(minlength=groups) for can in (can_win, can_lose))
        from_top = self.ranks(self.score.where(can_win, -torch.inf))
        from_bottom = self.ranks((-self.score).where(can_lose, -torch.inf))
        top = can_win & (from_top <= torch.where(losers == 1, 4, 2)[self.group])
        bottom = can_lose & (from_bottom <= torch.where(winners == 1, 4, 2)[self.group])
        return beats & top[won] & bottom[lost]

    def extremes(self, choice: Choice, gap: float) -> tuple[Int[Tensor, " g"], Int[Tensor, " g"]]:
        """Returns the best of each group, and the worst or the best of the worse ones."""
        order, size = self._sorted(self.score), self.group.bincount()
        begin, where = size.cumsum(0) - size, self.group[order]
        if choice == "best_worst":
            return order[begin], order[begin + size - 1]
        as_good = self.score[order] >= (self.score[order[begin]] - gap)[where]
        next_one = begin + span_sums(as_good.double(), where, len(size)).long()
        return order[begin], order[next_one.minimum(begin + size - 1)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreferencePairs:
    """N pairs of candidates of one group.

    Attributes:
        candidates: The candidates.
        won: [N] int64, the winners.
        lost: [N] int64, the losers.
        winner: N sets: the winner's turns after all turns shared with the loser.
        loser: N sets: the same of the losers.
        gap: [N], the differences of the advantages.
    """

    candidates: Candidates
    won: Int[Tensor, " N"]
    lost: Int[Tensor, " N"]
    winner: TurnSets
    loser: TurnSets
    gap: Float[Tensor, " N"]

    def margin(self, columns: LossInputs, anchor: Anchor = "policy") -> Float[Tensor, " N"]:
        """Returns the log ratio to the reference of the winner minus that of the loser, nats.

            (log p(winner) - log reference(winner)) - (log p(loser) - log reference(loser))

        Raises:
            ValueError: when `columns.reference` is missing, and is the anchor.
        """
        moved = moved_from_reference(columns) if anchor == "policy" else columns.logprob - columns.rollout_logprob
        return self.winner.sums(moved) - self.loser.sums(moved)

    def label_smoothing(self) -> Float[Tensor, " N"]:
        """Returns the probability that each preference is reversed, from the search's visit counts of its two sides.

        With N the visits of the states after winner and loser (MCTS-DPO, arXiv 2405.00451): 1 - 1 / (1 + N_loser /
        max(1, N_winner)), at most a half. 7 against 1: .125.
        """
        visits = self._visits(self.winner), self._visits(self.loser)
        ratio = visits[1] / visits[0].clamp(min=1)
        return (ratio / (1 + ratio)).clamp(max=0.5)

    def _visits(self, side: TurnSets) -> Float[Tensor, " N"]:
        """Visits of the state after each side's first turn; a response sampled several times has their maximum."""
        path_ids = self.candidates.path_ids
        first = side.turn[torch.searchsorted(side.set_id, torch.arange(side.count, device=side.turn.device))]
        if path_ids.visits is None or path_ids.response_id is None:
            return (
                self.gap.new_zeros(side.count) if path_ids.visits is None else path_ids.visits[first].to(self.gap.dtype)
            )
        response_id = _numbered(path_ids.response_id)
        most = path_ids.visits.new_zeros(len(response_id)).scatter_reduce(0, response_id, path_ids.visits, "amax")
        return most[response_id[first]].to(self.gap.dtype)

    def mean(self, value: Float[Tensor, " N"]) -> Float[Tensor, ""]:
        """Averages over pairs; 0 when there are none."""
        return value.sum() / max(1, len(value))

    def loss(self, value: Float[Tensor, ""], margin: Float[Tensor, " N"]) -> Loss:
        """Returns a loss with the metrics of the pairs: their number, accuracy and mean margin."""
        margin = margin.detach()
        return Loss(
            value=value,
            metrics={
                "pairs": margin.new_tensor(float(len(margin))),
                "pair_accuracy": self.mean((margin > 0).to(margin.dtype)),
                "pair_margin": self.mean(margin),
            },
        )


@piece
class Pairs:
    """Preferences from advantages: of two paths of a task, or two responses to one context, the better is preferred.

    The score of a path is the mean advantage of its turns, that of a response the mean over the turns with
    its tokens and its context: a response shared by paths, or sampled several times, counts once. Four paths of a task:

        advantage      1  1  0  -1
        best_worst     the first over the fourth
        best_second    the first over the third, the best of the worse ones
        opposite       the first and the second, above 0, each over the fourth, below 0
        all            the first and the second each over the third and the fourth, the third over the fourth
        top_bottom     the first and the second each over the third and the fourth

    The last takes the two best of those with a worse rival and the two worst of those with a better one, four where the
    other side has only one, and pairs each of the best with each of the worst that is worse. With `ends` the best are
    among the responses that lead to a success, the worst among the ones with a failure; a response may have both
    (rStar-Math, arXiv 2501.04519).

    Of two paths, only the turns after the shared ones are compared. A pair with an empty side is dropped. Without
    pairs, as in a tie, the loss is 0.

    Attributes:
        unit: The candidates: "path", or "turn" for responses. Responses compete where a tree forks, and in chains at
            their first turn.
        choice: The pairs of a group.
        gap: Advantages with a difference up to this tie, >= 0.
        ends: Whether the better one must lead to a success, and the worse one to an end without success. A path
            abandoned by the explorer has no end. With "best_worst" and "best_second" the pair is chosen first.
        below: The contexts whose responses are compared: "all"; or, as by the option "vis_count" of rStar-Math's
            release, "most_visited": the first of a task, and each one after the most visited of the responses to one of
            these that lead to ends of both kinds. With unit="turn".
    """

    unit: Unit = "path"
    choice: Choice = "best_worst"
    gap: Annotated[float, AtLeast(0, "0 or more")] = TIE
    ends: bool = False
    below: Below = "all"

    def __post_init__(self) -> None:
        if self.below != "all" and self.unit != "turn":
            raise ValueError(f"Pairs.below: got {self.below!r} with unit={self.unit!r}; need unit='turn'")

    def __call__(self, columns: LossInputs, who: str, score: Float[Tensor, " M"] | None = None) -> PreferencePairs:
        """Returns the pairs of an optimizer step.

        Args:
            columns: In the path view.
            who: Name for the error without a path view.
            score: [M], in place of the advantages; a candidate with a nan is in no pair.
        """
        candidates = candidates_of(columns, self.unit, who, score)
        if self.choice in ("best_worst", "best_second"):
            won, lost = candidates.extremes(self.choice, self.gap)
        else:
            won, lost = candidates.rivals()
            if self.choice == "top_bottom":
                stays = candidates.top_over_bottom(won, lost, min(self.gap, TIE), self.ends)
                won, lost = won[stays], lost[stays]
        score = candidates.score
        is_pair = score[won] - score[lost] > self.gap
        if self.choice == "opposite":
            is_pair &= (score[won] > 0) & (score[lost] < 0)
        if self.ends:
            is_pair &= candidates.leads_to(1)[won] & candidates.leads_to(-1)[lost]
        if self.below == "most_visited":
            mixed = candidates.leads_to(1) & candidates.leads_to(-1)
            path_ids, of_turn = candidates.path_ids, candidates.candidate_of_turn
            is_pair &= most_visited_contexts(path_ids, of_turn, candidates.group, mixed)[candidates.group[won]]
        won, lost = won[is_pair], lost[is_pair]
        shared = _shared(candidates, won, lost)
        differ = (candidates.turns[won] > shared) & (candidates.turns[lost] > shared)
        won, lost, shared = won[differ], lost[differ], shared[differ]
        return PreferencePairs(
            candidates=candidates,
            won=won,
            lost=lost,
            winner=_turn_sets(candidates.path_ids, candidates.first[won] + shared, candidates.turns[won] - shared),
            loser=_turn_sets(candidates.path_ids, candidates.first[lost] + shared, candidates.turns[lost] - shared),
            gap=(score[won] - score[lost]).to(columns.logprob.dtype),
        )


def candidates_of(columns: LossInputs, unit: Unit, who: str, score: Float[Tensor, " M"] | None = None) -> Candidates:
    """Returns the candidates of an optimizer step, with the means of their advantages or of another score.

    Raises:
        ValueError: when the columns are not in the path view.
    """
    path_ids = path_ids_of(columns, who)
    turns, paths = len(path_ids.path_of_turn), len(path_ids.task)
    of_token = columns.advantage if score is None else score
    of_turn = span_means(of_token.detach().double(), path_ids.turn, turns)
    if unit == "path":
        count = path_ids.path_of_turn.bincount(minlength=paths)
        return Candidates(
            path_ids=path_ids,
            group=_numbered(path_ids.task),
            score=span_means(of_turn, path_ids.path_of_turn, paths),
            first=count.cumsum(0) - count,
            turns=count,
            candidate_of_turn=path_ids.path_of_turn,
        )
    numbers = torch.arange(turns, device=path_ids.turn.device)
    response_id = numbers if path_ids.response_id is None else _numbered(path_ids.response_id)
    count = response_id.bincount()
    first = torch.full_like(count, turns).scatter_reduce(0, response_id, numbers, "amin")
    return Candidates(
        path_ids=path_ids,
        group=_numbered(path_ids.context_id[first]),
        score=span_means(of_turn, response_id, len(count)),
        first=first,
        turns=torch.ones_like(first),
        candidate_of_turn=response_id,
    )


def rstar_pairs(gap: float, below: Below = "all") -> Pairs:
    """Returns the pairs of rStar-Math (arXiv 2501.04519): the two best responses to a context over the two worst.

    The better one leads to a correct end and the worse one to a wrong end, among other ends.

    Args:
        gap: Least difference of their values.
        below: See `Pairs`.
    """
    # The tolerance of a tie is subtracted: the values of a pair differ by more than its gap.
    return Pairs(unit="turn", choice="top_bottom", gap=max(TIE, gap - TIE), ends=True, below=below)


def moved_from_reference(columns: LossInputs) -> Float[Tensor, " M"]:
    """[M]: log ratio of each token's probability to the reference, nats.

    Raises:
        ValueError: when `columns.reference` is missing.
    """
    if columns.reference is None:
        raise ValueError("got columns without `reference`; need log-probabilities of the reference policy")
    return columns.logprob - columns.reference


def _shared(candidates: Candidates, one: Int[Tensor, " N"], other: Int[Tensor, " N"]) -> Int[Tensor, " N"]:
    """[N]: number of leading turns shared by both. Paths fork and never merge."""
    most = candidates.turns[one].minimum(candidates.turns[other])
    pair, place = torch.arange(len(one), device=one.device).repeat_interleave(most), _places(most)
    left, right = (candidates.first[side][pair] + place for side in (one, other))
    response_id = candidates.path_ids.response_id
    same: Bool[Tensor, " e"] = left == right if response_id is None else response_id[left] == response_id[right]
    return torch.zeros_like(most).index_add(0, pair, same.long())


def _turn_sets(path_ids: PathIds, first: Int[Tensor, " n"], turns: Int[Tensor, " n"]) -> TurnSets:
    """Builds turn sets from first turns and numbers of turns."""
    set_id = torch.arange(len(first), device=first.device).repeat_interleave(turns)
    return TurnSets(path_ids=path_ids, turn=first[set_id] + _places(turns), set_id=set_id, count=len(first))


def _numbered(ids: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """Renumbers the ids 0, 1, ..., in their order."""
    order, number = ids.argsort(stable=True), torch.empty_like(ids)
    rises = (ids[order].diff() > 0).long()
    number[order] = torch.cat([rises.new_zeros(min(1, len(ids))), rises]).cumsum(0)
    return number


def _places(length: Int[Tensor, " r"]) -> Int[Tensor, " n"]:
    """Concatenates ranges: 0, 1, ... (length[0] of them), then 0, 1, ... (length[1] of them), and so on."""
    begin = (length.cumsum(0) - length).repeat_interleave(length)
    return torch.arange(len(begin), device=length.device) - begin
