"""Games of OpenSpiel in text, with a seat for each player (arXiv 1908.09453)."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Annotated, Any, cast

from bough.env.adapters.openspiel import (
    GameTexts,
    Position,
    apply,
    first_position,
    load_game,
    reach,
    solution,
    suggest_move,
)
from bough.env.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, piece
from bough.tree import Outcome, Task

SIMULATIONS = 500
"""Games that the oracle simulates for a move in a game that is not solved."""


@piece
class OpenSpiel:
    """A game of OpenSpiel (arXiv 1908.09453): the players are the seats `player_0`, `player_1`, ...

    A seat observes the board, or its own information state where something is hidden, and the legal moves. The answer
    is one of the moves. At the end each seat gets its payoff in the game. A seat succeeds when it wins: its payoff is
    the largest, and larger than another seat's. In a game with one payoff for all, and in a game for one player,
    success is the maximum payoff.

    Chance is a function of the task's seed and the moves so far: the same moves lead to the same cards and dice. A task
    of a game without chance is a position after `opening` random moves, and the position decides its split; mirror
    images count as different. A task of a game with chance is a seed: the deals of a small game recur in every split.

    The oracle plays perfectly in small games without chance and hidden information. Among equal moves it prefers the
    best against a random opponent. In larger ones without hidden information it is Monte-Carlo tree search.

    Attributes:
        game: The game in OpenSpiel's notation: `tic_tac_toe`, `connect_four(rows=4,columns=5)`. Players of games with
            simultaneous moves act in turn.
        opening: Number of random moves before the first turn of a task; None for two moves in a game without chance,
            and none in any other.
        forfeit_after: Number of invalid actions with which a seat forfeits: it gets the game's minimum payoff. With 0
            no seat forfeits, and an invalid action changes nothing.
        show_moves: Whether the observation lists the legal moves.
        spaced: Whether spaces separate the characters of the board, so that each cell is a token of its own.

    Raises:
        ValueError: when a number is negative.
    """

    game: str = "tic_tac_toe"
    opening: Annotated[int | None, AtLeast(0)] = None
    forfeit_after: Annotated[int, AtLeast(0)] = 1
    show_moves: bool = True
    spaced: bool = False
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The name of the game, and the form of an answer."""
        return f"You play {self.texts.title}. Answer with one legal move."

    @property
    def seats(self) -> Mapping[str, str]:
        """One seat for each player."""
        return {f"player_{player}": f"You are player {player}." for player in range(self._game.num_players())}

    @property
    def texts(self) -> GameTexts:
        """The properties of the game, and the texts of its states."""
        return GameTexts(self._game)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different positions or seeds of a split.

        Raises:
            ValueError: when the split has fewer, or a game with chance has an opening.
        """
        texts = self.texts
        opening = (2 if texts.is_deterministic else 0) if self.opening is None else self.opening
        if opening and not texts.is_deterministic:
            raise ValueError(f"OpenSpiel.opening: got {opening} for {self.game}, a game with chance; need 0")
        found = draw_instances(
            name=f"OpenSpiel {self.game}",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, game=self.game, opening=opening),
            content=_content,
            accept=_is_open,
        )
        return [
            instance_task(
                name=self.game.partition("(")[0],
                content=each.content,
                data={"game": self.game, "moves": list(each.moves)}
                | ({} if each.seed is None else {"chance_seed": each.seed}),
            )
            for each in found
        ]

    def start(self, task: Task) -> State:
        """Returns the position of a task.

        The task's data may have the `chance_seed`, its first outcomes as `chance`, and `moves` to begin with.

        Raises:
            ValueError: when the task is one of another game, or has impossible moves.
        """
        if task.data.get("game") != self.game:
            raise ValueError(f"OpenSpiel: task {task.id} has the game {task.data.get('game')!r}; need {self.game!r}")
        moves, chance = (tuple(map(int, cast("list[int]", task.data.get(name, ())))) for name in ("moves", "chance"))
        position = first_position(self.game, int(str(task.data.get("chance_seed", task.seed))), chance)
        for move in moves:
            state = reach(position)
            if state.is_terminal() or move not in state.legal_actions():
                raise ValueError(f"OpenSpiel: task {task.id} has the moves {list(moves)}; need legal ones")
            position = apply(position, state, move)
        return self.state_at(position)

    def step(self, state: State, action: str) -> Step:
        """Makes a move of the seat whose turn it is."""
        position = position_of(state)
        game = reach(position)
        if game.is_terminal() or position.forfeited >= 0:
            return self._final(position, game, state, valid=False)
        move = _move(self.texts.moves(game), action)
        if move is None:
            return self._invalid(position, game, state)
        after = apply(position, game, move)
        reached = self._state(after, game, state)
        return self._final(after, game, reached) if game.is_terminal() else Step(state=reached)

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns moves of all seats to the end by perfect play; one move by tree search in a game that is not solved.

        None in a game with hidden information, and at the end.
        """
        position = position_of(state)
        game = reach(position)
        if game.is_terminal() or position.forfeited >= 0:
            return None
        if solved := solution(self.game):
            return solved.line(game)
        move = suggest_move(self.game, game, SIMULATIONS, position.seed)
        return None if move is None else (_text_of(self.texts, game, move),)

    def state_at(self, position: Position) -> State:
        """Returns the state of a position."""
        return self._state(position, reach(position))

    @property
    def _game(self) -> Any:
        return load_game(self.game)

    def _view(self, game: Any, player: int) -> str:
        """The observation of a player, without the moves."""
        view = self.texts.view(game, player)
        return "\n".join(" ".join(line) for line in view.splitlines()) if self.spaced else view

    def _state(self, position: Position, game: Any, before: State | None = None) -> State:
        """The state of a position; a final one is that of the seat of the state before."""
        if game.is_terminal():
            seat = before.seat if before else "player_0"
            player = int(seat.removeprefix("player_"))
            return State(observation=self._view(game, player), key=f"end {game}", value=position, seat=seat)
        player, moves = int(game.current_player()), tuple(self.texts.moves(game))
        view = self._view(game, player)
        return State(
            observation=f"{view}\nmoves: {', '.join(moves)}" if self.show_moves else view,
            key=self.texts.key(game, player),
            value=position,
            admissible=moves,
            seat=f"player_{player}",
        )

    def _invalid(self, position: Position, game: Any, state: State) -> Step:
        """Counts an invalid action; ends the game when its seat forfeits."""
        player = int(game.current_player())
        counts = tuple(count + (place == player) for place, count in enumerate(position.invalid))
        forfeits = 0 < self.forfeit_after <= counts[player]
        after = replace(position, invalid=counts, forfeited=player if forfeits else -1)
        kept = replace(state, value=after)
        return self._final(after, game, kept, valid=False) if forfeits else Step(state=kept, valid=False)

    def _final(self, position: Position, game: Any, state: State, *, valid: bool = True) -> Step:
        """The last step: the payoff and the success of each seat."""
        loser = position.forfeited
        payoffs = [float(each) for each in game.returns()] if loser < 0 else self._forfeit(loser)
        wins = [self._wins(payoffs, player) for player in range(len(payoffs))]
        return Step(
            state=state,
            outcome=Outcome.TERMINATED,
            valid=valid,
            success=wins[0],
            payoffs=dict(zip(self.seats, payoffs, strict=True)),
            successes=dict(zip(self.seats, wins, strict=True)),
        )

    def _forfeit(self, loser: int) -> list[float]:
        """The payoffs when a player forfeits; in a zero-sum game the others share its loss."""
        lowest = float(self._game.min_utility())
        lowest = lowest if isfinite(lowest) else -1.0
        count = self._game.num_players()
        other = -lowest / (count - 1) if self.texts.is_zero_sum and count > 1 else 0.0
        return [lowest if player == loser else other for player in range(count)]

    def _wins(self, payoffs: list[float], player: int) -> bool:
        if self.texts.is_shared or len(payoffs) == 1:
            return payoffs[player] >= self._game.max_utility()
        return payoffs[player] == max(payoffs) > min(payoffs)


@dataclass(frozen=True, slots=True)
class _Begin:
    """The beginning of a task: its content, the moves, and the seed of chance."""

    content: str
    moves: tuple[int, ...]
    seed: int | None = None


def _propose(rng: random.Random, *, game: str, opening: int) -> _Begin:
    """A random beginning; without moves it is a seed."""
    if not GameTexts(load_game(game)).is_deterministic:
        seed = rng.randrange(2**31)
        return _Begin(f"{game} seed {seed}", (), seed)
    position = first_position(game, 0)
    for _ in range(opening):
        position = apply(position, state := reach(position), int(rng.choice(state.legal_actions())))
        if state.is_terminal():
            return _Begin("", ())
    return _Begin(f"{game}\n{reach(position)}", tuple(position.history))


def _is_open(begin: _Begin) -> bool:
    """Whether the game goes on after the beginning."""
    return bool(begin.content)


def _content(begin: _Begin) -> str:
    return begin.content


def _move(moves: Mapping[str, int], action: str) -> int | None:
    """The move with a text; case counts only where two moves differ in it alone."""
    text = " ".join(action.split())
    if text in moves:
        return moves[text]
    same = [move for each, move in moves.items() if each.lower() == text.lower()]
    return same[0] if len(same) == 1 else None


def _text_of(texts: GameTexts, game: Any, move: int) -> str:
    return next(text for text, each in texts.moves(game).items() if each == move)


def position_of(state: State) -> Position:
    """The position of a state of `OpenSpiel`.

    Raises:
        TypeError: for a state of another environment.
    """
    return value_of(state, Position, "OpenSpiel")
