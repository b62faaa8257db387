"""Metrics of reward channels, and the report of a reward that rises without success."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from tests.small import run
from tests.trees import chains

from bough.hooks import PickPaths, ValueResampling
from bough.hooks.hook import HookSetup
from bough.learner import Optimizer
from bough.reward import EnvReward, compute_rewards
from bough.store import StepLines, read_metrics
from bough.train import Health, Warmup, start
from bough.train.channels import channel_metrics, real_episodes
from bough.train.result import Result
from bough.train.summary import summarize
from bough.tree import Floats, Kind, Rewarded, Tree, counted, leaves
from bough.view import reward_table, rising_rewards


def paying(task: str, success: Sequence[bool], paid: Sequence[float]) -> Rewarded:
    """Chains that succeed or not, with a channel "bonus" at their leaves."""
    tree = chains([float(each) for each in success], task=task)
    bonus = np.zeros(tree.nodes)
    bonus[leaves(tree)] = paid
    return Rewarded(tree=tree, channels={"env": tree.env_reward, "bonus": bonus})


def test_pair_accuracy_counts_pairs_of_one_task() -> None:
    """In task a, two of three pairs are ordered as success is and one is tied; b has no pair, c is its opposite."""
    batch = [
        paying("a", [True, False, False, False], [1, 0, 0.5, 1]),
        paying("b", [True, True], [5, 7]),
        paying("c", [False, True], [2, 1]),
    ]
    found = channel_metrics(batch)
    assert found["reward_pair_accuracy/bonus"] == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert found["reward_pair_accuracy/env"] == 1
    assert found["reward_nonzero_std/bonus"] == 1
    assert found["reward_nonzero_std/env"] == pytest.approx(2 / 3)
    assert found["reward/bonus"] == pytest.approx(np.mean([1, 0, 0.5, 1, 5, 7, 2, 1]))
    assert found["reward_std/bonus"] == pytest.approx(np.std([1, 0, 0.5, 1, 5, 7, 2, 1], ddof=1))
    assert "reward_pair_accuracy/bonus" not in channel_metrics([paying("b", [True, True], [5, 7])])
    assert channel_metrics([paying("d", [True], [5])])["reward_nonzero_std/bonus"] == 0


def test_episodes_count_once_with_the_channels_of_hooks() -> None:
    """Copies, cut trees and trees of earlier steps are no episodes; a hook's channel is part of the mean reward."""
    batch = [
        paying("a", [False, False], [0, 0]),
        paying("b", [True, False], [0, 0]),
        paying("c", [True, True, True], [0, 0, 0]),
        paying("b", [False, False], [0, 0]),
    ]
    copied = ValueResampling().build(HookSetup(vocab_tokens=9)).transform(batch, 1)
    assert sum(each.tree.replayed for each in copied) == 4, "two tied groups are copies of b, whose trees are two"
    before = summarize(batch, unstarted=0, dropped={})
    assert summarize(real_episodes(batch, copied), unstarted=0, dropped={}) == before
    assert before["reward/env"] == before["train/success"] == pytest.approx(4 / 9)

    picked = PickPaths(keep=1).build(HookSetup(vocab_tokens=9)).transform(batch, 1)
    assert summarize(real_episodes(batch, picked), unstarted=0, dropped={}) == before

    paid = [replace(each, channels={**each.channels, "hook": 2.0 * each.tree.env_reward}) for each in reversed(batch)]
    old = replace(paid[0], tree=replace(paid[0].tree, replayed=True))
    found = summarize(real_episodes(batch, [old, *paid, old]), unstarted=0, dropped={})
    assert found["reward/hook"] == pytest.approx(8 / 9)
    assert found["reward/mean"] == pytest.approx(12 / 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Long:
    """Channel "long": a bonus for each token of an action, the reward that a policy can earn without the task."""

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        return [{"long": np.where(tree.kind == Kind.ACTION, 0.1 * np.diff(tree.span), 0.0)} for tree in group]


def trained(bonus: float, steps: int = 40) -> list[dict[str, float | str]]:
    """A policy over three lengths of an answer and whether it is right; no length helps, and rightness is luck.

    With a bonus for length its gradient is that of success and length, so it learns the length.
    """
    logits, rows, luck = np.zeros(3), list[dict[str, float | str]](), random.Random(0)
    rng = np.random.default_rng(0)
    for step in range(1, steps + 1):
        chance = np.exp(logits) / np.exp(logits).sum()
        batch, drawn = list[Rewarded](), list[int]()
        for task in range(4):
            lengths = rng.choice(3, 8, p=chance)
            trees = [
                chains([float(luck.random() < 0.4)], action_tokens=1 + 2 * int(each), task=str(task))
                for each in lengths
            ]
            batch += compute_rewards(trees, (EnvReward(), Long()))
            drawn += lengths.tolist()
        total = np.asarray([each.channels["env"].sum() + bonus * each.channels["long"].sum() for each in batch])
        advantage = (total - total.mean()) / (total.std() + 1e-6)
        logits = (
            logits
            + 0.1
            * np.mean([(np.eye(3)[each] - chance) * a for each, a in zip(drawn, advantage, strict=True)], axis=0)
            * 3
        )
        success = float(np.mean([each.tree.success[counted(each.tree)[0]] == 1 for each in batch]))
        rows.append({"step": step, "phase": "rl", "train/success": success, **channel_metrics(batch)})
    return rows


def test_a_hacked_bonus_is_found_and_an_unpaid_one_is_not() -> None:
    rows = trained(bonus=5.0)
    found = rising_rewards(rows, 20)
    assert [each.channel for each in found] == ["long"]
    assert found[0].after > found[0].before
    assert found[0].success < 0.6
    assert "Lower its weight" in str(found[0])
    assert not rising_rewards(trained(bonus=0.0), 20)
    assert not rising_rewards(rows, 0)
    table = reward_table(rows, 20)
    assert table.splitlines()[0].split() == ["reward", "first", "last", "std", "nonzero_std", "pair_accuracy"]
    assert table.splitlines()[-1].startswith("! the reward 'long' rose from")


def test_a_reward_that_rises_with_success_is_none() -> None:
    rows = [
        {"step": n, "phase": "rl", "reward/bonus": n / 20, "reward/mean": 0.0, "train/success": n / 40 + 0.01 * (n % 2)}
        for n in range(1, 21)
    ]
    assert not rising_rewards(rows, 20)
    flat = [{**row, "train/success": 0.5 + 0.05 * (int(row["step"]) % 2)} for row in rows]
    assert [each.step for each in rising_rewards(flat, 20)] == [20]
    solved = [{**row, "train/success": 1.0} for row in rows]
    assert not rising_rewards(solved, 20), "nothing is left to rise"


@pytest.mark.parametrize(
    ("seat", "channel", "found"), [("", "env", []), ("", "success", []), ("a/", "bonus", ["a/bonus"])]
)
def test_rewards_of_the_environment_define_the_task_of_each_seat(seat: str, channel: str, found: list[str]) -> None:
    """The reward rises, and success of the seat does not; another seat's success does not matter."""
    rows = [
        {"step": n, "phase": "rl", f"{seat}reward/{channel}": n / 20, f"{seat}train/success": 0.5, "b/train/success": n}
        for n in range(1, 21)
    ]
    assert [each.channel for each in rising_rewards(rows, 20)] == found


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Channel "calls": more at every call, whatever the policy does."""

    count: ClassVar[list[int]] = []

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        self.count.append(1)
        return [{"calls": np.full(tree.nodes, float(len(self.count)))} for tree in group]


def test_a_run_reports_it_once_in_the_log_and_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = Warmup(demonstrations=4, epochs=1, learning_rate=1e-9)
    hacked = run().replace(name="hacked", rewards=(EnvReward(), Calls()), health=Health(reward_window=4), steps=8)
    hacked = hacked.replace(warmup=slow, optimizer=Optimizer(learning_rate=1e-9))
    directory = start(hacked, tmp_path, terminal=False)
    said = "".join(capsys.readouterr())
    rows = read_metrics(directory.metrics)
    assert {"reward_nonzero_std/calls", "reward_std/calls"} <= {name for row in rows for name in row}
    found = rising_rewards(rows, 4)
    page = directory.report.read_text()
    assert said.count("the reward 'calls' rose") == len(found) == 1
    (alarm,) = (each for each in StepLines(directory.alarms).read() if each["kind"] == "reward calls")
    assert str(found[0]) == " ".join(f"{alarm[part]}." for part in ("found", "meaning", "action"))
    assert alarm["found"] in page, "the report has the terminal's alarm"
    assert "calls" in Result(directory=directory.path).reward_table()


def test_a_window_needs_steps() -> None:
    with pytest.raises(ValueError, match=r"Health.reward_window: got 2; need at least 4 steps, or 0"):
        Health(reward_window=2)
