"""Perfect play in small games, and tree search in larger ones."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bough.env.adapters.openspiel.game import GameTexts, load_game, pyspiel

MOST_STATES = 12_000
"""Games with more states are not solved."""
MOST_MOVES = 400
"""Games that can last longer are not solved: the solver is recursive."""


class _TooLarge(Exception):
    """The game has too many states, or states that recur."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a state for player 0.

    Attributes:
        perfect: The value with perfect play of all.
        chances: The value by player, when this player plays perfectly and the others uniformly at random.
    """

    perfect: float
    chances: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Solution:
    """A solved game: deterministic, of perfect information, for one player or a zero-sum one for two.

    Attributes:
        texts: The game and the texts of its states.
        values: The values of the states, by player and text.
    """

    texts: GameTexts
    values: dict[str, Value] = field(default_factory=dict[str, Value])

    def best(self, state: Any) -> int:
        """The best move: of maximum value with perfect play; among equals the best against uniformly random players."""
        player = state.current_player()
        sign = 1.0 if player == 0 else -1.0
        return max(
            map(int, state.legal_actions()),
            key=lambda move: _rank(self.values[_name(self.texts, state.child(move))], player, sign),
        )

    def value(self, state: Any) -> float:
        """The value of a state for player 0 with perfect play of all."""
        return self.values[_name(self.texts, state)].perfect

    def line(self, state: Any) -> tuple[str, ...]:
        """The moves of perfect play from a state to the end of the game, as texts."""
        state, moves = state.clone(), list[str]()
        while not state.is_terminal():
            move = self.best(state)
            moves.append(next(text for text, each in self.texts.moves(state).items() if each == move))
            state.apply_action(move)
        return tuple(moves)

    def add(self, state: Any, begun: set[str]) -> Value:
        """Computes the values of a state and of all states after it.

        Raises:
            _TooLarge: when there are too many, or a state recurs.
        """
        name = _name(self.texts, state)
        if name in self.values:
            return self.values[name]
        players = self.texts.game.num_players()
        if state.is_terminal():
            value = Value(state.returns()[0], (state.returns()[0],) * players)
        else:
            if name in begun or len(self.values) + len(begun) > MOST_STATES:
                raise _TooLarge
            begun.add(name)
            after = [self.add(state.child(move), begun) for move in state.legal_actions()]
            begun.discard(name)
            player = state.current_player()
            sign = 1.0 if player == 0 else -1.0
            best = max(after, key=lambda each: _rank(each, player, sign))
            means = [sum(each.chances[who] for each in after) / len(after) for who in range(players)]
            means[player] = best.chances[player]
            value = Value(best.perfect, tuple(means))
        self.values[name] = value
        return value


def _rank(value: Value, player: int, sign: float) -> tuple[float, float]:
    return sign * value.perfect, round(sign * value.chances[player], 12)


def _name(texts: GameTexts, state: Any) -> str:
    return f"{state.current_player()} {texts.view(state, 0)}"


@lru_cache(maxsize=16)
def solution(game: str) -> Solution | None:
    """Solves a game; None for one that is too large or of another kind."""
    loaded = load_game(game)
    texts = GameTexts(loaded)
    players = loaded.num_players()
    fits = texts.is_perfect and texts.is_deterministic and (players == 1 or (players == 2 and texts.is_zero_sum))
    if not fits or loaded.max_game_length() > MOST_MOVES:
        return None
    found = Solution(texts)
    try:
        found.add(loaded.new_initial_state(), set())
    except _TooLarge:
        return None
    return found


def suggest_move(game: str, state: Any, simulations: int, seed: int) -> int | None:
    """The move of OpenSpiel's Monte-Carlo tree search; None in a game that it cannot search.

    Args:
        game: The game.
        state: The state.
        simulations: Number of simulated games.
        seed: Seed of the simulations.
    """
    loaded, spiel = load_game(game), pyspiel()
    if not GameTexts(loaded).is_perfect or loaded.get_type().reward_model != spiel.GameType.RewardModel.TERMINAL:
        return None
    evaluator = spiel.RandomRolloutEvaluator(1, seed % 2**31)
    bot = spiel.MCTSBot(loaded, evaluator, 2.0, simulations, 64, True, seed % 2**31, False)
    return int(bot.step(state.clone()))
