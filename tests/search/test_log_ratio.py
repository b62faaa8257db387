"""The rating of From r to Q*, and the beam by it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.explore.stage import STOP, Letters, grow, runner, says

from bough.engine import Scripted
from bough.needs import needs_of, role
from bough.rollout import RoleModel
from bough.search import LogRatio, PathRating, SearchNode
from bough.searches.implicit_beam import implicit_beam
from bough.tree import Kind, Tree


@dataclass
class Table(Scripted):
    """An engine whose log-probability of a letter is a number of a table."""

    def __init__(self, table: dict[str, float]) -> None:
        super().__init__(script=says(lambda luck: luck.choice("ab")))
        self.table, self.scored = table, 0

    async def score(  # type: ignore[override]
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        del prompt_tokens, temperature
        self.scored += 1
        return tuple(0.0 if token == STOP else self.table[chr(token)] for token in continuation_tokens)


def beam(own: dict[str, float], reference: dict[str, float], **config: int) -> tuple[Tree, Table]:
    policy, other = Table(own), Table(reference)
    place = runner(policy)
    model = RoleModel(engine=other, renderer=Letters(), name="reference")
    place = replace(place, agent=replace(place.agent, models={"reference": model}))
    (tree,) = grow(place, implicit_beam(**config)).trees
    return tree, other


def kept(tree: Tree) -> set[str]:
    """The actions that were acted on, by what stands below them."""
    acts = np.flatnonzero(tree.kind == Kind.ACTION).tolist()
    parents = {int(tree.parent[tree.parent[node]]) for node in acts}
    return {str(tree.info[node]["text"]) for node in acts if node in parents}


def test_worked_example() -> None:
    """The policy's word for `a` is e times as likely as the reference's, and that for `b` half as likely."""
    tree, reference = beam({"a": -1.0, "b": -1.0}, {"a": -2.0, "b": -1.0 + np.log(2.0)}, width=1, samples=8)
    # Equal actions of a state are one child.
    rated = np.flatnonzero(~np.isnan(tree.rating)).tolist()
    ratings = {(str(tree.info[node]["text"]), round(float(tree.rating[node]), 5)) for node in rated}
    assert ratings == {("a", 0.1), ("b", -0.06931)}
    assert reference.scored == len(rated)


@pytest.mark.parametrize(("liked", "other"), [("a", "b"), ("b", "a")])
def test_the_beam_stays_where_the_policy_moved_to_and_not_where_it_is_likely(liked: str, other: str) -> None:
    """`other` is likelier under the policy, and likelier still under the reference."""
    tree, _ = beam({liked: -3.0, other: -0.1}, {liked: -4.0, other: -0.01}, width=1, samples=8)
    assert kept(tree) == {liked}


def test_ratings_add_up_along_a_path() -> None:
    root = SearchNode(number=0, parent=None)
    one = SearchNode(number=1, parent=root, rating=0.2)
    two = SearchNode(number=2, parent=one, rating=-0.5)
    assert (PathRating()(root), PathRating()(one), PathRating()(two)) == (0, 0.2, pytest.approx(-0.3))


def test_what_it_needs() -> None:
    assert needs_of(LogRatio()) == {role("reference")}
    assert role("old") in needs_of(implicit_beam(role="old"))
    with pytest.raises(ValueError, match=r"LogRatio.beta: got 0.0; need a number above 0"):
        LogRatio(beta=0.0)
