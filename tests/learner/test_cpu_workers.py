from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.loads import tokens_of_shares, without_shares
from tests.trees import credited, random_tree

from bough.batch import Batch, ChunkedForward, pack
from bough.learner import Learner, Optimizer, cpu_workers
from bough.learner.cpu_workers import CpuWorker, CpuWorkers, chosen_workers
from bough.objective import Loss, LossInputs, Need, Normalizer, PpoClip
from bough.policy import Tiny
from bough.policy.policy import Policy


def policy() -> Policy:
    return Tiny(layers=2, width=16, heads=2, vocab_tokens=260, context_tokens=64).build(["a b"])


def learner(cpu_workers: int) -> Learner:
    return Learner(policy(), replace(Optimizer(), cpu_workers=cpu_workers), total_updates=10, temperature=1.0)


def batch(count: int = 8) -> Batch:
    rng = np.random.default_rng(0)
    return pack([credited(random_tree(rng, task=str(task), vocab=40), rng) for task in range(count)])


def test_several_readers_learn_what_one_does() -> None:
    one, several = learner(1), learner(3)
    given, threads = batch(), torch.get_num_threads()
    for _ in range(3):
        told, same = (each.learn(given, PpoClip(), Normalizer(), seed=0) for each in (one, several))
        assert without_shares(same) == pytest.approx(told, rel=1e-4, abs=1e-6)
        tokens = tokens_of_shares(same)
        assert len(tokens) == 3
        assert min(tokens) > 0.7 * sum(tokens) / 3
    for name, weight in one.policy.parameters().items():
        torch.testing.assert_close(several.policy.parameters()[name], weight, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(several.logprobs(given), one.logprobs(given), rtol=1e-4, atol=1e-4)
    assert torch.get_num_threads() == threads


def test_several_readers_learn_the_same_twice_bit_for_bit() -> None:
    given = batch()
    learned: list[Policy] = []
    for _ in range(2):
        several = learner(2)
        for _ in range(3):
            several.learn(given, PpoClip(), Normalizer(), seed=0)
        learned.append(several.policy)
    for name, weight in learned[0].parameters().items():
        assert torch.equal(weight, learned[1].parameters()[name])


def test_more_readers_than_trees() -> None:
    given = batch(1)
    told = [each.learn(given, PpoClip(), Normalizer(), seed=0) for each in (learner(1), learner(4))]
    assert without_shares(told[1]) == pytest.approx(told[0], rel=1e-4, abs=1e-6)
    assert min(tokens_of_shares(told[1])[:2]) > 0, "the two branches of the tree are divided"


def test_each_reader_has_much_the_same_to_do() -> None:
    workers, forest = CpuWorkers(policy(), None, 4), batch(40).prefix_tree()

    def read(_: CpuWorker, reading: ChunkedForward) -> int:
        return sum(len(stretch) for chapter in reading.groups for stretch in chapter)

    found = workers.read(read, forest, 10**6)
    assert len(forest) <= sum(found) < 1.02 * len(forest)
    assert max(found) < 1.1 * len(forest) / 4
    assert found == [*workers.take_loads().values()][:4]


class Picky:
    """Fails where it sees few tokens, which not all readers do."""

    needs: frozenset[Need] = frozenset()

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, columns: LossInputs) -> Loss:
        self.asked += 1
        if self.asked == 2:
            raise RuntimeError("not this one")
        return Loss(value=columns.logprob.sum(), metrics={})


def test_what_fails_in_a_thread_is_told_and_leaves_nothing_behind() -> None:
    one, several, given = learner(1), learner(3), batch()
    with pytest.raises(RuntimeError, match="not this one"):
        several.step(given, Picky(), Normalizer())
    for each in (one, several):
        each.step(given, PpoClip(), Normalizer())
    for name, weight in one.policy.parameters().items():
        torch.testing.assert_close(several.policy.parameters()[name], weight, rtol=1e-4, atol=1e-5)


def test_threads_are_for_cpus() -> None:
    elsewhere = policy()
    elsewhere._model.model.to("meta")
    with pytest.raises(ValueError, match=r"Optimizer.cpu_workers: got 2 for a policy on meta; need 1: threads share"):
        CpuWorkers(elsewhere, None, 2)
    with pytest.raises(ValueError, match=r"Optimizer.cpu_workers: got -1; need at least 0"):
        Optimizer(cpu_workers=-1)


def test_threads_share_the_batches_of_a_small_policy_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    small = policy()
    assert [chosen_workers(small, Optimizer(), threads) for threads in (0, 1, 2, 8, 64)] == [1, 1, 2, 8, 8]
    assert chosen_workers(small, Optimizer(memory_gib=1), 8) == 1, "each thread has gradients of its own"
    monkeypatch.setattr(cpu_workers, "SMALL_WEIGHTS", 1000)
    assert chosen_workers(small, Optimizer(), 8) == 1
    small._model.model.to("meta")
    assert chosen_workers(small, Optimizer(), 8) == 1
