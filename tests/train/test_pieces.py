from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.loads import without_shares
from tests.small import run as small
from tests.trees import chains, credited, random_tree, rewarded

from bough.batch import pack
from bough.credit import Grpo
from bough.curate import BatchSelection, apply_filters
from bough.learner import Diverged, Learner, Optimizer
from bough.learner.learning_rate import scale
from bough.learner.loss_inputs import ObjectiveContext
from bough.objective import Entropy, Kl, Loss, LossInputs, Need, Normalizer, PpoClip, Sum
from bough.policy import Tiny
from bough.schedule import CosineSchedule, LinearSchedule
from bough.train import Health, NoLearningSignal
from bough.train.health import (
    HealthState,
    check_gap,
    check_paths,
    check_signal,
    is_flat,
    is_over,
    is_solved,
    mostly_cut,
    next_health,
)
from bough.train.notices import Notices
from bough.train.summary import summarize
from bough.tree import ActionCounts, Outcome, fail_unknown

LINEAR: Any = LinearSchedule(start=1.0, end=0.0)
COSINE: Any = CosineSchedule(start=1.0, end=0.0)


def test_schedules() -> None:
    assert [scale(1.0, update, 0, 4) for update in range(5)] == [1.0] * 5
    assert [scale(LINEAR, update, 0, 4) for update in range(4)] == [1.0, 0.75, 0.5, 0.25]
    assert [scale(LINEAR, update, 3, 7) for update in range(5)] == [0.25, 0.5, 0.75, 1.0, 0.75]
    rises: Any = LinearSchedule(start=2.0, end=4.0)
    assert [scale(rises, update, 1, 5) for update in range(4)] == [1.0, 2.0, 2.5, 3.0], "above 1 too"
    assert scale(COSINE, 2, 0, 4) == pytest.approx(0.5)
    assert scale(COSINE, 0, 0, 4) == 1.0
    for schedule in (LINEAR, COSINE):
        assert 0 < scale(schedule, 9, 0, 4) < 1e-6
        falls = [scale(schedule, update, 2, 30) for update in range(2, 31)]
        assert falls == sorted(falls, reverse=True)


@pytest.mark.parametrize(("schedule", "last"), [(LINEAR, 1 / 8), (COSINE, 0.0381), (1.0, 1.0)])
def test_a_schedule_ends_where_a_run_ends_also_when_batches_were_skipped(schedule: Any, last: float) -> None:
    # Of ten places the updates are at 0, 3 and 9; the rise counts updates, the fall counts places.
    rates = [scale(schedule, update, 2, 10, place) for update, place in enumerate((0, 3, 9))]
    assert rates[:2] == pytest.approx([1 / 3, 2 / 3])
    assert rates[2] == pytest.approx(last, abs=1e-4)


def test_a_batch_has_the_rates_of_its_place_in_the_run() -> None:
    rng = np.random.default_rng(1)
    batch = pack([credited(random_tree(rng, task=str(task), vocab=40), rng) for task in range(4)])
    settings = {"minibatches": 2, "epochs": 2, "schedule": LINEAR, "learning_rate": 1e-3}
    late = learner(**settings).learn(
        batch, PpoClip(), Normalizer(), seed=0, context=ObjectiveContext(scheduled_update=6)
    )
    assert late["optimizer/learning_rate"] == pytest.approx(1e-3 * np.mean([0.4, 0.3, 0.2, 0.1]))
    # One tree makes one minibatch of an epoch; the second epoch begins where it would with two.
    part = batch.minibatches(4, 0)[0].batch
    few = learner(**settings).learn(part, PpoClip(), Normalizer(), seed=0, context=ObjectiveContext(scheduled_update=6))
    assert few["optimizer/learning_rate"] == pytest.approx(1e-3 * np.mean([0.4, 0.2]))


def test_a_pulse() -> None:
    guards, pulse = Health(dead_batches=3), next_health(HealthState(), signals=0, success=0.0)
    assert pulse == HealthState(flat=1, unsolved=1)
    assert next_health(pulse, signals=1, success=0.5) == HealthState()
    pulse = next_health(pulse, signals=0, success=0.0)
    assert not is_flat(pulse, guards)
    check_signal(pulse, guards)
    for success, why in ((0.0, "no path succeeds. Warm up"), (1.0, "all earn the same"), (0.4, "all earn the same")):
        flat = next_health(pulse, signals=0, success=success)
        assert is_flat(flat, guards)
        assert not is_solved(flat, guards)
        with pytest.raises(NoLearningSignal, match=f"3 batches in a row had no advantage: .*{why}"):
            check_signal(flat, guards)
    dropped = {"unjudged_task": 2, "refused_task": 0, "no_signal": 1}
    with pytest.raises(NoLearningSignal, match=r"Filters dropped groups of the last batch: 2 as unjudged_task$"):
        check_signal(next_health(pulse, signals=0, success=0.0), guards, dropped)


def test_a_pulse_of_solved_batches() -> None:
    guards, pulse = Health(dead_batches=3), HealthState()
    for flat in range(1, 4):
        pulse = next_health(pulse, signals=0, success=1.0)
        assert pulse == HealthState(flat=flat, solved=flat)
        assert is_solved(pulse, guards) == (flat == 3)
    check_signal(pulse, guards)
    assert not is_solved(pulse, Health(dead_batches=4)), "a run goes on when its guard is raised"
    assert not is_solved(next_health(HealthState(flat=1), signals=0, success=1.0), Health(dead_batches=2)), (
        "one was not solved"
    )


def test_a_pulse_of_cut_actions() -> None:
    """A warning at the first batch, a stop where it lasts, whatever the advantages; never where all is solved."""
    guards, cut = Health(cut_share=0.5, cut_batches=2), ActionCounts(actions=4, cut=2)
    assert mostly_cut(cut, guards)
    assert not mostly_cut(ActionCounts(actions=4, cut=1), guards)
    assert not mostly_cut(ActionCounts(), guards)
    one = next_health(HealthState(), signals=3, success=0.4, cut=True)
    assert one == HealthState(cut=1)
    check_signal(one, guards)
    assert next_health(one, signals=3, success=0.4) == HealthState(), "in a row"
    two = next_health(one, signals=0, success=0.4, cut=True)
    assert is_over(two, guards)
    with pytest.raises(
        NoLearningSignal, match=r"in 2 batches in a row 50% of the actions or more.*sampling.max_tokens"
    ):
        check_signal(two, guards)
    for other in (Health(cut_batches=0), Health(cut_batches=3)):
        assert not is_over(two, other)
        check_signal(two, other)
    check_signal(HealthState(flat=10, solved=10, cut=10), guards)
    said: list[str] = []
    notices = Notices(report=lambda alarm: said.append(str(alarm)), health=guards)
    for _ in range(2):
        notices.cut_actions(cut)
    assert said == [
        "2 of 4 actions (50.0%) were cut off at the token limit. The policy is paid for beginnings of actions; the run "
        "stops after 2 such batches in a row (health.cut_batches). Raise sampling.max_tokens, or warm up longer."
    ]


def test_a_gap() -> None:
    check_gap(0.2, Health(gap=0.2))
    with pytest.raises(NoLearningSignal, match=r"differ by 0.3 nats on average; need at most 0.2 \(health.gap\)"):
        check_gap(0.3, Health(gap=0.2))


def test_paths() -> None:
    failed = chains([0.0], outcomes=[Outcome.FAILED])
    check_paths([failed, chains([1.0])], {"x": "no"})
    with pytest.raises(NoLearningSignal, match=r"none of 2 paths came to a regular end.*The last fault: no$"):
        check_paths([failed], {"x": "no"})


def test_paths_without_a_judgement_are_no_fault_of_the_environment() -> None:
    unjudged, failed = fail_unknown(chains([1.0, 0.0]), ["grade"]), chains([0.0], outcomes=[Outcome.FAILED])
    with pytest.raises(NoLearningSignal, match=r"none of 2 paths was judged; .*Take another model.*column 'grade'"):
        check_paths([unjudged], {})
    with pytest.raises(NoLearningSignal, match=r"none of 3 paths came to a regular end, 2 for want of a judgement;"):
        check_paths([unjudged, failed], {})


def test_a_batch_in_numbers() -> None:
    ends = [Outcome.TERMINATED, Outcome.TRUNCATED, Outcome.FAILED, Outcome.TERMINATED]
    tree = chains([1.0, 0.0, 5.0, 1.0], turns=[1, 3, 2, 2], outcomes=ends)
    told = summarize([rewarded(tree)], unstarted=2, dropped={"no_signal": 1})
    assert told["train/success"] == pytest.approx(2 / 3)
    assert told["train/paths"] == 3
    assert told["train/turns"] == 2
    assert told["reward/mean"] == told["reward/env"] == pytest.approx(2 / 3)
    assert told["paths/failed"] == 1
    assert (told["train/failed"], told["train/truncated"]) == (0.25, 0.25)
    # Three paths count: 6 turns of 2 tokens each, answered by 2 tokens each, and a prompt of 3 tokens a path.
    assert (told["train/written_tokens"], told["train/read_tokens"]) == (6 * 2 / 3, (6 * 2 + 3 * 3) / 3)
    assert told["paths/unstarted"] == 2
    assert told["groups/dropped_no_signal"] == told["groups/dropped"] == 1
    assert told["speed/sampled_tokens"] == 16
    assert told["policy/entropy"] == pytest.approx(0.3)


def test_rules_of_admission_choose_in_turn() -> None:
    flat, uneven = chains([1.0, 1.0], task="flat"), chains([1.0, 0.0], task="uneven")
    found = apply_filters(Grpo()([rewarded(flat), rewarded(uneven)]), (*small().world.filters, *small().world.filters))
    kept, dropped = found.trees, found.dropped
    assert [one.tree.task.id for one in kept] == ["uneven"]
    assert dropped == {"no_signal": 1}
    everything = Grpo()([rewarded(flat)])
    assert apply_filters(everything, ()) == BatchSelection(trees=everything, dropped={}, counted_only=[])


def learner(**settings: object) -> Learner:
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=64, dtype="float64").build(["a b"])
    return Learner(policy, replace(Optimizer(), **settings), total_updates=10, temperature=0.7)  # type: ignore[arg-type]


ALL = Sum(terms=(PpoClip(), Kl(coefficient=0.1), Entropy(coefficient=0.01)))


@pytest.mark.parametrize("share", [Normalizer(), Normalizer(by="unique_tokens")], ids=str)
def test_the_gradient_does_not_know_how_the_batch_was_split(share: Normalizer) -> None:
    rng = np.random.default_rng(0)
    batch = pack([credited(random_tree(rng, task=str(task), vocab=40), rng) for task in range(6)])
    assert len(batch.at) > 20
    results = []
    for micro_tokens, cpu_workers in ((1, 1), (37, 1), (37, 3), (10**6, 2), (10**6, 1)):
        one = learner(micro_tokens=micro_tokens, cpu_workers=cpu_workers)
        reference = learner().policy.replica()
        metrics = one.backward(batch, ALL, share, context=ObjectiveContext(reference=reference))
        gradient = {name: weight.grad.clone() for name, weight in one.policy.parameters().items()}
        results.append((metrics, gradient))
    for metrics, gradient in results[:-1]:
        assert without_shares(metrics) == pytest.approx(without_shares(results[-1][0]), rel=1e-6, abs=1e-9)
        for name, value in results[-1][1].items():
            assert value.abs().max() > 0 or "norm" not in name
            # Norms compute in float32, and workers round their parts of a sum.
            torch.testing.assert_close(gradient[name], value, rtol=0, atol=1e-6 * float(value.abs().max()))


def test_parts_and_epochs_make_steps() -> None:
    rng = np.random.default_rng(1)
    batch = pack([credited(random_tree(rng, task=str(task), vocab=40), rng) for task in range(4)])
    one = learner(minibatches=2, epochs=3, schedule=LINEAR, learning_rate=1e-3)
    metrics = one.learn(batch, PpoClip(), Normalizer(), seed=0)
    assert one.updates == 6
    assert metrics["optimizer/learning_rate"] == pytest.approx(1e-3 * np.mean([1.0, 0.9, 0.8, 0.7, 0.6, 0.5]))
    other = learner(minibatches=2, epochs=3, schedule=LINEAR, learning_rate=1e-3)
    other.learn(batch, PpoClip(), Normalizer(), seed=0)
    one.learn(batch, PpoClip(), Normalizer(), seed=1)
    # What a checkpoint keeps is all there is.
    third = learner(minibatches=2, epochs=3, schedule=LINEAR, learning_rate=1e-3)
    third.policy.load_state(other.policy.state())
    third.state.load_moments(other.state.moments(), updates=6)
    third.learn(batch, PpoClip(), Normalizer(), seed=1)
    for name, value in one.policy.state().items():
        assert torch.equal(value, third.policy.state()[name]), name


class Broken:
    needs: frozenset[Need] = frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        return Loss(value=columns.logprob.sum() * float("nan"), metrics={})


def test_a_loss_that_is_not_a_number_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    batch = pack([credited(random_tree(rng), rng)])
    one = learner()
    before = one.policy.state()
    with pytest.raises(Diverged, match=r"update 0: got a loss of nan.*Lower optimizer.learning_rate"):
        one.step(batch, Broken(), Normalizer())
    assert one.updates == 0
    assert all(torch.equal(value, one.policy.state()[name]) for name, value in before.items())


def test_an_objective_without_its_reference() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="got an objective that needs a reference policy, and no reference"):
        learner().step(pack([credited(random_tree(rng), rng)]), Kl(), Normalizer())
