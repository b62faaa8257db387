"""Games of OpenSpiel: loading them, and their states as text."""

import importlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bough.nearest import unknown
from bough.version import install

COUNTERS = re.compile(r"\n?Move number: \d+|,? ?history\.size\(\)=\d+")
"""Counters of moves in the texts of some games (Mancala, Go); keys leave them out."""

FEN_MOVES = re.compile(r"^(\S+ [wb] \S+ \S+ \d+) \d+$")
"""Chess positions in Forsyth-Edwards notation, which end in the number of the move."""


def pyspiel() -> Any:
    """OpenSpiel's module, imported when first needed.

    Raises:
        ImportError: when it is not installed.
    """
    try:
        return importlib.import_module("pyspiel")
    except ImportError as error:
        raise ImportError(
            f"OpenSpiel is not installed: got no module 'pyspiel'; need {install('games')}, or without its "
            "dependencies pip install --no-deps open_spiel",
            name=error.name,
        ) from error


@lru_cache(maxsize=64)
def load_game(text: str) -> Any:
    """A game, from OpenSpiel's notation: `tic_tac_toe`, `connect_four(rows=4,columns=5)`.

    Players of games with simultaneous moves act in turn, and do not observe the moves of the same round.

    Raises:
        ImportError: when OpenSpiel is not installed.
        ValueError: when there is no such game, or its parameters are wrong, or it cannot be played in text.
    """
    spiel = pyspiel()
    name = text.partition("(")[0].strip()
    if name not in spiel.registered_names():
        raise ValueError(f"OpenSpiel.game: {unknown(name, spiel.registered_names(), 'need one of OpenSpiel')}")
    try:
        game = spiel.load_game_as_turn_based(text)
        _refuse_structs(game)
    except (RuntimeError, LookupError) as error:  # SpielError is a RuntimeError
        raise ValueError(f"OpenSpiel.game: got {text!r}: {error}; need parameters of {name}") from error
    kind = game.get_type()
    if kind.dynamics != spiel.GameType.Dynamics.SEQUENTIAL:
        raise ValueError(f"OpenSpiel.game: got {text!r}, a mean-field game; need players that act in turn")
    if kind.chance_mode == spiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(
            f"OpenSpiel.game: got {text!r}, which draws from a generator of its own; need a game with explicit chance"
        )
    if not _is_perfect(game) and not (kind.provides_information_state_string or kind.provides_observation_string):
        raise ValueError(f"OpenSpiel.game: got {text!r}, without texts for each player; need a game that has them")
    return game


def _refuse_structs(game: Any) -> None:
    """Raises OpenSpiel's error for a game whose moves have no numbers."""
    state = game.new_initial_state()
    if not state.is_chance_node():
        state.legal_actions()


def _is_perfect(game: Any) -> bool:
    return game.get_type().information == pyspiel().GameType.Information.PERFECT_INFORMATION


@dataclass(frozen=True, slots=True)
class GameTexts:
    """The properties of a game, and the texts of its states.

    Attributes:
        game: OpenSpiel's game.
    """

    game: Any

    @property
    def title(self) -> str:
        """The game's name for people."""
        return str(self.game.get_type().long_name)

    @property
    def is_perfect(self) -> bool:
        """Whether all players observe everything."""
        return _is_perfect(self.game)

    @property
    def is_deterministic(self) -> bool:
        """Whether nothing is left to chance."""
        return self.game.get_type().chance_mode == pyspiel().GameType.ChanceMode.DETERMINISTIC

    @property
    def is_zero_sum(self) -> bool:
        """Whether the payoffs of all players add to a constant."""
        kinds = pyspiel().GameType.Utility
        return self.game.get_type().utility in (kinds.ZERO_SUM, kinds.CONSTANT_SUM)

    @property
    def is_shared(self) -> bool:
        """Whether all players have the same payoff."""
        return self.game.get_type().utility == pyspiel().GameType.Utility.IDENTICAL

    def view(self, state: Any, player: int) -> str:
        """The observation of a player: the board, or the information state where something is hidden."""
        kind = self.game.get_type()
        if kind.provides_information_state_string and not (self.is_perfect and kind.provides_observation_string):
            text = state.information_state_string(player)
        elif kind.provides_observation_string:
            text = state.observation_string(player)
        else:
            text = str(state)
        return str(text).strip("\n")

    def key(self, state: Any, player: int) -> str:
        """Equal keys mean equal states for the player; without counters of moves.

        "" for a game with hidden information whose texts do not have all that a player has observed.
        """
        if not self.is_perfect and not self.game.get_type().provides_information_state_string:
            return ""
        text = FEN_MOVES.sub(r"\1", COUNTERS.sub("", self.view(state, player)))
        return f"{player} {text}"

    def moves(self, state: Any) -> dict[str, int]:
        """The legal moves by their texts; a text that occurs twice gets the number of its move."""
        player = state.current_player()
        found: dict[str, int] = {}
        for move in state.legal_actions():
            text = " ".join(str(state.action_to_string(player, move)).split())
            found[f"{text} [{move}]" if text in found else text] = int(move)
        return found
