"""The dry pass: pieces that do not fit raise on a synthetic group before the warm-up; no state changes."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.engines import Fronted, Recorder
from tests.small import run as small

from bough.config import ConfigError, override
from bough.credit import Gae, Grpo, ReinforcePlusPlus
from bough.critics import ValueHead
from bough.curate import FilterResult
from bough.explore import Chains
from bough.objective import (
    Kl,
    Loss,
    LossInputs,
    Mis,
    Need,
    PpoClip,
    Reinforce,
    Sum,
    ValueClip,
    compute_loss,
)
from bough.reward import EnvReward, Success
from bough.rollout import Deadlines, paths_of
from bough.train import Run, Runtime, start
from bough.train.check import check
from bough.train.dry_pass import dry_pass
from bough.tree import Credited, Floats, Rewarded, StageError, Tree


def rehearsed(run: Run, folder: Path) -> Runtime:
    runtime = Runtime(run, folder, Deadlines())
    asyncio.run(dry_pass(runtime))
    return runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pays:
    """A reward that returns given values for each tree."""

    returned: str

    def __call__(self, group: Sequence[Tree]) -> Sequence[Mapping[str, Floats]]:
        made = {
            "a number": lambda tree: float(tree.nodes),
            "one too few": lambda tree: np.zeros(tree.nodes - 1),
            "texts": lambda tree: np.array(["a"] * tree.nodes),
            "nan": lambda tree: np.full(tree.nodes, np.nan),
        }
        channels = [{"mine": made[self.returned](tree)} for tree in group if self.returned in made]
        return {"nothing": None, "no mapping": [3.0] * len(group), "no trees": []}.get(self.returned, channels)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("a number", r"rewards=Pays: channel 'mine' of task frozenlake-\w+: got float; need an array of \d+ numbers"),
        ("one too few", r"rewards=Pays: channel 'mine' of task \S+: got float64 of shape \(\d+,\); need an array of"),
        ("texts", r"rewards=Pays: channel 'mine' of task \S+: got <U1 of shape"),
        ("nan", r"rewards=Pays: channel 'mine' of task \S+: got nan at node 0; need finite numbers"),
        ("nothing", r"rewards=Pays: got NoneType; need a list with one mapping of channels"),
        ("no mapping", r"rewards=Pays: got float for a tree; need one mapping of channels"),
        ("no trees", r"rewards=Pays: got channels of 0 trees for 1; need one mapping of channels"),
    ],
)
def test_a_reward_of_the_wrong_shape_or_kind(returned: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=told):
        rehearsed(small().replace(rewards=(Pays(returned=returned),)), tmp_path)


def test_rewards_of_any_number_type_are_taken(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Single:
        def __call__(self, group: Sequence[Tree]) -> Sequence[Mapping[str, Floats]]:
            return [{"single": np.ones(tree.nodes, np.float32), "whole": np.ones(tree.nodes, int)} for tree in group]

    rehearsed(small().replace(rewards=(Single(),)), tmp_path)


def test_two_rewards_that_pay_one_channel(tmp_path: Path) -> None:
    run = small().replace(rewards=(EnvReward(), EnvReward()))
    with pytest.raises(ConfigError, match=r"rewards, hooks: got EnvReward twice, which write the channel 'env'; need"):
        start(run, tmp_path, terminal=False)
    assert not list(tmp_path.iterdir()), "the name must be free for the next attempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credits:
    """GRPO that returns only part of its trees."""

    returned: str

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        credited = Grpo()(rewarded)
        whole = np.zeros(len(credited[0].tree.token))
        made = {
            "fewer": lambda: credited[1:],
            "turned round": lambda: credited[::-1],
            "rewarded": lambda: list(rewarded),
            "none": lambda: None,
            "list": lambda: [replace(each, path_advantage=[0.0]) for each in credited],  # type: ignore[arg-type]
            "entries": lambda: [replace(each, path_advantage=np.zeros(1)) for each in credited],
            "leaf": lambda: [replace(each, excluded_leaves=np.array([0])) for each in credited],
            "goal": lambda: [replace(credited[0], value_targets={"value": whole[1:]}), *credited[1:]],
        }
        return made[self.returned]()  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("fewer", "credit=Credits: got 1 trees for 2; need one Credited for each Rewarded, in their order"),
        (
            "turned round",
            r"credit=Credits: got another tree at place 0 \(task \S+\) than was given \(task \S+\); need one",
        ),
        ("rewarded", "credit=Credits: got Rewarded at place 0; need one Credited"),
        ("none", "credit=Credits: got NoneType; need a list with one Credited"),
        ("list", "credit=Credits: Credited.path_advantage: got list; need an array"),
        (
            "entries",
            r"credit=Credits: Credited.path_advantage: got float64 of shape \(1,\); need an array",
        ),
        ("leaf", r"credit=Credits: Credited.excluded_leaves: got \[0\]; need leaves of counted paths"),
        ("goal", r"credit=Credits: Credited.value_targets\['value'\]: got float64 of shape"),
    ],
)
def test_a_credit_rule_that_returns_something_else(returned: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=told):
        rehearsed(small().replace(credit=Credits(returned=returned)), tmp_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeps:
    """A filter that does not return a selection."""

    returned: str

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        made = {
            "list": lambda: list(credited),
            "copies": lambda: FilterResult(trees=tuple(Grpo()([_copy(each)])[0] for each in credited), dropped={}),
            "twice": lambda: FilterResult(trees=(*credited, *credited), dropped={}),
            "rewarded": lambda: FilterResult(trees=tuple(each.rewarded for each in credited), dropped={}),  # type: ignore[misc]
        }
        return made[self.returned]()  # type: ignore[return-value]


def _copy(credited: Credited) -> Rewarded:
    return replace(credited.rewarded, tree=replace(credited.tree))


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("list", r"filters=Keeps: got list; need FilterResult\(trees=..., dropped=...\) with some of the given trees"),
        (
            "copies",
            r"filters=Keeps: got a tree that was not given, or twice, or out of order \(task \S+\); need FilterResult",
        ),
        ("twice", "filters=Keeps: got a tree that was not given, or twice, or out of order"),
        ("rewarded", "filters=Keeps: got Rewarded among the trees; need FilterResult"),
    ],
)
def test_a_filter_that_returns_something_else(returned: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=told):
        rehearsed(small().replace(filters=(Keeps(returned=returned),)), tmp_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loses:
    """A loss that is no scalar with a gradient, or is not finite."""

    returned: str
    needs: frozenset[Need] = frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        made = {
            "number": lambda: 1.0,
            "constant": lambda: Loss(value=torch.zeros(()), metrics={}),
            "tensor": columns.logprob.sum,
            "each": lambda: _loss(columns.logprob),
            "metric": lambda: _loss(columns.logprob.sum(), ratio=columns.logprob.detach()),
            "detached": lambda: Loss(value=(columns.advantage * columns.logprob.detach()).sum(), metrics={}),
            "zero": lambda: Loss(value=(columns.logprob - columns.rollout_logprob).sum() * 0, metrics={}),
            "nan": lambda: Loss(value=columns.logprob.sum() * torch.nan, metrics={}),
            "slope": lambda: Loss(value=(columns.logprob - columns.logprob.detach()).sqrt().sum(), metrics={}),
        }
        return made[self.returned]()  # type: ignore[return-value]


def _loss(value: torch.Tensor, **metrics: torch.Tensor) -> Loss:
    """A loss of any shapes: those of a user's are checked nowhere but in the run."""
    loss = object.__new__(Loss)
    for name, field in (("value", value), ("metrics", metrics)):
        object.__setattr__(loss, name, field)
    return loss


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("number", "objective=Loses: got float; need a Loss"),
        ("constant", "objective=Loses: got a Loss whose value has no gradient; need a Loss whose value is a scalar"),
        ("tensor", r"objective=Loses: got a tensor of shape \[\]; need a Loss whose value is a scalar with a gradient"),
        ("each", r"objective=Loses: got a Loss with a tensor of shape \[\d+\] as value; need a Loss whose value is a"),
        ("metric", r"objective=Loses: got a tensor of shape \[\d+\] as metric 'ratio'; need one number: a sum"),
        ("detached", "objective=Loses: got a Loss whose value has no gradient; .* compute it from columns.logprob"),
        ("zero", "objective=Loses: got a gradient of 0 on a synthetic batch with advantages; need a loss that depends"),
        ("nan", r"objective=Loses: got {.*'loss/total': nan.*} on a synthetic batch; need a finite loss"),
        ("slope", r"objective=Loses: got {'optimizer/gradient_norm': nan} on a synthetic batch; need a finite loss"),
    ],
)
def test_a_loss_that_is_none(returned: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        rehearsed(small().replace(objective=Loses(returned=returned)), tmp_path)


@pytest.mark.parametrize("returned", ["tensor", "each", "metric", "detached", "zero"])
def test_a_divergence_hides_no_broken_loss(returned: str, tmp_path: Path) -> None:
    """Inside a sum and inside a correction the objective is named, not the whole."""
    broken = Loses(returned=returned)
    with pytest.raises(ValueError, match="objective=Loses: got "):
        rehearsed(small().replace(objective=broken, regularizers=(Kl(coefficient=0.1),)), tmp_path)
    if returned != "zero":
        with pytest.raises(ValueError, match="objective=Loses: got "):
            compute_loss(Sum(terms=(Reinforce(), Mis(objective=broken))), example())


def example() -> LossInputs:
    logprob = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    mask = torch.ones(1, 2, dtype=torch.bool)
    return LossInputs.from_matrices(logprob=logprob, advantage=torch.ones(1, 2), mask=mask, old=logprob.detach())


def test_one_path_a_task_and_a_rule_that_compares_them(tmp_path: Path) -> None:
    assert paths_of(Chains(n=3)) == 3
    run = small().replace(explorer=Chains(n=1))
    told = (
        "explorer=Chains: got 1 path a task and credit=Grpo, .* no advantage; set explorer.n=2 or more, or take a rule"
    )
    with pytest.raises(ConfigError, match=told):
        rehearsed(run, tmp_path / "grpo")
    critic = {"critic": ValueHead(), "objective": Sum(terms=(PpoClip(), ValueClip()))}
    rehearsed(run.replace(credit=Gae(), **critic), tmp_path / "gae")
    rehearsed(run.replace(credit=ReinforcePlusPlus()), tmp_path / "reinforce")
    # A path that is alone keeps its return.
    rehearsed(run.replace(credit=Grpo(as_released=True)), tmp_path / "released")
    # A task comes several times into a batch of more tasks than there are.
    few = run.replace(tasks=replace(run.world.tasks, count=2), warmup=replace(run.world.warmup, demonstrations=0))
    rehearsed(few, tmp_path / "few")


def test_nothing_changes(tmp_path: Path) -> None:
    fronts: list[Recorder] = []
    run = small().replace(engine=Fronted(front=lambda engine: fronts.append(Recorder(engine)) or fronts[-1]))
    runtime = Runtime(run, tmp_path, Deadlines())
    weights = {name: weight.clone() for name, weight in runtime.policy.parameters().items()}
    random.seed(1)
    states = (random.getstate(), torch.get_rng_state(), np.random.get_state()[1].copy())  # type: ignore[index]

    @dataclass(frozen=True)
    class Random:
        def __call__(self, group: Sequence[Tree]) -> Sequence[Mapping[str, Floats]]:
            draw = random.random() + np.random.random() + float(torch.rand(()))
            return [{"luck": np.full(tree.nodes, draw)} for tree in group]

    runtime.run = run.replace(rewards=(Random(), Success()))
    asyncio.run(dry_pass(runtime))
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert np.array_equal(np.random.get_state()[1], states[2])  # type: ignore[index]
    for name, weight in runtime.policy.parameters().items():
        assert torch.equal(weight, weights[name])
        assert weight.grad is None
    assert runtime.main.learner.updates == 0
    assert not runtime.main.learner.state.moments()
    assert not fronts[0].heard, "the run's own engine generates nothing"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("optimizer.learning_rate=nan", "optimizer.learning_rate: got nan; need a number"),
        ("optimizer.learning_rate=inf", "Optimizer.learning_rate: got inf; need a finite number"),
        ("warmup.learning_rate=inf", "Warmup.learning_rate: got inf; need a finite number"),
        ("sampling.temperature=inf", r"Sampling.temperature: got inf; need 0 \(greedy\), or a finite number"),
        ("limits.env_deadline_s=inf", "limits.env_deadline_s: .*got inf; need a finite number"),
        ("rewards=[EnvReward(weight=inf)]", "rewards.0: EnvReward.weight: got inf; need a finite number"),
        ("credit=Grpo(epsilon=nan)", "credit.epsilon: got nan; need a number"),
        ("objective=PpoClip(low=nan)", "objective.low: got nan; need a number"),
        ("evaluation.temperature=nan", "evaluation.temperature: got nan; need a number"),
    ],
)
def test_settings_that_are_no_finite_numbers(change: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check(override(small(), [change]))


def test_settings_of_a_run_that_python_made() -> None:
    with pytest.raises(ValueError, match=r"Limits.env_deadline_s: got inf; need a finite number"):
        check(small().replace(limits=replace(small().world.limits, env_deadline_s=float("inf"))))
    # Where inf has a meaning it is taken.
    check(override(small(), ["health.gap=inf"]))
