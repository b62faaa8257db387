"""Tournaments: which comparisons are made, and the rank that follows."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Match: TypeAlias = tuple[int, int]
"""Two different players, by number."""

Play: TypeAlias = Callable[[Sequence[Match]], Awaitable[Sequence[float | None]]]
"""Plays matches at the same time; for each by how much the first player wins, from -1 to 1, or None: undecided."""

Standing: TypeAlias = tuple[float, ...] | None
"""What players are ranked by, the larger the better; None for a player without a rank."""

Topology: TypeAlias = Literal["anchor", "round_robin", "single_elimination", "double_elimination", "swiss"]


@dataclass(slots=True)
class _Games:
    """The matches of a tournament so far.

    Attributes:
        play: Plays matches.
        scores: For each player its score in each decided match, from 0 to 1.
        tied: By player eliminated by a tie, the opponent, whose rank it shares.
        unknown: Players eliminated by an undecided match.
        level: For each player out of the tournament, the round; later is better.
    """

    play: Play
    scores: list[list[float]]
    tied: dict[int, int] = field(default_factory=dict[int, int])
    unknown: set[int] = field(default_factory=set[int])
    level: dict[int, int] = field(default_factory=dict[int, int])

    async def margins(self, matches: Sequence[Match]) -> list[float | None]:
        """The results of matches, noted for both players."""
        found = list(await self.play(matches)) if matches else []
        for (one, two), margin in zip(matches, found, strict=True):
            if margin is not None:
                self.scores[one].append((1 + margin) / 2)
                self.scores[two].append((1 - margin) / 2)
        return found

    async def knock_out(self, matches: Sequence[Match], level: int | None) -> list[tuple[int, int]]:
        """(winner, loser) of each match. The first player of a match goes on after a tie or an undecided match.

        Args:
            matches: The matches.
            level: The round in which losers are out; None if they are not.
        """
        found: list[tuple[int, int]] = []
        for (one, two), margin in zip(matches, await self.margins(matches), strict=True):
            winner, loser = (two, one) if margin is not None and margin < 0 else (one, two)
            found.append((winner, loser))
            if level is None:
                continue
            self.level[loser] = level
            if margin is None:
                self.unknown.add(loser)
            elif margin == 0:
                self.tied[loser] = winner
        return found

    def mean(self, player: int) -> float:
        """The mean score of a player; .5 before its first decided match."""
        scores = self.scores[player]
        return sum(scores) / len(scores) if scores else 0.5

    def standings(self) -> list[Standing]:
        """By the round in which a player was out, then by its mean score; one standing for players that tied."""
        lead = [self._lead(player) for player in range(len(self.scores))]
        sides = {one: [player for player, leader in enumerate(lead) if leader == one] for one in set(lead)}
        mean = {one: sum(map(self.mean, players)) / len(players) for one, players in sides.items()}
        return [
            (float(self.level[leader]), round(mean[leader], 12))
            if self.scores[player] and player not in self.unknown
            else None
            for player, leader in enumerate(lead)
        ]

    def _lead(self, player: int) -> int:
        while player in self.tied:
            player = self.tied[player]
        return player


async def standings(topology: Topology, players: int, play: Play) -> list[Standing]:
    """Play a tournament of 2 players or more.

    Args:
        topology: The matches: against the first player; all; a bracket seeded by the matches against the first player;
            a bracket that two defeats leave; or rounds between players with like scores.
        players: Number of players.
        play: Plays matches.
    """
    games = _Games(play, [[] for _ in range(players)])
    rules: Mapping[Topology, Callable[[_Games], Awaitable[list[Standing]]]] = {
        "anchor": _anchor,
        "round_robin": _round_robin,
        "single_elimination": _single_elimination,
        "double_elimination": _double_elimination,
        "swiss": _swiss,
    }
    return await rules[topology](games)


def quantiles(found: Sequence[Standing]) -> list[float | None]:
    """Ranks as quantiles: (n - rank) / (n - 1) of the n ranked players, 1 the best; players that tie share their mean.

    Standings 3, 1, 1, 0 have the quantiles 1, .5, .5, 0. Four equal ones have .5. One alone has .5.
    """
    known = [each for each in found if each is not None]

    def quantile(own: tuple[float, ...]) -> float:
        better, same = sum(each > own for each in known), sum(each == own for each in known)
        return 0.5 if len(known) == 1 else 1 - (better + (same - 1) / 2) / (len(known) - 1)

    return [None if each is None else quantile(each) for each in found]


async def _anchor(games: _Games) -> list[Standing]:
    """All players against the first, whose own score is that of a tie: n - 1 matches."""
    players = range(1, len(games.scores))
    margins = await games.margins([(player, 0) for player in players])
    decided = any(margin is not None for margin in margins)
    return [(0.0,) if decided else None, *(None if margin is None else (margin,) for margin in margins)]


async def _round_robin(games: _Games) -> list[Standing]:
    """All pairs: n (n - 1) / 2 matches."""
    players = range(len(games.scores))
    await games.margins([(one, two) for one in players for two in players[one + 1 :]])
    return [(round(games.mean(player), 12),) if games.scores[player] else None for player in players]


async def _single_elimination(games: _Games) -> list[Standing]:
    """The matches against the first player give the seeds of a bracket: 2 (n - 1) matches."""
    seeds = await _anchor(games)
    count = len(seeds)
    seeded = sorted(range(count), key=lambda player: seeds[player] or (0.0,), reverse=True)
    slots = [seeded[seed] if seed < count else None for seed in _bracket(count)]
    level = 0
    while len(slots) > 1:
        pairs = list(zip(slots[::2], slots[1::2], strict=True))
        full = [_by_seed(seeded, one, two) for one, two in pairs if one is not None and two is not None]
        won = {match: winner for match, (winner, _) in zip(full, await games.knock_out(full, level), strict=True)}
        slots = [
            (one if two is None else two) if one is None or two is None else won[_by_seed(seeded, one, two)]
            for one, two in pairs
        ]
        level += 1
    games.level[slots[0] or 0] = level
    return games.standings()


def _by_seed(seeded: Sequence[int], one: int, two: int) -> Match:
    """The better seed first."""
    return (one, two) if seeded.index(one) < seeded.index(two) else (two, one)


def _bracket(players: int) -> list[int]:
    """Seeds in the order of the first round's slots, so that the best ones meet last; the best have free rounds."""
    seeds = [0]
    while len(seeds) < players:
        size = 2 * len(seeds)
        seeds = [each for seed in seeds for each in (seed, size - 1 - seed)]
    return seeds


async def _double_elimination(games: _Games) -> list[Standing]:
    """A player with one defeat plays on among the losers, one with two is out: 2 n - 2 matches."""
    winners, losers, level = list(range(len(games.scores))), list[int](), 0
    while len(winners) > 1 or len(losers) > 1:
        dropped: list[int] = []
        if len(winners) > 1:
            matches, free = _fold(winners)
            results = await games.knock_out(matches, None)
            winners = free + [winner for winner, _ in results]
            dropped = [loser for _, loser in results]
        matches, free = _fold(losers + dropped)
        losers = free + [winner for winner, _ in await games.knock_out(matches, level)]
        level += 1
    ((winner, _),) = await games.knock_out([(winners[0], losers[0])], level)
    games.level[winner] = level + 1
    return games.standings()


def _fold(players: Sequence[int]) -> tuple[list[Match], list[int]]:
    """The first against the last and so on; the one in the middle of an odd number is free."""
    half = len(players) // 2
    matches = [(players[place], players[-1 - place]) for place in range(half)]
    return matches, [players[half]] if len(players) % 2 else []


async def _swiss(games: _Games) -> list[Standing]:
    """Players with like scores meet, no two meet twice: n / 2 matches in each of log2(n) rounds, rounded up.

    The rank is by the mean score, then by the opponents' mean scores.
    """
    players = list(range(len(games.scores)))
    met: dict[int, list[int]] = {player: [] for player in players}
    free: set[int] = set()
    for _ in range(math.ceil(math.log2(len(players)))):
        order = sorted(players, key=games.mean, reverse=True)
        if len(order) % 2:
            out = next(player for player in reversed(order) if player not in free)
            free.add(out)
            order.remove(out)
        matches = _unmet(order, met) or _fold(order)[0]
        for (one, two), margin in zip(matches, await games.margins(matches), strict=True):
            if margin is not None:
                met[one].append(two)
                met[two].append(one)
    return [
        (
            round(games.mean(player), 12),
            round(sum(map(games.mean, met[player])) / len(met[player]), 12),
        )
        if met[player]
        else None
        for player in players
    ]


def _unmet(order: Sequence[int], met: Mapping[int, Sequence[int]]) -> list[Match] | None:
    """Neighbours in the order as far as they have not met; None if there is no such pairing."""
    if not order:
        return []
    one, *others = order
    for two in others:
        if two not in met[one]:
            rest = _unmet([player for player in others if player != two], met)
            if rest is not None:
                return [(one, two), *rest]
    return None
