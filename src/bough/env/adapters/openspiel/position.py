"""Positions of a game as values: the moves so far, chance included."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from bough.env.adapters.openspiel.game import load_game


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position before a player's move, or a final one.

    Attributes:
        game: The game, in OpenSpiel's notation.
        history: All moves so far, outcomes of chance included.
        seed: Seed of chance, whose outcomes are a function of the seed and the history.
        chance: The first outcomes of chance, given in place of sampled ones.
        invalid: Number of invalid actions of each player.
        forfeited: The player that forfeited; -1 while all play.
    """

    game: str
    history: tuple[int, ...] = ()
    seed: int = 0
    chance: tuple[int, ...] = ()
    invalid: tuple[int, ...] = ()
    forfeited: int = -1


def first_position(game: str, seed: int, chance: tuple[int, ...] = ()) -> Position:
    """The position before the first player's move.

    Raises:
        ValueError: when an outcome in `chance` is impossible.
    """
    loaded = load_game(game)
    position = Position(game=game, seed=seed, chance=chance, invalid=(0,) * loaded.num_players())
    return _settle(position, loaded.new_initial_state())


def reach(position: Position) -> Any:
    """OpenSpiel's state of a position, a new object."""
    state = load_game(position.game).new_initial_state()
    for move in position.history:
        state.apply_action(move)
    return state


def apply(position: Position, state: Any, move: int) -> Position:
    """The position after a legal move and the outcomes of chance that follow it.

    Args:
        position: The position.
        state: OpenSpiel's state of it, which is changed to that of the result.
        move: The move.
    """
    state.apply_action(move)
    return _settle(position, state)


def _settle(position: Position, state: Any) -> Position:
    """Samples outcomes of chance up to the next move of a player; changes the state."""
    while state.is_chance_node():
        history = tuple(map(int, state.history()))
        outcomes = [(int(move), float(share)) for move, share in state.chance_outcomes()]
        number = sum(1 for step in state.full_history() if step.player < 0)
        if number < len(position.chance):
            move = position.chance[number]
            if move not in dict(outcomes):
                raise ValueError(
                    f"OpenSpiel: got the outcome {move} of chance after {list(history)}; need one of {dict(outcomes)}"
                )
        else:
            rng = Random(f"{position.seed} {history}")
            move = rng.choices([each for each, _ in outcomes], [share for _, share in outcomes])[0]
        state.apply_action(move)
    return replace(position, history=tuple(map(int, state.history())))
