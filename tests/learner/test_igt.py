"""Normalised policy gradient with implicit gradient transport: its recursion, what it is for, and where it is wired."""

import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.small import run as small
from tests.trees import credited, random_tree
from torch import Tensor

from bough.batch import pack
from bough.critics import ValueHead
from bough.learner import Learner, Optimizer
from bough.learner.igt import Igt
from bough.objective import Normalizer, PpoClip
from bough.policy import Tiny
from bough.schedule import LinearSchedule
from bough.train import Checkpointing, resume, start


def curvature(rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(6, 6))
    return root @ root.T + np.eye(6)


@pytest.mark.parametrize("weight", [0.1, 0.5, 1.0])
def test_the_recursion_on_a_quadratic_is_that_of_a_plain_loop(weight: float) -> None:
    rng = np.random.default_rng(0)
    h, noise = curvature(rng), rng.normal(size=(30, 6))
    rates = [0.05 * (1 - t / 30) for t in range(30)]
    x, before, d = np.ones(6), np.ones(6), np.zeros(6)
    one, other = torch.ones(2, dtype=torch.float64, requires_grad=True), torch.ones(2, 2, dtype=torch.float64)
    optimizer = Igt([{"params": [one]}, {"params": [other.requires_grad_()]}], lr=1.0, weight=weight)
    for t in range(30):
        w = max(weight, (2 / (t + 2)) ** 0.8)
        y = x + (1 - w) / w * (x - before)
        held = np.concatenate([one.detach().numpy(), other.detach().numpy().ravel()])
        assert held == pytest.approx(y, abs=1e-12)
        slope = h @ y + noise[t]
        one.grad, other.grad = (torch.as_tensor(part) for part in (slope[:2], slope[2:].reshape(2, 2)))
        for group in optimizer.param_groups:
            group["lr"] = rates[t]
        optimizer.step()
        d = (1 - w) * d + w * slope
        before, x = x, x - rates[t] * d / np.linalg.norm(d)
        assert optimizer.state[one]["iterate"].numpy() == pytest.approx(x[:2], abs=1e-12)
        assert np.linalg.norm(x - before) == pytest.approx(rates[t])


def test_without_noise_the_mean_is_the_gradient_at_the_iterate() -> None:
    """Which is what it is for: a mean of gradients at the iterates would lag behind."""
    rng = np.random.default_rng(1)
    h = torch.as_tensor(curvature(rng))
    x = torch.ones(6, dtype=torch.float64, requires_grad=True)
    optimizer = Igt([x], lr=0.1, weight=0.05)
    iterate = x.detach().clone()
    for _ in range(40):
        x.grad = h @ x.detach()
        optimizer.step()
        state = optimizer.state[x]
        assert state["direction"].numpy() == pytest.approx((h @ iterate).numpy(), abs=1e-9)
        iterate = state["iterate"].clone()


def test_the_worked_example() -> None:
    x = torch.ones((), dtype=torch.float64, requires_grad=True)
    optimizer = Igt([x], lr=0.1)
    held, iterates = [x.item()], [x.item()]
    for _ in range(2):
        x.grad = x.detach().clone()
        optimizer.step()
        held.append(x.item())
        iterates.append(optimizer.state[x]["iterate"].item())
    assert held == pytest.approx([1, 0.8617, 0.7259], abs=1e-4)
    assert iterates == pytest.approx([1, 0.9, 0.8])


def test_nothing_moves_without_a_gradient() -> None:
    still, none = (torch.ones(3, requires_grad=True) for _ in range(2))
    optimizer = Igt([still, none], lr=0.1)
    optimizer.step()
    for _ in range(3):
        still.grad = torch.zeros(3)
        optimizer.step()
    assert still.tolist() == none.tolist() == [1.0] * 3
    assert none not in optimizer.state


@pytest.mark.parametrize(("lr", "weight"), [(-1.0, 0.1), (0.1, 0.0), (0.1, 1.1), (float("nan"), 0.5)])
def test_settings_that_make_no_sense_are_refused(lr: float, weight: float) -> None:
    with pytest.raises(ValueError, match=r"Igt: got lr=.*need 0 or more, a number above 0 and up to 1"):
        Igt([torch.ones(1)], lr=lr, weight=weight)


def test_a_run_says_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"Optimizer.igt_weight: got 0.0; need a number above 0"):
        Optimizer(igt_weight=0.0)
    with pytest.raises(ValueError, match=r"Optimizer.weight_decay: got 0.1 with momentum='igt'; need 0"):
        Optimizer(momentum="igt", weight_decay=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_a_bandit(seed: int) -> None:
    """Ten arms, the best of which pays .9 on average and the next .6; one pull a step."""
    generator = torch.Generator().manual_seed(seed)
    pays = torch.linspace(0.0, 0.6, 10)
    pays[3] = 0.9
    score = torch.zeros(10, requires_grad=True)
    optimizer = Igt([score], lr=0.03, weight=0.02)
    baseline = 0.0
    for _ in range(1500):
        optimizer.zero_grad()
        chances = score.log_softmax(0)
        arm = int(torch.multinomial(chances.detach().exp(), 1, generator=generator))
        paid = float(torch.rand((), generator=generator) < pays[arm])
        (-(paid - baseline) * chances[arm]).backward()
        baseline += 0.05 * (paid - baseline)
        optimizer.step()
    assert optimizer.state[score]["iterate"].softmax(0)[3].item() > 0.9


def learner(momentum: str, seed: int = 0) -> Learner:
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=128).build(["a b"])
    torch.manual_seed(seed)
    critic = ValueHead().build(16)
    settings = Optimizer(momentum=momentum, learning_rate=0.1, schedule=LinearSchedule(start=1.0, end=0.0))  # type: ignore[arg-type]
    return Learner(policy, settings, total_updates=10, temperature=1.0, critic=critic)


def weights(of: Learner) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in of.policy.parameters().items()}


def test_a_learner_moves_as_far_as_its_rate_says_and_leaves_the_critic_to_adam() -> None:
    rng = np.random.default_rng(0)
    batch = pack([credited(random_tree(rng, vocab=200), rng) for _ in range(4)])
    one = learner("igt")
    for update in range(3):
        iterate = {name: value.clone() for name, value in one.state.moments().items() if name.endswith("/iterate")}
        start_from = iterate or {f"{name}/iterate": weight for name, weight in weights(one).items()}
        metrics = one.step(batch, PpoClip(), Normalizer())
        moved = [one.state.moments()[name] - value for name, value in start_from.items() if name in one.state.moments()]
        far = torch.stack([each.double().square().sum() for each in moved]).sum().sqrt().item()
        assert far == pytest.approx(0.1 * (1 - update / 10), rel=1e-4)
        assert metrics["optimizer/learning_rate"] == pytest.approx(0.1 * (1 - update / 10))
    moments = {name.rpartition("/")[2] for name in one.state.moments() if not name.startswith("critic.")}
    assert moments == {"step", "iterate", "direction"}
    assert not {"iterate", "direction"} & {
        name.rpartition("/")[2] for name in one.state.moments() if name.startswith("critic.")
    }


@pytest.mark.parametrize("momentum", ["adam", "igt", "harpg"])
def test_a_learner_goes_on_from_its_state_bit_for_bit(momentum: str) -> None:
    rng = np.random.default_rng(0)
    batches = [pack([credited(random_tree(rng, vocab=200), rng) for _ in range(3)], paths=True) for _ in range(4)]
    one, other = learner(momentum), learner(momentum)
    for batch in batches[:2]:
        one.step(batch, PpoClip(), Normalizer())
    saved, held = {name: value.clone() for name, value in one.state.moments().items()}, weights(one)
    with torch.no_grad():
        for name, weight in other.policy.parameters().items():
            weight.copy_(held[name])
    other.state.load_moments(saved, updates=2)
    for batch in batches[2:]:
        one.step(batch, PpoClip(), Normalizer())
        other.step(batch, PpoClip(), Normalizer())
    assert all(torch.equal(weight, weights(other)[name]) for name, weight in weights(one).items())
    assert any(not torch.equal(weight, held[name]) for name, weight in weights(one).items())


@pytest.mark.parametrize("momentum", ["igt", "harpg"])
def test_a_resumed_run_is_bit_equal(momentum: Literal["igt", "harpg"], tmp_path: Path) -> None:
    run = small().replace(
        name="whole",
        steps=3,
        optimizer=Optimizer(momentum=momentum, learning_rate=0.02),
        filters=(),
        checkpointing=Checkpointing(every=1, keep=100),
    )
    whole = start(run, tmp_path).path
    cut = tmp_path / "cut"
    shutil.copytree(whole, cut)
    shutil.rmtree(cut / "final")
    for checkpoint in sorted((cut / "checkpoints").iterdir())[-2:]:
        shutil.rmtree(checkpoint)
    resume(cut)
    one, other = (load_file(folder / "final" / "model.safetensors") for folder in (whole, cut))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
