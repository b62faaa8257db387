"""Opponents in games of OpenSpiel: perfect play, tree search, equilibria."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, cast

from bough.env.adapters.openspiel import GameTexts, Position, load_game, pyspiel, reach, solution, suggest_move
from bough.env.env import EnvFault, State


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfectPlay:
    """Plays a small game without chance and hidden information perfectly (minimax).

    Attributes:
        mistakes: Probability of a uniformly random move in place of the best one.
    """

    mistakes: float = 0.0

    def act(self, state: State, seed: int) -> str:
        """See `Script.act`.

        Raises:
            EnvFault: when the game is not solved.
        """
        position, game, moves = _opened(state, "PerfectPlay")
        rng = Random(seed)
        if rng.random() < self.mistakes:
            return rng.choice(list(moves))
        solved = solution(position.game)
        if solved is None:
            raise EnvFault(
                f"PerfectPlay: got {position.game}; need a game without chance and hidden information, of at most "
                "12,000 states; take TreeSearchPlay or EquilibriumPlay"
            )
        return _text(moves, solved.best(game))


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSearchPlay:
    """Plays by OpenSpiel's Monte-Carlo tree search (UCT) with random playouts. Needs a game without hidden information.

    Attributes:
        simulations: Number of simulated games for a move.
    """

    simulations: int = 100

    def act(self, state: State, seed: int) -> str:
        """See `Script.act`.

        Raises:
            EnvFault: when the game has hidden information, or payoffs before its end.
        """
        position, game, moves = _opened(state, "TreeSearchPlay")
        move = suggest_move(position.game, game, self.simulations, seed)
        if move is None:
            raise EnvFault(
                f"TreeSearchPlay: got {position.game}; need a game without hidden information whose payoffs come at "
                "the end; take EquilibriumPlay"
            )
        return _text(moves, move)


@dataclass(frozen=True, slots=True, kw_only=True)
class EquilibriumPlay:
    """Samples from an approximate equilibrium of a small game, computed by CFR+ (arXiv 1407.5042).

    Each process computes it once: Kuhn poker takes milliseconds, Leduc poker seconds.

    Attributes:
        iterations: Iterations of CFR+.
    """

    iterations: int = 200

    def act(self, state: State, seed: int) -> str:
        """See `Script.act`."""
        position, game, moves = _opened(state, "EquilibriumPlay")
        table = equilibrium(position.game, self.iterations)
        shares = dict(table[game.information_state_string(game.current_player())])
        return Random(seed).choices(list(moves), [shares.get(move, 0.0) for move in moves.values()])[0]


MOST_HISTORIES = 100_000
"""Largest game tree for `EquilibriumPlay`; that of Leduc poker has about 9,500 histories."""


@lru_cache(maxsize=8)
def equilibrium(game: str, iterations: int) -> Mapping[str, tuple[tuple[int, float], ...]]:
    """The average policy of CFR+: the moves and their probabilities by information state.

    Raises:
        EnvFault: when the game has no information states as text, or more than `MOST_HISTORIES` histories.
    """
    loaded = load_game(game)
    if not loaded.get_type().provides_information_state_string:
        raise EnvFault(f"EquilibriumPlay: got {game}, without information states as text; need a game that has them")
    if not _is_small(loaded.new_initial_state(), MOST_HISTORIES):
        raise EnvFault(
            f"EquilibriumPlay: got {game}, with more than {MOST_HISTORIES:,} histories; need a smaller game, such as "
            "kuhn_poker or leduc_poker, or another script: TreeSearchPlay where nothing is hidden, RandomAction"
        )
    solver = pyspiel().CFRPlusSolver(loaded)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    table = cast("dict[str, list[tuple[int, float]]]", solver.tabular_average_policy().policy_table())
    return {name: tuple((int(move), float(share)) for move, share in rows) for name, rows in table.items()}


def _is_small(start: Any, most: int) -> bool:
    """Whether at most `most` histories follow from a state of OpenSpiel."""
    left, count = [start], 0
    while left:
        count += 1
        if count > most:
            return False
        state = left.pop()
        if not state.is_terminal():
            left.extend(state.child(move) for move in state.legal_actions())
    return True


def _opened(state: State, name: str) -> tuple[Position, Any, dict[str, int]]:
    """The position of a state, OpenSpiel's state, and the legal moves by their texts."""
    if not isinstance(state.value, Position):
        raise EnvFault(f"{name}: got a state of another environment; need one of OpenSpiel")
    game = reach(state.value)
    return state.value, game, GameTexts(load_game(state.value.game)).moves(game)


def _text(moves: Mapping[str, int], move: int) -> str:
    return next(text for text, each in moves.items() if each == move)
