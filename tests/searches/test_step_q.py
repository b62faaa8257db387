"""Another model's preferences steer the actions of an agent that stays as it is."""

from dataclasses import replace

import pytest
from tests.explore.stage import Letters, grow, runner
from tests.search.test_log_ratio import Table

from bough.needs import needs_of, role
from bough.rollout import RoleModel
from bough.search import LogRatio
from bough.searches.step_q import step_q
from bough.tree import Tree


class Other(Letters):
    """Reads the same numbers as other letters."""

    def text(self, tokens: tuple[int, ...]) -> str:  # type: ignore[override]
        return super().text(tokens).upper()


def steered(q: dict[str, float], reference: dict[str, float], letters: Letters | None = None) -> tuple[Tree, Table]:
    """An agent that writes a and b alike, likelier `b`, among whose actions a Q model chooses."""
    own = Table({"a": -9.0, "b": -0.1})
    place = runner(own)
    models = {
        name: RoleModel(engine=Table(table), renderer=letters or Letters(), name=name)
        for name, table in (("q", q), ("reference", reference))
    }
    place = replace(place, agent=replace(place.agent, models=models))
    (tree,) = grow(place, step_q(samples=8)).trees
    return tree, own


@pytest.mark.parametrize(("liked", "other"), [("a", "b"), ("b", "a")])
def test_the_action_with_the_highest_q_is_executed(liked: str, other: str) -> None:
    """`other` is likelier under the Q model, and likelier still under its reference: Q is .1 * (1, -.5)."""
    tree, own = steered({liked: -3.0, other: -1.0}, {liked: -4.0, other: -0.5})
    executed = [str(tree.info[node]["text"]) for node in range(tree.nodes) if tree.valid[node] >= 0]
    assert executed == [liked] * 3
    assert tree.counts.turns == 3, "no other action is executed"
    rated = {str(info["text"]): rating for info, rating in zip(tree.info, tree.rating, strict=True) if rating == rating}
    assert rated == pytest.approx({liked: 0.1, other: -0.05})
    assert not own.scored, "the agent's own likelihood has no effect"


def test_what_it_needs_and_that_its_models_read_the_same_tokens() -> None:
    assert needs_of(step_q()) == {*needs_of(LogRatio(model="q")), *step_q().needs}
    assert {role("q"), role("reference")} <= needs_of(step_q())
    with pytest.raises(ValueError, match="got a model for the role 'q' that reads the policy's tokens as other text"):
        steered({"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 0.0}, Other())
