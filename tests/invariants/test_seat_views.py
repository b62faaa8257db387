"""Every credit rule on the views of seats: finite, for the seat's own sampled tokens alone; batches train each once."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.env.nim import SECOND, Nim
from tests.rollout.test_seats import nim, tree_of
from tests.trees import dressed, each_seed, sides

from bough.batch import pack
from bough.credit import Credit, Grpo
from bough.explore import Forks
from bough.needs import needs_of
from bough.reward import EnvReward, Success, compute_rewards
from bough.tree import Rewarded, StageError, Tree, seat_view, trained
from rules import rules

RULES = rules()


@lru_cache(maxsize=64)
def views(seed: int, *, automatic: bool = False) -> list[Tree]:
    """The views of both seats of two trees that fork at the turns of either."""
    place, _ = nim(automatic=automatic, play=lambda rng: rng.choice("1122x"))
    trees = [tree_of(place, Forks(chains=2, draws=3, rounds=2), heap=heap, seed=seed) for heap in (8, 9)]
    found = [seat_view(tree, seat, name=f"{tree.task.id} as {seat}") for tree in trees for seat in Nim.seats]
    return [view for view in found if view is not None]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@each_seed
def test_a_rule_credits_the_tokens_of_the_seat(rule: Credit, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_trees = [dressed(view, rng, needs_of(rule)) for view in views(seed)]
    for credited in rule(given_trees):
        outside = ~trained(credited.tree)
        for side in sides(credited):
            assert np.isfinite(side).all()
            assert not side[outside].any()


@settings(max_examples=20)
@given(seed=st.integers(0, 11), automatic=st.booleans())
def test_a_batch_has_each_sampled_token_of_a_seat_once(seed: int, automatic: bool) -> None:
    found = views(seed, automatic=automatic)
    batch = pack(Grpo()(compute_rewards(found, [EnvReward(), Success()])))
    assert len(batch.at) == sum(int(trained(view).sum()) for view in found)
    tokens = sorted(int(token) for view in found for token in view.token[trained(view)])
    assert sorted(batch.tokens[batch.at].tolist()) == tokens


def test_a_tree_of_several_seats_is_not_rewarded() -> None:
    tree = tree_of(nim(play=lambda rng: rng.choice("12"))[0], Forks(chains=2), heap=8)
    with pytest.raises(StageError, match=r"got a tree of the seats \['first', 'second'\]; need the `seat_view`"):
        Rewarded(tree=tree, channels={})
    assert seat_view(tree, SECOND) is not None
