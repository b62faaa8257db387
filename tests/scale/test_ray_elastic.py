"""Ranks on a Ray cluster of several nodes: a node is lost, and another one joins."""

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


def test_a_lost_node_leaves_fewer_ranks_and_another_one_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NICENESS, "0")
    utils: Any = import_module("ray.cluster_utils")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1)
        notes = list[str]()
        placement = Ray(address=cluster.address, strategy="SPREAD", wait_s=15.0)
        several = LeadingRank(LaunchedRanks(3, placement, 2), notify=notes.append, update_s=120.0)
        try:
            assert len(learn_under_strike(several, lambda: cluster.remove_node(second))) == 2
            again, lost = notes
            assert "all ranks start again" in again
            assert "lost 1 of 3 ranks" in lost
            assert "no machine of the Ray cluster started it within 15 s (Ray.wait_s)" in lost
            cluster.add_node(num_cpus=1)
            one, other, given, told = Trained.of(), Trained.of(several), batch(), list[dict[str, float]]()
            while not several.events["joined"]:
                told = [each.learn(given, OBJECTIVES["critic"], times=1)[0] for each in (one, other)]
            same(one, other)
            assert len(tokens_of_shares(told[1])) == 3
        finally:
            several.close()
    finally:
        import_module("ray").shutdown()
        cluster.shutdown()
