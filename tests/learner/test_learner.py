"""What an update takes from its settings and its batch: temperature, old log-probabilities, decay, orders, chunks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, credited, random_tree, rewarded
from torch import Tensor

from bough.batch import Batch, pack
from bough.learner import Learner, Optimizer
from bough.learner.estimates import add_estimates
from bough.learner.loss_inputs import ObjectiveContext, before_forward, by_path, loss_weights
from bough.learner.packing_check import packing_agrees
from bough.objective import Chord, Kl, Loss, LossInputs, Normalizer, PpoClip, Reinforce, Tis
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.tree import Outcome, Source, Tree

TEMPERATURE = 0.7


def policy() -> Policy:
    return Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=64, dtype="float64").build(["a b"])


def learner(*, temperature: float = TEMPERATURE, **settings: Any) -> Learner:
    return Learner(policy(), replace(Optimizer(), **settings), total_updates=10, temperature=temperature)


def trees(count: int = 6) -> list[Tree]:
    rng = np.random.default_rng(0)
    return [random_tree(rng, edits=0.0, unusual=0.0, task=str(task), vocab=40) for task in range(count)]


def batch(shown: Sequence[Tree] = (), *, paths: bool = False, of: Sequence[Tree] | None = None) -> Batch:
    rng = np.random.default_rng(1)
    return pack([credited(tree, rng) for tree in of or trees()], paths=paths, experts=shown)


def demonstrations(count: int) -> list[Tree]:
    """Of one turn, two turns, and so on."""
    found = list[Tree]()
    for turns in range(1, count + 1):
        nodes = [N(parent=-1, kind=PROMPT, tokens=(1, 2))]
        for turn in range(turns):
            done = Outcome.TERMINATED if turn == turns - 1 else Outcome.OPEN
            nodes.append(N(parent=2 * turn, kind=ACTION, tokens=(5, 6, 7 + turn), source=Source.TEACHER))
            nodes.append(N(parent=2 * turn + 1, kind=OBSERVATION, tokens=(8,), outcome=done))
        found.append(build(*nodes, task=f"shown {turns}"))
    return found


def gradient(one: Learner) -> Tensor:
    return torch.cat([weight.grad.flatten() for weight in one.policy.parameters().values()])


@pytest.mark.parametrize("epochs", [1, 2])
def test_old_log_probabilities_are_those_before_the_update(epochs: int) -> None:
    one = learner(epochs=epochs, learning_rate=0.03)
    given = batch()
    given = replace(given, rollout_logprob=(one.logprobs(given) - 0.3).float())
    metrics = one.learn(given, Tis(objective=Reinforce()), Normalizer(), seed=0)
    assert metrics["policy/gap"] == pytest.approx(0.3, rel=1e-3)
    assert metrics["policy/gap_weight"] == pytest.approx(np.exp(0.3), rel=1e-3)
    assert one.rehearse(given, Tis(), Normalizer())["policy/gap_weight"] != pytest.approx(np.exp(0.3), rel=1e-3)


def test_a_policy_does_not_diverge_from_its_own_copy() -> None:
    one = learner()
    metrics = one.backward(batch(), Kl(), Normalizer(), context=ObjectiveContext(reference=one.policy.replica()))
    assert metrics["policy/kl_reference"] == pytest.approx(0, abs=1e-9)
    assert gradient(one).abs().max() < 1e-9


def test_estimates_have_the_temperature_of_the_learner() -> None:
    one, given = learner(), [rewarded(tree) for tree in trees()]
    seen = add_estimates(given, one.policy, critic=None, reference=one.policy, temperature=TEMPERATURE, micro_tokens=50)
    packed = pack([credited(tree, np.random.default_rng(1)) for tree in trees()])
    reference = np.concatenate([each.estimates["reference"] for each in seen])[packed.origin.numpy()]
    np.testing.assert_allclose(reference, one.logprobs(packed).numpy(), rtol=1e-5)


def test_the_packing_check_divides_by_the_temperature() -> None:
    """A leak too small to matter at 1 matters where logits are a hundred times as large."""
    model = policy()
    plain = model.hidden

    def leaking(tokens: Tensor, positions: Tensor, attend: Any, rows: Tensor | None = None, _: Any = None) -> Tensor:
        out = plain(tokens, positions, attend)
        mixed = out + 1e-4 * torch.cat([out[:1], out[:-1]])
        return mixed if rows is None else mixed[rows]

    model.hidden = leaking  # type: ignore[method-assign]
    assert packing_agrees(model, batch(), temperature=1.0)
    assert not packing_agrees(model, batch(), temperature=0.01)


class Nothing:
    """A loss with a gradient of 0."""

    def __call__(self, columns: LossInputs) -> Loss:
        return Loss(value=0.0 * columns.logprob.sum(), metrics={})


def test_weight_decay_shrinks_matrices_alone() -> None:
    one = learner(weight_decay=0.1, learning_rate=0.5)
    before = {name: weight.detach().clone() for name, weight in one.policy.parameters().items()}
    one.step(batch(), Nothing(), Normalizer())
    for name, weight in one.policy.parameters().items():
        shrunk = 1 - 0.5 * 0.1 if weight.ndim >= 2 else 1.0
        torch.testing.assert_close(weight.detach(), shrunk * before[name])


def test_the_gradient_is_scaled_down_to_its_largest_norm() -> None:
    one = learner(clip_norm=1e-3)
    assert one.step(batch(), PpoClip(), Normalizer())["optimizer/gradient_norm"] > 1e-3
    assert float(gradient(one).norm()) == pytest.approx(1e-3, rel=1e-3)


class Watched(Learner):
    """Notes the trained tokens of each optimizer step."""

    def step(self, batch: Batch, *given: Any, **more: Any) -> dict[str, float]:
        steps.append(tuple(batch.target.tolist()))
        return super().step(batch, *given, **more)


steps: list[tuple[int, ...]] = []


def test_each_epoch_splits_the_batch_in_its_own_way() -> None:
    steps.clear()
    one = Watched(policy(), Optimizer(epochs=4, minibatches=2), total_updates=10, temperature=1.0)
    one.learn(batch(), PpoClip(), Normalizer(), seed=0)
    epochs = [frozenset(steps[first : first + 2]) for first in range(0, 8, 2)]
    assert len({sum(map(len, parts)) for parts in epochs}) == 1, "each has all tokens"
    assert len(set(epochs)) > 1


@pytest.mark.parametrize("paths", [False, True], ids=["tokens", "paths"])
@pytest.mark.parametrize("micro_tokens", [9, 10**6])
def test_no_forward_pass_has_more_tokens_than_the_setting(micro_tokens: int, paths: bool) -> None:
    one, read = learner(micro_tokens=micro_tokens), list[tuple[int, bool]]()
    plain = one.policy.hidden

    def hidden(tokens: Tensor, *given: Any) -> Tensor:
        read.append((len(tokens), torch.is_grad_enabled()))
        return plain(tokens, *given)

    one.policy.hidden = hidden  # type: ignore[method-assign]
    objective = Tis() if not paths else Paths()
    one.backward(batch(paths=paths), objective, Normalizer(), old=batch().rollout_logprob)
    assert max(length for length, _ in read) <= micro_tokens
    assert (len([length for length, trains in read if trains]) > 1) == (micro_tokens == 9)


class Paths(Reinforce):
    """A loss in the path view."""

    @property
    def needs(self) -> frozenset[Any]:
        from bough.needs import PATHS

        return frozenset({PATHS})


@pytest.mark.parametrize("by", ["path_tokens", "paths", "unique_tokens"])
def test_demonstrations_have_a_mean_of_their_own(by: Any) -> None:
    """In the token view and in the path view: the weights of samples stay, however much is demonstrated."""
    shown, normalizer = demonstrations(2), Normalizer(by=by)
    sampled = [chains([1.0, 0.0, 0.5], turns=[1, 2, 3], task=task) for task in "ab"]
    found = list[Tensor]()
    for experts in ((), shown[:1], shown):
        given = batch(experts, paths=True, of=sampled)
        weight = loss_weights(given, normalizer)
        inputs = before_forward(given, frozenset(), ObjectiveContext(), loss_weight=weight)
        index = given.path_index
        assert index is not None
        expert = given.expert[index.trained]
        in_paths = by_path(inputs, given, normalizer).loss_weight
        for each, demonstrated in ((weight, given.expert), (in_paths, expert)):
            assert float(each[~demonstrated].sum()) == pytest.approx(1)
            assert float(each[demonstrated].sum()) == pytest.approx(1 if experts else 0)
        found.append(torch.cat([weight[~given.expert], in_paths[~expert]]))
    for each in found[1:]:
        torch.testing.assert_close(each, found[0])


def test_more_demonstrations_leave_the_gradient_of_samples() -> None:
    found = list[Tensor]()
    for experts in (demonstrations(1), demonstrations(3)):
        one = learner()
        one.backward(batch(experts), Chord(peak=0, valley=0), Normalizer())
        found.append(gradient(one))
    assert found[0].abs().max() > 0
    torch.testing.assert_close(found[0], found[1])
