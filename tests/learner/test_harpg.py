"""N-HARPG: its recursion, its Hessian-vector products against exact ones, and how a learner takes its steps."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build
from torch import Tensor

from bough.batch import Batch, pack
from bough.critics import ValueHead
from bough.learner import Learner, Optimizer
from bough.learner.harpg import Displaced, Harpg, gradient_change, share_of_move
from bough.methods.n_harpg import n_harpg
from bough.objective import LossInputs, Normalizer, Objective, PpoClip, Reinforce
from bough.objective.inputs import PathIds
from bough.policy import Tiny
from bough.tree import Credited, Outcome, Rewarded
from bough.worlds.frozenlake.preset import frozenlake


@pytest.mark.parametrize("weight", [0.1, 1.0])
def test_the_recursion_on_a_quadratic_is_that_of_a_plain_loop(weight: float) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    h, noise = root @ root.T, rng.normal(size=(2, 10, 6))
    x, before, d = np.ones(6), np.ones(6), np.zeros(6)
    one, other = torch.ones(2, dtype=torch.float64, requires_grad=True), torch.ones(2, 2, dtype=torch.float64)
    optimizer = Harpg([{"params": [one]}, {"params": [other.requires_grad_()]}], lr=0.1, weight=weight)

    def step(at: np.ndarray, gradient: np.ndarray) -> None:
        held = np.concatenate([one.detach().numpy(), other.detach().numpy().ravel()])
        assert held == pytest.approx(at, abs=1e-12)
        one.grad, other.grad = (torch.as_tensor(part) for part in (gradient[:2], gradient[2:].reshape(2, 2)))
        optimizer.step()

    for t in range(10):
        if t:
            q = share_of_move(0, t)
            along = optimizer.along()
            assert along is not None
            assert along[one].numpy() == pytest.approx((x - before)[:2], abs=1e-12)
            v = h @ (x - before) + noise[0, t]
            step(q * x + (1 - q) * before, v)
            d += v
        assert optimizer.along() is None
        w = max(weight, 2 / (t + 2))
        gradient = h @ x + noise[1, t]
        step(x, gradient)
        d = (1 - w) * d + w * gradient
        before, x = x, x - 0.1 * d / np.linalg.norm(d)


def test_the_worked_example() -> None:
    x = torch.ones((), dtype=torch.float64, requires_grad=True)
    optimizer = Harpg([x], lr=0.1)
    held, means = [x.item()], []
    for t in range(4):
        along = optimizer.along()
        assert (along is None) == (t % 2 == 0)
        x.grad = x.detach().clone() if along is None else along[x].clone()
        optimizer.step()
        held.append(x.item())
        means.append(optimizer.state[x]["direction"].item())
    assert held == pytest.approx([1, 0.9939, 0.9, 0.8082, 0.8], abs=1e-4)
    assert means == pytest.approx([1, 0.9, 0.9, 0.8])


@pytest.mark.parametrize(("lr", "weight"), [(-1.0, 0.1), (0.1, 0.0), (float("nan"), 0.5)])
def test_settings_that_make_no_sense_are_refused(lr: float, weight: float) -> None:
    with pytest.raises(ValueError, match=r"Harpg: got lr=.*need 0 or more, a number above 0 and up to 1"):
        Harpg([torch.ones(1)], lr=lr, weight=weight)


# Two turns of two actions; the first decides the second's state. Scores are [state, action]; each path has a return.
PATHS = list(product(range(2), range(2)))
PAYS = {(0, 0): 1.0, (0, 1): -0.5, (1, 0): 2.0, (1, 1): 0.25}


def chosen(scores: Tensor) -> Tensor:
    """[8]: the log-probability of the two actions of each path."""
    logs = scores.log_softmax(-1)
    return torch.stack([each for one, two in PATHS for each in (logs[0, one], logs[1 + one, two])])


def expected(scores: Tensor) -> Tensor:
    """Minus the expected return, by enumeration: the loss."""
    chances = chosen(scores).reshape(4, 2).sum(1).exp()
    return -(chances * torch.tensor([PAYS[path] for path in PATHS], dtype=scores.dtype)).sum()


def columns(scores: Tensor, sampled: Tensor) -> LossInputs:
    """All paths, each as often as the scores `sampled` write it; the returns are the advantages."""
    pays = torch.tensor([PAYS[path] for path in PATHS], dtype=scores.dtype).repeat_interleave(2)
    old = chosen(sampled).detach()
    path = torch.arange(4).repeat_interleave(2)
    return LossInputs(
        logprob=chosen(scores),
        rollout_logprob=old,
        positive=pays.clamp(min=0),
        negative=pays.clamp(max=0),
        loss_weight=old.reshape(4, 2).sum(1).exp()[path],
        old=old,
        path_ids=PathIds(
            path=path,
            turn=torch.arange(8),
            task=torch.zeros(4, dtype=torch.int64),
            context_id=torch.arange(8),
            path_of_turn=path,
        ),
    )


@pytest.mark.parametrize("objective", [Reinforce(), PpoClip(), PpoClip(ratio="sequence")], ids=str)
def test_its_mean_over_all_paths_is_the_exact_hessian_vector_product(objective: Objective) -> None:
    """With any objective that has the policy gradient where it sampled; without the paths' ratios it is another."""
    generator = torch.Generator().manual_seed(3)
    scores, move = (torch.randn(3, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    scores.requires_grad_()
    here, move = scores.detach().clone(), 0.01 * move
    _, exact = torch.autograd.functional.hvp(expected, here, move)  # type: ignore[no-untyped-call]

    def change(loss: Callable[[LossInputs], object]) -> Tensor:
        def gradient() -> dict[str, float]:
            found = loss(columns(scores, here))
            found.value.backward()  # type: ignore[attr-defined]
            return {}

        scores.grad = None
        gradient_change(gradient, {scores: move})
        assert torch.equal(scores.detach(), here)
        assert scores.grad is not None
        return scores.grad

    found = change(Displaced(objective))
    assert (found - exact).norm() < 1e-4 * exact.norm()
    sides = [torch.autograd.functional.jacobian(expected, here + side * move) for side in (0.5, -0.5)]
    assert found.numpy() == pytest.approx((sides[0] - sides[1]).numpy(), abs=1e-12)
    assert (change(objective) - exact).norm() > 0.1 * exact.norm()


def learner(critic: ValueHead | None = None) -> Learner:
    policy = Tiny(layers=1, width=8, heads=2, vocab_tokens=260, context_tokens=16, dtype="float64").build(["a b"])
    settings = Optimizer(momentum="harpg", learning_rate=0.02)
    heads = None if critic is None else critic.build(8).double()
    return Learner(policy, settings, total_updates=10, temperature=1.0, critic=heads)


def every_answer(one: Learner, pays: np.ndarray) -> Batch:
    """A path for each token of the vocabulary, worth what it pays times how likely it is now."""
    vocab = one.policy.vocab_tokens
    nodes = [N(parent=-1, kind=PROMPT, tokens=(5, 6))]
    for token in range(vocab):
        nodes.append(N(parent=0, kind=ACTION, tokens=(token,)))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=Outcome.TERMINATED))
    tree = build(*nodes)
    given = Rewarded(tree=tree, channels={})

    def batch(worth: np.ndarray) -> Batch:
        return pack([Credited(rewarded=given, path_advantage=worth.astype(np.float64))], paths=True)

    chance = one.logprobs(batch(np.zeros(vocab))).exp().numpy()
    assert chance.sum() == pytest.approx(1)
    return batch(chance * pays * vocab)


def gradients(one: Learner) -> Tensor:
    return torch.cat([weight.grad.flatten() for weight in one.policy.parameters().values() if weight.grad is not None])


def test_a_learner_adds_up_what_its_gradient_changes_by() -> None:
    """Over all answers there are, the product is the difference of the exact gradients half a move to either side."""
    pays = np.random.default_rng(0).random(260)
    one = learner(ValueHead())
    at = [{name: weight.detach().clone() for name, weight in one.policy.parameters().items()}]
    one.step(every_answer(one, pays), Reinforce(), Normalizer())
    held = {name: weight.detach().clone() for name, weight in one.policy.parameters().items()}
    metrics = one.step(every_answer(one, pays), Reinforce(), Normalizer())
    found = gradients(one)
    assert metrics["optimizer/gradient_norm"] == pytest.approx(found.norm().item())
    at.append({name: weight.detach().clone() for name, weight in one.policy.parameters().items()})
    moved = {name: at[1][name] - at[0][name] for name in held}
    assert sum(float(each.square().sum()) for each in moved.values()) ** 0.5 == pytest.approx(0.02)
    q = share_of_move(0, 1)
    assert all(torch.allclose(held[name], at[0][name] + q * moved[name]) for name in held)
    sides = []
    for side in (0.5, -0.5):
        with torch.no_grad():
            for name, weight in one.policy.parameters().items():
                weight.copy_(held[name] + side * moved[name])
                weight.grad = None
        one.backward(every_answer(one, pays), Reinforce(), Normalizer())
        sides.append(gradients(one).clone())
    assert (found - (sides[0] - sides[1])).norm() < 1e-5 * found.norm()


def test_the_method_takes_its_steps() -> None:
    optimizer = n_harpg(frozenlake(), step=0.02, weight=0.5).world.optimizer
    assert (optimizer.momentum, optimizer.learning_rate, optimizer.igt_weight) == ("harpg", 0.02, 0.5)
    policy = Tiny(layers=1, width=8, heads=2, vocab_tokens=260, context_tokens=16, dtype="float64").build(["a b"])
    one = Learner(policy, replace(optimizer, warmup_steps=0), total_updates=10, temperature=1.0)
    before = torch.cat([weight.detach().flatten().clone() for weight in policy.parameters().values()])
    one.step(every_answer(one, np.random.default_rng(0).random(260)), Reinforce(), Normalizer())
    moves = one.state.optimizers.along()
    assert moves is not None
    assert sum(float(move.square().sum()) for move in moves.values()) ** 0.5 == pytest.approx(0.02)
    now = torch.cat([weight.detach().flatten() for weight in policy.parameters().values()])
    # Between the last two iterates.
    assert 0 < float((now - before).square().sum()) ** 0.5 < 0.02


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"Optimizer: got epochs=1, minibatches=2 with momentum='harpg'.*need epochs=1"
    ):
        Optimizer(momentum="harpg", minibatches=2)
    with pytest.raises(ValueError, match=r"Optimizer.weight_decay: got 0.1 with momentum='harpg'; need 0"):
        Optimizer(momentum="harpg", weight_decay=0.1)
    nothing = replace(columns(torch.zeros(3, 2), torch.zeros(3, 2)), old=None)
    with pytest.raises(ValueError, match="Harpg: got inputs without `old`"):
        Displaced(Reinforce())(nothing)


@pytest.mark.parametrize("seed", [0])
def test_it_learns_a_bandit(seed: int) -> None:
    """Ten arms, the best of which pays .9 on average and the next .6; one pull an update."""
    generator = torch.Generator().manual_seed(seed)
    pays = torch.linspace(0.0, 0.6, 10)
    pays[3] = 0.9
    score = torch.zeros(10, requires_grad=True)
    optimizer = Harpg([score], lr=0.03, weight=0.02)
    baseline = 0.0

    def gradient(arm: int, held: Tensor, advantage: float) -> dict[str, float]:
        logs = score.log_softmax(0)
        weight = (logs[arm] - held.log_softmax(0)[arm]).exp().detach()
        (-advantage * weight * logs[arm]).backward()
        return {}

    for _ in range(1500):
        optimizer.zero_grad()
        held = score.detach().clone()
        arm = int(torch.multinomial(held.softmax(0), 1, generator=generator))
        paid = float(torch.rand((), generator=generator) < pays[arm])
        along = optimizer.along()
        if along is None:
            gradient(arm, held, paid - baseline)
        else:
            gradient_change(partial(gradient, arm, held, paid - baseline), along)
        baseline += 0.05 * (paid - baseline)
        optimizer.step()
    assert optimizer.state[score]["iterate"].softmax(0)[3].item() > 0.9
