"""A run of a method in small: the same pieces, seconds on a CPU."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bough.appraise import Appraiser, Checklist, HopProgress, PathCritique, ToolJudge, Tournament, Verifications
from bough.appraise.verification import Verification
from bough.credit import TurnPosition
from bough.critics import FrozenCritic, FrozenRewardModel, ProgressReward, UtteranceCritic
from bough.explore import BeforeUpdates, Chains, Slate
from bough.hooks import HookRecipe
from bough.policy import Tiny
from bough.roles import TrainedJudge
from bough.rollout import Explorer, PendingAction, Rollout
from bough.search import Judge, Search, SearchNode, SearchTree
from bough.store import Checkpoints, read_metrics
from bough.train import Checkpointing, Evaluation, Run, Tasks, Warmup, start
from bough.tree import Floats, Kind, Tree, counted, path

SHOWN = Warmup(demonstrations=6, epochs=12, learning_rate=1e-2, batch_tokens=128)
"""A warm-up after which searches find successes in the small run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin:
    """Channel "coin": 0, 1/2 or 1 for each path, by its tokens, so that failed paths differ."""

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        return [{"coin": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        paid = np.zeros(tree.nodes)
        for leaf in counted(tree):
            walk = path(tree, int(leaf))
            acts = walk[tree.kind[walk] == Kind.ACTION]
            if len(acts):
                paid[acts[-1]] = sum(int(tree.tokens_of(int(act)).sum()) for act in acts) % 3 / 2
        return paid


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Reads any text as a critique: the first step is wrong where its length is odd."""

    def __call__(self, text: str) -> AbstractSet[int]:
        return {1} if len(text) % 2 else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Thirds:
    """Reads any text as a rating: 0, 1/2 or 1 by its length."""

    def __call__(self, text: str) -> float:
        return len(text) % 3 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstItem:
    """Reads any text of odd length as the first item of a checklist."""

    def __call__(self, text: str) -> Mapping[int, str]:
        return {1: text} if len(text) % 2 else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class FourSteps:
    """Reads any text as the verification of four steps, by its length."""

    def __call__(self, text: str) -> Verification:
        odd = len(text) % 2 == 1
        return (odd, odd, odd, not odd), odd


@dataclass(frozen=True, slots=True, kw_only=True)
class Toss:
    """Quality: 0, 1/2 or 1 for each action, by its tokens, so that wrong candidates differ."""

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float:
        del rollout
        return sum(draft.tokens) % 3 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """A judge of states that needs no model: it accepts the second action and those after it."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        del tree
        return node.depth / 3


def small(run: Run) -> Run:
    """The same pieces with less of everything. Searches get a warm-up on all tasks, so that they find successes."""
    searches = isinstance(run.method.explorer, Search | BeforeUpdates)
    world, method = run.world, run.method
    return run.replace(
        policy=Tiny(layers=1, width=32, heads=2),
        explorer=_small(method.explorer),
        appraisers=tuple(map(_readable, world.appraisers)),
        limits=replace(world.limits, turns=4, tree_turns=20 if searches else world.limits.tree_turns),
        credit=replace(method.credit, min_turns=2) if isinstance(method.credit, TurnPosition) else method.credit,
        rewards=(*world.rewards, Coin()),
        hooks=tuple(_small_hook(each) for each in method.hooks),
        optimizer=replace(
            world.optimizer, epochs=min(2, world.optimizer.epochs), minibatches=min(4, world.optimizer.minibatches)
        ),
        warmup=SHOWN if searches else replace(world.warmup, demonstrations=4, epochs=2, then=None),
        demonstrations=replace(method.demonstrations, count=min(4, method.demonstrations.count), per_step=2),
        steps=2,
        batch_tasks=4,
        max_sampling_rounds=min(2, method.max_sampling_rounds),
        tasks=Tasks(split="train", count=6),
        evaluation=Evaluation(tasks=Tasks(split="test", count=2), every=100),
        checkpointing=Checkpointing(every=100, trees_every=100),
    )


def _readable(appraiser: Appraiser) -> Appraiser:
    """The appraiser with short answers, each of which is one."""
    if isinstance(appraiser, PathCritique):
        return replace(appraiser, read=Parity(), max_tokens=4)
    if isinstance(appraiser, Checklist):
        return replace(appraiser, read=FirstItem(), evidence=False, max_tokens=4)
    if isinstance(appraiser, Verifications):
        return replace(appraiser, read=FourSteps(), max_tokens=4)
    if isinstance(appraiser, HopProgress | ToolJudge | Tournament):
        return replace(appraiser, read=Thirds(), max_tokens=4)
    return appraiser


def _small_hook(hook: HookRecipe) -> HookRecipe:
    if isinstance(hook, TrainedJudge):
        return replace(hook, verifications=replace(hook.verifications, read=FourSteps(), max_tokens=4))
    if isinstance(hook, FrozenRewardModel):
        return replace(hook, model=replace(hook.model, layers=1, width=16, heads=2, epochs=1, gap=0.01), warmup_steps=1)
    return (
        replace(hook, steps=2, warmup_steps=1)
        if isinstance(hook, FrozenCritic | ProgressReward | UtteranceCritic)
        else hook
    )


def _small(explorer: Explorer) -> Explorer:
    if isinstance(explorer, BeforeUpdates):
        return replace(explorer, first=replace(explorer.first, rounds=8), then=_small(explorer.then))
    if isinstance(explorer, Slate):
        return replace(explorer, quality=Toss())
    if isinstance(explorer, Search) and isinstance(explorer.evaluate, Judge):
        return replace(explorer, evaluate=Depth())
    return replace(explorer, n=min(4, explorer.n)) if isinstance(explorer, Chains) else explorer


def train_small(run: Run, out: Path) -> None:
    """Train two small steps, and check that they have a finite loss, a gradient, a report and a checkpoint."""
    directory = start(small(run), out, terminal=False)
    assert directory.report.is_file()
    assert (directory.final / "model.safetensors").is_file()
    assert Checkpoints(directory=directory.checkpoints).latest().checkpoint is not None
    rows = [row for row in read_metrics(directory.metrics) if "reward/mean" in row]
    assert len(rows) == 2
    learned = [row for row in rows if "loss/total" in row]
    assert learned, "no step had a batch"
    assert all(math.isfinite(float(row["loss/total"])) for row in learned)
    assert max(float(row["optimizer/gradient_norm"]) for row in learned) > 0
