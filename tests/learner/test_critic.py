"""A critic from the first value to the last: appraised, credited, trained, resumed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tests.loads import without_shares
from tests.small import MEASURED
from tests.small import run as small
from tests.trees import random_tree, rewarded

from bough.batch import Batch, PackedPrefixTree, pack
from bough.context import PlanAct, Planned, Window
from bough.credit import Credit, Gae, Hae, Poad, TurnPpo
from bough.critics import ValueHead
from bough.engine import Sampling
from bough.learner import Learner, Optimizer
from bough.learner.estimates import add_estimates
from bough.learner.loss_inputs import NO_CONTEXT, before_forward, loss_weights
from bough.learner.token_outputs import values_of
from bough.objective import Normalizer, PpoClip, Sum, ValueClip
from bough.policy import Tiny
from bough.train import Checkpointing, Run, resume, start
from bough.tree import truncated_states

BOTH = Sum(terms=(PpoClip(), ValueClip()))
PLANNED = {
    "critic": ValueHead(heads=("low", "high", "switch")),
    "parser": PlanAct(every=2),
    "context": Planned(context=Window(turns=1)),
    "sampling": Sampling(max_tokens=32),
}


def learner(critic: ValueHead, **settings: object) -> Learner:
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=64, dtype="float64").build(["a b"])
    heads = critic.build(policy.head()[0].shape[1]).double()
    optimizer = replace(Optimizer(learning_rate=1e-3), **settings)  # type: ignore[arg-type]
    return Learner(policy, optimizer, total_updates=100, temperature=1.0, critic=heads)


def batch(one: Learner, rule: Credit) -> Batch:
    """Trees whose turns paths share, appraised and credited."""
    rng = np.random.default_rng(3)
    trees = [rewarded(random_tree(rng, task=str(task), vocab=40)) for task in range(6)]
    seen = add_estimates(trees, one.policy, critic=one.critic, reference=None, temperature=1.0, micro_tokens=50)
    return pack(rule(seen))


@pytest.mark.parametrize("rule", [Gae(), TurnPpo(), Poad()], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("detach", [False, True])
def test_the_error_falls_on_a_fixed_batch(rule: Credit, detach: bool) -> None:
    one = learner(ValueHead(learning_rate=1e-2, detach=detach), learning_rate=3e-3)
    given = batch(one, rule)
    assert (given.old_values["value"][~given.value_targets["value"].isnan()] == 0).all(), "an untrained critic says 0"
    objective = Sum(terms=(PpoClip(), ValueClip(clip=None)))
    errors = [one.step(given, objective, Normalizer())["policy/value_error"] for _ in range(60)]
    known = ~given.value_targets["value"].isnan()
    weight = Normalizer()(given.paths, given.inverse_length, given.equal_length)[known]
    mean_square = float((weight * given.value_targets["value"][known].square()).sum() / weight.sum())
    assert errors[0] == pytest.approx(mean_square, rel=1e-5)
    assert errors[-1] < 0.7 * errors[0]


def test_a_value_loss_is_a_mean_over_the_tokens_with_a_target() -> None:
    given = batch(learner(ValueHead()), TurnPpo())
    known = ~given.value_targets["value"].isnan()
    assert known.sum() < len(known)
    inputs = before_forward(given, frozenset(), NO_CONTEXT, loss_weight=loss_weights(given, Normalizer()))
    weights = inputs.loss_weight * inputs.values["value"].scale
    assert float(weights[known].sum()) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("rule", [Gae(), TurnPpo()], ids=lambda rule: type(rule).__name__)
def test_the_gradient_does_not_know_how_the_batch_was_split(rule: Credit) -> None:
    results = []
    for micro_tokens, cpu_workers in ((1, 1), (37, 2), (10**6, 1)):
        one = learner(ValueHead(), micro_tokens=micro_tokens, cpu_workers=cpu_workers)
        for weight in one.critic.parameters():  # type: ignore[union-attr]
            torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(0))
        metrics = one.backward(batch(one, rule), BOTH, Normalizer())
        heads = {f"critic.{name}": weight for name, weight in one.critic.named_parameters()}  # type: ignore[union-attr]
        gradient = {name: weight.grad.clone() for name, weight in {**one.policy.parameters(), **heads}.items()}
        results.append((metrics, gradient))
    assert results[0][1]["critic.linear.weight"].abs().max() > 0
    for metrics, gradient in results[:2]:
        assert without_shares(metrics) == pytest.approx(results[2][0], rel=1e-6, abs=1e-9)
        for name, value in results[2][1].items():
            # Norms compute in float32, and workers round their parts of a sum.
            torch.testing.assert_close(gradient[name], value, rtol=0, atol=1e-6 * float(value.abs().max()))


def test_the_critics_gradient_is_clipped_by_itself() -> None:
    """However wrong the critic is: one that leaves the policy's weights alone does not slow the policy down."""
    moved = []
    for coefficient in (0.0, 1e6):
        one = learner(ValueHead(detach=True), clip_norm=1e-3)
        given = batch(one, Gae())
        metrics = one.step(given, Sum(terms=(PpoClip(), ValueClip(coefficient=coefficient))), Normalizer())
        moved.append({name: weight.grad.clone() for name, weight in one.policy.parameters().items()})
        assert metrics["optimizer/gradient_norm"] > 1e-3
        heads = torch.cat([weight.grad.flatten() for weight in one.critic.parameters()])  # type: ignore[union-attr]
        assert heads.norm() == pytest.approx(1e-3 if coefficient else 0.0, rel=1e-4)
    for name, gradient in moved[0].items():
        assert torch.equal(gradient, moved[1][name])


def rows(directory: Path) -> list[dict[str, object]]:
    told = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in told]


def variant(name: str, rule: Credit, **changed: object) -> Run:
    given = {"critic": ValueHead(), "credit": rule, "objective": BOTH, "filters": (), **changed}
    saving = Checkpointing(every=1, keep=100)
    return small().replace(name=name, steps=3, checkpointing=saving, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "run",
    [variant("gae", Gae()), variant("hae", Hae(bootstrap_truncated=True), **PLANNED)],
    ids=lambda run: run.name,
)
def test_a_run_with_a_critic_learns_and_resumes_bit_for_bit(run: Run, tmp_path: Path) -> None:
    directory = start(run, tmp_path).path
    told = rows(directory)
    learned = [row for row in told if row["phase"] == "rl" and "policy/gap" in row]
    assert len(learned) == run.world.schedule.steps
    assert run.method.critic is not None
    for head in run.method.critic.heads:
        assert all(row[f"policy/{head}_error"] > 0 for row in learned)  # type: ignore[operator]
    assert any(row["optimizer/critic_norm"] > 0 for row in learned)  # type: ignore[operator]
    whole = load_file(directory / "final" / "model.safetensors")
    checkpoints = sorted((directory / "checkpoints").iterdir())
    for checkpoint in checkpoints[-2:]:
        shutil.rmtree(checkpoint)
    shutil.rmtree(directory / "final")
    resume(directory)
    assert sorted((directory / "checkpoints").iterdir()) == checkpoints
    assert rows(directory) == told
    again = load_file(directory / "final" / "model.safetensors")
    for name, tensor in whole.items():
        assert tensor.tobytes() == again[name].tobytes(), name


def test_the_critic_values_the_states_in_which_truncated_paths_end() -> None:
    """As if each were read by itself; the values before tokens are those without a bootstrap."""
    rng = np.random.default_rng(4)
    one = learner(ValueHead(heads=("low", "high")))
    assert one.critic is not None
    torch.nn.init.normal_(one.critic.linear.weight, generator=torch.Generator().manual_seed(0))
    trees = [rewarded(random_tree(rng, task=str(task), vocab=40)) for task in range(4)]
    said = {
        asked: add_estimates(
            trees, one.policy, critic=one.critic, bootstrap=asked, reference=None, temperature=1.0, micro_tokens=50
        )
        for asked in (False, True)
    }
    count = 0
    for tree, plain, boot in zip(trees, said[False], said[True], strict=True):
        for head in ("low", "high"):
            assert boot.estimates[head] == pytest.approx(plain.estimates[head], abs=1e-6, nan_ok=True)
            assert plain.end_values == {}
            states = truncated_states(tree.tree)
            assert np.flatnonzero(~np.isnan(boot.end_values[head])).tolist() == sorted(states)
            for leaf, text in states.items():
                alone = PackedPrefixTree.pack([text], np.zeros(1, dtype=np.int64), np.asarray([len(text)]))
                value = values_of(one.policy, one.critic, alone, 1000)[head]
                assert boot.end_values[head][leaf] == pytest.approx(value.item(), abs=1e-6)
                count += 1
    assert count > 6
