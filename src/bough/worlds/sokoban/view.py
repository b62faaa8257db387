"""The room as a picture, for the viewer."""

from bough.env import Env, State
from bough.env.state_value import value_of
from bough.env.svg import grid
from bough.worlds.sokoban.env import Room

CELLS = {
    "#": ("#6d6a63", ""),
    "_": ("#fbfaf6", ""),
    "O": ("#d9ead9", "◎"),
    "X": ("#e2b46b", "▣"),
    "*": ("#8fc48f", "▣"),
    "P": ("#fbfaf6", "☺"),
    "S": ("#d9ead9", "☺"),
}


def view_state(env: Env, state: State) -> str:
    """Returns the whole room with its walls, targets, boxes and the player, as SVG."""
    del env
    return grid(value_of(state, Room, "Sokoban").rows, CELLS)
