"""The settings of every published search as a snapshot: a changed default is a line in review."""

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.settings import Settings, settings
from tests.small import run

from bough.config import override
from bough.config.naming import exported

PUBLISHED = sorted({name for name, _ in exported("bough.searches")} - {"best_of_n"})
"""`best_of_n` needs a folder."""
WITH_ARGUMENTS = (
    "agent_q(width=2,share=0.3,c=2.0)",
    "agent_swift(width=1,evaluations=5,optimism=2.0)",
    "board_games(width=2,simulations=5,c=2.0,moves=7)",
    "code_tree(width=2,programs=5)",
    "cr_planner(kinds=[a,b],samples=2)",
    "doraemon(answers=2,decay=0.3,sharpness=2.0,width=5)",
    "ets(width=3,temperature=0.5,cost=0.7,spread=0.9)",
    "i_mcts(width=2,rounds=3)",
    "implicit_beam(width=2,samples=3,beta=0.3,role=old)",
    "mps_prover(width=2,cases=case)",
    "q_star(weight=0.5,discount=0.8,rounds=7)",
    "q_star(width=3)",
    "rethink(width=2,rounds=5)",
    "web_pilot(width=2,c=3.0,rounds=4,revisions=1)",
)
"""Arguments that reach the pieces."""


@pytest.mark.parametrize("search", [*PUBLISHED, *WITH_ARGUMENTS])
def test_settings(search: str, snapshot: SnapshotAssertion) -> None:
    explorer = override(run(), [f"explorer={search}"]).method.explorer
    assert settings(explorer) == snapshot(extension_class=Settings)
