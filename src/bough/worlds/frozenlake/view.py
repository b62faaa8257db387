"""The lake as a picture, for the viewer."""

from bough.env import Env, State
from bough.env.state_value import value_of
from bough.env.svg import grid
from bough.worlds.frozenlake.env import LakeState

CELLS = {
    "S": ("#dcebf5", ""),
    "F": ("#dcebf5", ""),
    "H": ("#3f5870", ""),
    "G": ("#d9ead9", "⚑"),
    "P": ("#fff3c9", "☺"),
}


def view_state(env: Env, state: State) -> str:
    """Returns the ice, the holes, the goal and the agent, as SVG."""
    del env
    walk = value_of(state, LakeState, "FrozenLake")
    rows = [[*row] for row in walk.rows]
    rows[walk.cell[0]][walk.cell[1]] = "P"
    return grid(["".join(row) for row in rows], CELLS)
