"""Ranks that die or hang."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
import torch
from tests.learner.test_ranks import OBJECTIVES, Trained, batch, same
from tests.loads import tokens_of_shares, without_shares
from torch.distributed.distributed_c10d import _set_pg_timeout

from bough.launch import Launched, ThisMachine
from bough.learner import rank_processes
from bough.learner.leading_rank import LeadingRank
from bough.learner.process_group import RankFault
from bough.learner.rank_processes import LaunchedRanks
from bough.objective import Loss, LossInputs, Need, Normalizer, Objective, PpoClip

PATIENCE_S = 250.0
"""More than a busy machine needs to start ranks; less than the time limit of a test."""


@dataclass(frozen=True)
class Slow:
    """An objective that takes a while, so that a signal arrives in the middle of an update."""

    objective: Objective
    needs = frozenset[Need]()

    def __call__(self, columns: LossInputs) -> Loss:
        time.sleep(0.05)
        return self.objective(columns)


def learn_under_strike(several: LeadingRank, strike: Callable[[], object]) -> list[float]:
    """Strike in the middle of an update, which then must be that of one process; returns the tokens of its shares."""
    one, other, given = Trained.of(minibatches=2), Trained.of(several, minibatches=2), batch()
    for each in (one, other):
        each.learn(given, OBJECTIVES["reference"], times=1)

    def wait_and_strike() -> None:
        # After the first of the update's two steps.
        while other.learner.updates < 3:
            time.sleep(0.001)
        strike()

    thread = threading.Thread(target=wait_and_strike, daemon=True)
    thread.start()
    alarmed = Slow(OBJECTIVES["reference"])
    told = [each.learn(given, alarmed, times=1) for each in (one, other)]
    thread.join()
    assert without_shares(told[1][0]) == pytest.approx(told[0][0], rel=1e-6, abs=1e-7)
    same(one, other)
    tokens = tokens_of_shares(told[1][0])
    assert sum(tokens) >= told[0][0]["update/tokens"], "the tokens of all passes are counted"
    return tokens


@pytest.mark.parametrize(("kind", "shards"), [(signal.SIGSTOP, False), (signal.SIGKILL, True)])
def test_a_rank_that_dies_or_hangs_is_started_again_and_the_update_repeated(kind: signal.Signals, shards: bool) -> None:
    notes: list[str] = []
    several = LeadingRank(LaunchedRanks(2), notify=notes.append, update_s=PATIENCE_S, shards=shards)
    try:
        (pid,) = several.pids
        assert pid is not None
        if kind is signal.SIGSTOP:
            # This group alone: a start on a busy machine takes longer, an exchange of so few numbers does not.
            for group in (None, several._commands, several._objects):
                _set_pg_timeout(timedelta(seconds=5), group)
        learn_under_strike(several, lambda: os.kill(pid, kind))
        assert "all ranks start again" in notes[0]
        assert several.pids != (pid,)
        assert several.events["replaced"] == 1
    finally:
        several.close()
    assert not any(_alive(pid) for pid in several.pids)


class _LosingMachines:
    """A placement whose processes with an index in `lost` end as they start; the first `leaving` end as they meet."""

    def __init__(self, leaving: int = 0) -> None:
        self.lost, self.leaving = set[int](), leaving
        self.host, self._launcher = "127.0.0.1", ThisMachine().reserve("learner ranks", 2)

    def reserve(self, name: str, count: int, fewest: int | None = None) -> "_LosingMachines":
        del name, count, fewest
        return self

    def launch(self, entry: str, index: int) -> Launched:
        if self.leaving:
            self.leaving -= 1
            entry = "tests.learner.leaves:leave"
        return self._launcher.launch("os:nothing" if index in self.lost else entry, index)

    def close(self) -> None:
        self._launcher.close()


def test_fewer_ranks_go_on_and_those_that_come_back_join() -> None:
    """With shards, which are divided over fewer ranks, and over more again."""
    notes, machines = list[str](), _LosingMachines()
    several = LeadingRank(LaunchedRanks(3, machines, 2), notify=notes.append, update_s=PATIENCE_S, shards=True)

    def lose() -> None:
        machines.lost.add(1)
        pid = several.pids[1]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    try:
        tokens = learn_under_strike(several, lose)
        assert len(tokens) == 2
        assert min(tokens) > 0.3 * sum(tokens), "each computed its share"
        again, lost = notes
        assert "all ranks start again" in again
        assert "lost 1 of 3 ranks (rank 2 of 3 did not start: it ended as it started" in lost
        assert "batches are divided over 2" in lost
        machines.lost.clear()
        one, other, given, told = Trained.of(), Trained.of(several), batch(), list[dict[str, float]]()
        while not several.events["joined"]:
            told = [each.learn(given, OBJECTIVES["critic"], times=1)[0] for each in (one, other)]
        assert without_shares(told[1]) == pytest.approx(told[0], rel=1e-6, abs=1e-7)
        same(one, other)
        assert len(tokens_of_shares(told[1])) == 3
        assert min(tokens_of_shares(told[1])) > 0
        assert notes[2:] == ["1 rank joined: batches are divided over 3 (rank/world_size)"]
        assert several.events == {"replaced": 1, "lost": 1, "joined": 1}
    finally:
        several.close()
    assert not any(_alive(pid) for pid in several.pids)


@pytest.mark.timeout(1200)
def test_ranks_that_die_again_and_again_end_the_run() -> None:
    several = LeadingRank(LaunchedRanks(2), notify=print, update_s=PATIENCE_S)
    learner = Trained.of(several).learner
    before, given = learner.state.snapshot(), batch()

    def strike() -> None:
        while not done:
            for pid in several.pids:
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    done: list[bool] = []
    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    try:
        with pytest.raises(RankFault, match="rank"):
            learner.learn(given, PpoClip(), Normalizer(), seed=0)
    finally:
        done.append(True)
        thread.join()
        several.close()
    assert all(torch.equal(weight, learner.policy.state()[name]) for name, weight in before.policy.items())


@pytest.mark.parametrize(
    ("entry", "update_s", "why"),
    [("os:nothing", PATIENCE_S, "it ended as it started"), ("time:sleep", 0.3, "it was not ready within 0.3 s")],
)
def test_a_rank_that_does_not_start_says_why(
    entry: str, update_s: float, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_processes, "ENTRY", entry)
    with pytest.raises(RankFault, match=f"rank 1 of 2 did not start: {why}.*; to go on with fewer set min_ranks"):
        LeadingRank(LaunchedRanks(2), notify=print, update_s=update_s)


def test_a_rank_that_ends_before_the_ranks_meet_is_noticed_at_once() -> None:
    """Long before gloo would, whose limit is longer than that of the test; then all start again."""
    with pytest.raises(RankFault, match="rank 1 of 2 ended before the ranks met"):
        LeadingRank(LaunchedRanks(2, _LosingMachines(leaving=3)), notify=print, update_s=10_000)
    several = LeadingRank(LaunchedRanks(2, _LosingMachines(leaving=1)), notify=print, update_s=10_000)
    try:
        one, other, given = Trained.of(), Trained.of(several), batch()
        for each in (one, other):
            each.learn(given, PpoClip(), times=1)
        same(one, other)
    finally:
        several.close()


def _alive(pid: int | None) -> bool:
    try:
        return pid is not None and not os.kill(pid, 0)
    except ProcessLookupError:
        return False
