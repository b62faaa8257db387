"""The shopping list as a picture, for the viewer."""

from bough.env import Env, State
from bough.env.state_value import value_of
from bough.env.svg import lines
from bough.worlds.shop.env import Purchase


def view_state(env: Env, state: State) -> str:
    """Returns the list with what is in the basket ticked, as SVG."""
    del env
    purchase = value_of(state, Purchase, "Shop")
    return lines([(thing, thing in purchase.basket) for thing in purchase.wanted])
