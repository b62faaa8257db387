"""iStar: the loss of its reward model, the rewards of steps, and a run that resumes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.small import world
from tests.trees import ACTION, OBSERVATION, PROMPT, N, as_replayed, build, chains, rewarded

from bough.credit import IStar
from bough.credit.istar import step_rewards
from bough.hooks import ImplicitReward
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.hooks.implicit_reward import ImplicitRewardState, pairs
from bough.learner.trained_copy import TrainedCopy
from bough.methods.istar import istar
from bough.policy import Lora, Tiny
from bough.policy.policy import Policy
from bough.rollout import Deadlines
from bough.store import Checkpoints
from bough.train import Evaluation, Tasks, Warmup, start
from bough.train.runtime import Runtime
from bough.tree import Floats, Outcome, Rewarded, path_view

OLD = -0.5
"""The log-probability of every token when it was sampled."""


class Table:
    """A model of one number for each token of the vocabulary: gradient descent on it is exact."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.logit = np.zeros(300)

    def logprobs(self, rewarded: Sequence[Rewarded]) -> list[Floats]:
        return [np.where(np.isnan(each.tree.logprob), np.nan, OLD + self.logit[each.tree.token]) for each in rewarded]

    def step(self, rewarded: Sequence[Rewarded], weight: Sequence[Floats]) -> float:
        for each, own in zip(rewarded, weight, strict=True):
            np.add.at(self.logit, each.tree.token, -self.rate * own)
        return 0.0

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"logit": self.logit.copy()}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.logit = state["logit"].copy()


def words(*paths: tuple[str, float], task: str = "task") -> Rewarded:
    """Paths of one turn for each letter, paid at their ends; equal beginnings are shared."""
    nodes, place = [N(parent=-1, kind=PROMPT, tokens=(1,))], {"": 0}
    for word, paid in paths:
        for length in range(1, len(word) + 1):
            if word[:length] in place:
                continue
            ends = length == len(word)
            outcome = Outcome.TERMINATED if ends else Outcome.OPEN
            pay = paid if ends else 0.0
            above, letter = place[word[: length - 1]], ord(word[length - 1])
            nodes.append(N(parent=above, kind=ACTION, tokens=(letter,), env_reward=pay, logprob=OLD))
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(2,), outcome=outcome))
            place[word[:length]] = len(nodes) - 1
    return rewarded(build(*nodes, task=task))


def begun(rate: float = 1.0, **settings: object) -> ImplicitRewardState:
    policy = PolicyAccess(copy=lambda *_: Table(rate))
    return ImplicitReward(**settings).build(HookSetup(policy=policy))  # type: ignore[arg-type]


def steps_of(found: Rewarded) -> list[list[float]]:
    """The reward of each turn, path by path."""
    view = path_view([found])
    return [each.tolist() for each in np.split(step_rewards(view), view.start[1:-1])]


def with_rewards(**rewards: Sequence[float]) -> Rewarded:
    """Two paths of two turns with these implicit rewards, of returns 1 and 0."""
    tree = words(("ab", 1.0), ("cd", 0.0))
    implicit = np.full(len(tree.tree.token), np.nan)
    implicit[np.flatnonzero(tree.tree.sampled)] = [*rewards["A"], *rewards["B"]]
    return replace(tree, estimates={"implicit": implicit})


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (IStar(as_released=True), [1.5, 1.1, -1.5, -0.3]),
        (IStar(as_released=True, norm="group"), [1.41421, 0.848527, -1.41421, 0.282841]),
        (IStar(), [1.2, 0.933333, -1.466667, -0.666667]),
        (IStar(norm="group"), [1.274054, 0.518125, -2.029982, 0.237804]),
        (IStar(weight=0.0), [1, 1, -1, -1]),
    ],
)
def test_the_worked_example(rule: IStar, expected: list[float]) -> None:
    found = with_rewards(A=[0.3, 0.1], B=[-0.2, 0.4])
    (credited,) = rule([found])
    advantage = credited.path_advantage
    assert advantage.tolist() == pytest.approx(expected, abs=2e-5)


def test_one_pair_by_hand() -> None:
    """The first loss is log 2; a step of size 1 moves each token by beta / 2, so each step is paid beta * beta / 2."""
    state = begun(beta=0.5)
    (found,) = state.transform([words(("ab", 1.0), ("cd", 0.0))], 0)
    assert steps_of(found) == [pytest.approx([0.125, 0.125]), pytest.approx([-0.125, -0.125])]
    assert state.observe() == pytest.approx(
        {"implicit/pairs": 1, "implicit/loss": np.log(2), "implicit/accuracy": 0, "implicit/gradient_norm": 0}
    )


def test_a_pair_that_is_told_apart_teaches_less() -> None:
    """Each step of size 1 moves the margin m of two tokens by 2 * sigmoid(-m)."""
    state, margin = begun(beta=1.0), 0.0
    for _ in range(3):
        state.transform([words(("a", 1.0), ("b", 0.0))], 0)
        metrics = state.observe()
        assert metrics["implicit/loss"] == pytest.approx(np.log1p(np.exp(-margin)))
        assert metrics["implicit/accuracy"] == (margin > 0)
        margin += 2 / (1 + np.exp(margin))


def test_a_shared_turn_is_no_evidence() -> None:
    """Both paths of a pair contain it, so its gradients cancel."""
    (found,) = begun().transform([words(("sab", 1.0), ("scd", 0.0))], 0)
    good, bad = steps_of(found)
    assert good[0] == bad[0] == 0
    assert min(good[1:]) > 0 > max(bad[1:])


def test_the_sum_over_steps_and_the_mean_of_the_released_code() -> None:
    """A success of four steps and a failure of one: the mean divides the gradient of each step by 4."""
    paths = words(("abcd", 1.0), ("e", 0.0))
    (summed,) = begun(beta=1.0).transform([paths], 0)
    (mean,) = begun(beta=1.0, as_released=True).transform([paths], 0)
    assert steps_of(summed) == [pytest.approx([0.5] * 4), pytest.approx([-0.5])]
    assert steps_of(mean) == [pytest.approx([0.125] * 4), pytest.approx([-0.5])]


def test_the_step_that_matters_has_the_highest_reward() -> None:
    """Chains of five steps of two arms each, of which only the third decides: after 100 batches it ranks first."""
    rng, state = np.random.default_rng(0), begun(rate=20.0)
    paid = list[NDArray[np.float64]]()
    for _ in range(100):
        drawn = rng.integers(0, 2, (2, 5))
        drawn[:, 2] = 1, 0
        arms = ["".join("abcdefghij"[2 * place + int(arm)] for place, arm in enumerate(row)) for row in drawn]
        (found,) = state.transform([words((arms[0], 1.0), (arms[1], 0.0))], 0)
        paid.append(np.asarray(steps_of(found)[0]))
    mean = np.mean(paid[50:], axis=0)
    assert int(mean.argmax()) == 2
    assert mean[2] > 3 * np.abs(np.delete(mean, 2)).max()


def test_pairs_are_of_one_task_and_of_unequal_returns() -> None:
    state = begun()
    one, other = words(("a", 1.0), ("b", 1.0)), words(("c", 0.0), ("d", 0.0), task="other")
    found = state.transform([one, other], 0)
    assert [steps_of(each) for each in found] == [[[0], [0]], [[0], [0]]]
    assert state.observe() == {"implicit/pairs": 0}
    state.transform([as_replayed(words(("a", 1.0), ("b", 0.0)))], 0)
    assert state.observe() == {"implicit/pairs": 0}, "earlier steps were sampled by other weights"
    state.transform([words(("a", 1.0), ("b", 1.0), ("c", 0.0), ("d", 0.0))], 0)
    assert state.observe()["implicit/pairs"] == 4, "every success with every failure"


def test_when_the_model_learns_and_how_far_a_token_counts() -> None:
    after = begun(update="after")
    paths = words(("a", 1.0), ("b", 0.0))
    assert steps_of(after.transform([paths], 0)[0]) == [[0], [0]]
    assert steps_of(after.transform([paths], 0)[0])[0][0] > 0
    (far,) = begun(rate=1e6, beta=0.1, clip=5.0).transform([paths], 0)
    assert steps_of(far) == [[pytest.approx(0.5)], [pytest.approx(-0.5)]]


def policy(lora: Lora | None = None) -> Policy:
    made = Tiny(layers=1, width=16, heads=2, vocab_tokens=300).build(["a text"])
    if lora is not None:
        from bough.policy.adapters import adapt

        adapt(made._model.model, lora)  # pyright: ignore[reportPrivateUsage]
    return made


def copied(of: Policy) -> TrainedCopy:
    return TrainedCopy(of, learning_rate=0.01, clip_norm=1e9, temperature=1.0, micro_tokens=64)


@pytest.mark.parametrize("lora", [None, Lora(rank=2)])
def test_a_copy_learns_beside_the_policy(lora: Lora | None) -> None:
    """Its gradient is that of the weighted sum; the policy does not change; it resumes bit for bit."""
    own = policy(lora)
    before = own.state()
    copy, paths = copied(own), words(("ab", 1.0), ("acd", 0.0))
    weight = np.where(paths.tree.sampled, np.arange(len(paths.tree.token)) - 4.0, 0.0)
    first = copy.logprobs([paths])[0]
    for _ in range(5):
        copy.step([paths], [weight])
    later = copy.logprobs([paths])[0]
    sampled = paths.tree.sampled
    assert (later * weight)[sampled].sum() < (first * weight)[sampled].sum() - 0.01
    assert all(torch.equal(value, before[name]) for name, value in own.state().items())
    again = copied(own)
    again.load_state(copy.state())
    for each in (copy, again):
        each.step([paths], [weight])
    assert np.array_equal(copy.logprobs([paths])[0], again.logprobs([paths])[0], equal_nan=True)


def test_a_run_keeps_the_model_in_its_checkpoint(tmp_path: Path) -> None:
    """A runtime restores it bit for bit; its weights differ from the policy's."""
    few = Evaluation(tasks=Tasks(split="test", count=1), every=10)
    run = istar(world(), learning_rate=1e-2).replace(steps=1, warmup=Warmup(), evaluation=few)
    directory = start(run, tmp_path, terminal=False)
    checkpoint = Checkpoints(directory=directory.checkpoints).latest().checkpoint
    assert checkpoint is not None
    saved = checkpoint.tensors("adviser_0_ImplicitReward")
    (hook,) = Runtime(run, directory.policy, Deadlines()).main.hooks.memories.values()
    hook.load_state(saved)
    assert all(torch.equal(value, saved[name]) for name, value in hook.state().items())
    policy_weights = checkpoint.tensors("policy")
    assert any(not torch.equal(saved[f"model/weights/{name}"], value) for name, value in policy_weights.items())


def test_settings() -> None:
    with pytest.raises(ValueError, match=r"beta: got 0"):
        ImplicitReward(beta=0)
    with pytest.raises(ValueError, match=r"updates: got 0; need at least 1"):
        ImplicitReward(updates=0)
    with pytest.raises(ValueError, match=r"needs the estimate 'implicit' of a hook"):
        start(world().run(credit=IStar()), Path("unused"), terminal=False)


def test_returns_that_differ_by_rounding_make_no_pair() -> None:
    view = path_view([rewarded(chains([0.1 + 0.2, 0.3, 1e9 / 3, 1e9 / 3 + 1e-7, 0.2999]))])
    better, worse = (side.tolist() for side in pairs(view))
    assert {*zip(better, worse, strict=True)} == {(2, 0), (2, 1), (3, 0), (3, 1), *((at, 4) for at in range(4))}
