"""Ranks have even shares of batches of real trees."""

import pytest

from bough.cli.find import find_world
from division import SHAPES, measure


@pytest.mark.parametrize("world", ["sokoban", "shop"])
def test_ranks_have_even_shares_of_four_tasks_each(world: str) -> None:
    found = measure(find_world(world))
    assert set(found) == set(SHAPES)
    assert all(share >= 0.8 for shares in found.values() for share in shares), found
