"""Success replay: which groups get one, what it is, and that it is remembered."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, random_tree, rewarded

from bough.batch import pack
from bough.credit import Grpo
from bough.hooks import SuccessReplay
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.hooks.success_replay import SuccessReplayState
from bough.learner import Learner, Optimizer
from bough.objective import Normalizer, PpoClip
from bough.policy import Tiny
from bough.tree import Outcome, Rewarded, counted, leaves


def replay(**settings: float) -> SuccessReplayState:
    return SuccessReplay(**settings).build(HookSetup(vocab_tokens=10))  # type: ignore[arg-type]


def paths(*returns: float, task: str = "task") -> Rewarded:
    return rewarded(chains(returns, task=task))


def earns(trees: list[Rewarded]) -> list[list[float]]:
    return [each.returns().tolist() for each in trees]


def after_a_success(*returns: float) -> list[list[float]]:
    """What becomes of a group when a success of 1 is kept."""
    one = replay()
    one.transform([paths(0.0, 1.0)], 0)
    return earns(one.transform([paths(*returns)], 1))


def test_a_success_takes_the_place_of_the_first_failure() -> None:
    assert after_a_success(0.0, 0.0, 0.0, 0.0) == [[1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("returns", "why"),
    [
        ([0.0, 0.0, 0.0, 0.4], "the standard deviation is 0.17"),
        ([0.0, 0.11], "0.055 with ddof 0"),
        ([0.2, 0.2], "the mean is not below 0.2"),
        ([1.0, 1.0], "nobody failed"),
        ([0.0], "nothing to compare with"),
    ],
)
def test_groups_that_are_left_as_they_are(returns: list[float], why: str) -> None:
    assert after_a_success(*returns) == [returns], why


@pytest.mark.parametrize("returns", [[0.0, 0.09], [0.19, 0.19], [-1.0, -1.0]])
def test_groups_that_have_failed(returns: list[float]) -> None:
    assert after_a_success(*returns) == [[1.0], returns[1:]]


def test_there_must_be_a_success_of_that_very_task_and_from_before() -> None:
    one = replay()
    assert earns(one.transform([paths(0.0, 0.0), paths(1.0, 1.0, task="other")], 0)) == [[0.0, 0.0], [1.0, 1.0]]
    assert earns(one.transform([paths(0.0, 0.0)], 1)) == [[0.0, 0.0]]


def test_the_newest_eight_are_kept_and_those_that_earn_too_little_are_not() -> None:
    one = replay()
    for paid in range(12):
        one.transform([paths(0.05, 0.1, 1.0 + paid)], 0)
    assert earns(one.data.kept["task"]) == [[1.0 + paid] for paid in range(4, 12)]
    chosen = {earns(one.transform([paths(0.0, 0.0)], seed))[0][0] for seed in range(200)}
    assert chosen == {1.0 + paid for paid in range(4, 12)}, "any of them"


def test_what_was_replayed_is_not_kept_again() -> None:
    one = replay()
    one.transform([paths(0.0, 1.0)], 0)
    batch = one.transform([paths(0.0, 0.0)], 1)
    one.transform(batch, 2)
    assert len(one.data.kept["task"]) == 1


def world(outcome: Outcome = Outcome.TERMINATED, version: int = 3) -> Rewarded:
    """Two paths that share their first turn, of which the second succeeds."""
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2)),
        N(parent=0, kind=ACTION, tokens=(3,), logprob=-0.1),
        N(parent=1, kind=OBSERVATION, tokens=(4,)),
        N(parent=2, kind=ACTION, tokens=(5, 6), logprob=(-0.2, -0.3)),
        N(parent=3, kind=OBSERVATION, tokens=(), outcome=outcome),
        N(parent=2, kind=ACTION, tokens=(7, 8), logprob=(-0.4, -0.5), env_reward=1.0),
        N(parent=5, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED),
        policy_version=version,
    )
    return rewarded(tree)


def test_a_replayed_path_is_the_path_that_was_sampled() -> None:
    """Every token of it, with its own log-probability and the version of the policy that wrote it."""
    one = replay()
    one.transform([replace(world(), estimates={"stale": np.zeros(8)})], 0)
    again, rest = one.transform([paths(0.0, 0.0)], 1)
    assert again.tree.token.tolist() == [1, 2, 3, 4, 7, 8]
    assert again.tree.logprob[again.tree.sampled] == pytest.approx([-0.1, -0.4, -0.5])
    assert again.tree.policy_version.tolist() == [-1, 3, -1, 3, -1]
    assert again.channels["env"].tolist() == [0, 0, 0, 1, 0]
    assert again.estimates == {}, "what a critic of then thought is of no use"
    assert again.tree.replayed
    assert not rest.tree.replayed


def test_the_path_that_makes_room_is_the_first_that_counts() -> None:
    one = replay()
    one.transform([world()], 0)
    kept, failures = one.data.kept["task"][0], world(Outcome.FAILED)
    group = [replace(failures, channels={"env": np.zeros(7)}), paths(0.0)]
    again, first, second = one.transform(group, 1)
    assert again is kept
    assert first.tree.outcome[leaves(first.tree)].tolist() == [Outcome.FAILED], "it does not count, and stays"
    assert second is group[1]


def test_the_ratio_of_a_replayed_path_is_against_the_policy_that_sampled_it() -> None:
    """The authors' code computes its log-probabilities anew: there the ratio is 1, whatever the path."""
    one = replay()
    one.transform([world(version=3)], 0)
    fresh = rewarded(replace(chains([0.0, 0.0]), policy_version=np.full(5, 9, dtype=np.int32)))
    batch = pack(Grpo()(one.transform([fresh], 1)))
    assert batch.rollout_logprob[:3].tolist() == pytest.approx([-0.1, -0.4, -0.5])
    assert batch.on_policy.tolist() == [False] * 3 + [True] * 2
    assert bool((batch.positive[:3] > 0).all())
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=64, dtype="float64").build(["a b"])
    learner = Learner(policy, Optimizer(), total_updates=1, temperature=1.0)
    metrics = learner.backward(batch, PpoClip(), Normalizer())
    seen = learner.logprobs(batch)
    ratio = (seen - batch.rollout_logprob).exp()
    assert float(ratio[:3].max()) < 0.1, "an untrained policy would hardly write it"
    assert metrics["policy/ratio"] == pytest.approx(float(ratio.mean()))
    apart = (seen - batch.rollout_logprob).abs()
    assert metrics["policy/gap"] == pytest.approx(float(apart[3:].mean())), "the old policy's tokens are no gap"
    moved = (seen - batch.rollout_logprob)[3:]
    assert learner.divergence(batch) == pytest.approx(float((moved.exp() - 1 - moved).mean()))


def test_a_micro_batch_of_old_tokens_alone_makes_no_gap() -> None:
    one = replay()
    one.transform([world(version=3)], 0)
    fresh = rewarded(replace(chains([0.0, 0.0]), policy_version=np.full(5, 9, dtype=np.int32)))
    batch = pack(Grpo()(one.transform([fresh], 1)))
    old = batch.select_rows(torch.tensor([0])).batch
    assert not bool(old.on_policy.any())
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=64).build(["a b"])
    learner = Learner(policy, Optimizer(), total_updates=1, temperature=1.0)
    assert learner.backward(old, PpoClip(), Normalizer())["policy/gap"] == 0.0
    assert learner.divergence(old) == 0.0


def test_a_group_of_failures_learns_again() -> None:
    one = replay()
    one.transform([paths(0.0, 1.0)], 0)
    assert not any(each.positive.any() for each in Grpo()([paths(0.0, 0.0, 0.0)]))
    again, rest = Grpo()(one.transform([paths(0.0, 0.0, 0.0)], 1))
    assert again.positive.max() == pytest.approx((1 - 1 / 3) / np.sqrt(1 / 3), abs=1e-5)
    assert rest.negative.min() == pytest.approx(-1 / 3 / np.sqrt(1 / 3), abs=1e-5)


def test_what_was_kept_is_all_there_is() -> None:
    rng, one, other = np.random.default_rng(0), replay(success_above=-100.0), replay(success_above=-100.0)
    for step in range(6):
        tree = random_tree(rng, task=f"task {step % 3}")
        one.transform([Rewarded(tree=tree, channels={f"c{step}": rng.normal(size=tree.nodes)})], step)
    assert sum(map(len, one.data.kept.values())) > 6
    restore(other.data, save(one.data))
    assert list(one.data.kept) == list(other.data.kept)
    for task, kept in one.data.kept.items():
        for mine, theirs in zip(kept, other.data.kept[task], strict=True):
            assert mine.tree.equals(theirs.tree)
            assert mine.channels.keys() == theirs.channels.keys()
            assert all(np.array_equal(mine.channels[name], theirs.channels[name]) for name in mine.channels)
    for name, value in save(one.data).items():
        assert value.tobytes() == save(other.data)[name].tobytes(), name
    assert all(len(counted(each.tree)) == 1 for kept in other.data.kept.values() for each in kept)


def test_nothing_kept_can_be_kept() -> None:
    one = replay()
    restore(one.data, save(replay().data))
    assert one.data.kept == {}
    assert earns(one.transform([paths(0.0, 0.0)], 0)) == [[0.0, 0.0]]
    assert one.transform([], 0) == []


def test_what_it_reports() -> None:
    one = replay()
    one.transform([paths(1.0, 1.0), paths(1.0, task="other")], 0)
    one.transform([paths(0.0, 0.0)], 1)
    assert one.observe() == {"replay/used": 1.0, "replay/kept": 3.0, "replay/tasks": 2.0}
    assert one.observe()["replay/used"] == 0.0


def test_bounds() -> None:
    with pytest.raises(ValueError, match=r"SuccessReplay\.keep: got 0; need at least 1"):
        SuccessReplay(keep=0)
    with pytest.raises(ValueError, match=r"SuccessReplay\.spread: got 0\.0; need"):
        SuccessReplay(spread=0.0)
