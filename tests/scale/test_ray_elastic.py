"""Ranks on a Ray cluster of several nodes: a node is missing, joins, is lost, and another one joins."""

from importlib import import_module
from typing import Any

import pytest
from tests.learner.test_rank_faults import learn_under_strike
from tests.learner.test_ranks import OBJECTIVES, Trained, batch, same
from tests.loads import tokens_of_shares
from tests.missing import need

from bough.launch import Ray
from bough.launch.ray_connect import NICENESS
from bough.learner.leading_rank import LeadingRank
from bough.learner.rank_processes import LaunchedRanks

need("ray")


def _learn_until(several: LeadingRank, joined: int) -> None:
    """Learn as one process until so many ranks have joined; then all three compute."""
    one, other, given, told = Trained.of(), Trained.of(several), batch(), list[dict[str, float]]()
    while several.events["joined"] < joined:
        told = [each.learn(given, OBJECTIVES["critic"], times=1)[0] for each in (one, other)]
    same(one, other)
    assert len(tokens_of_shares(told[1])) == 3


@pytest.mark.timeout(900)
def test_a_missing_or_lost_node_leaves_fewer_ranks_and_one_that_joins_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NICENESS, "0")
    utils: Any = import_module("ray.cluster_utils")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        notes = list[str]()
        placement = Ray(address=cluster.address, strategy="SPREAD", wait_s=15.0)
        several = LeadingRank(LaunchedRanks(3, placement, 2), notify=notes.append, update_s=120.0)
        try:
            (missing,) = notes
            assert "lost 1 of 3 ranks" in missing
            assert "no machine of the Ray cluster started it within 15 s (Ray.wait_s)" in missing
            second = cluster.add_node(num_cpus=1)
            _learn_until(several, 1)
            assert len(learn_under_strike(several, lambda: cluster.remove_node(second))) == 2
            came, again, lost = notes[1:]
            assert "1 rank joined" in came
            assert "all ranks start again" in again
            assert "lost 1 of 3 ranks" in lost
            assert "no machine of the Ray cluster started it within 15 s (Ray.wait_s)" in lost
            cluster.add_node(num_cpus=1)
            _learn_until(several, 2)
            assert several.events == {"replaced": 1, "lost": 2, "joined": 2}
        finally:
            several.close()
    finally:
        import_module("ray").shutdown()
        cluster.shutdown()
