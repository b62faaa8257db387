"""Every recipe trains: the real environment, engine, rule and loss, made small."""

import asyncio
import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import bough.recipes
from bough.context import Turn
from bough.env import Inline
from bough.explore import Chains, Draft, Explorer, Player, Slate
from bough.explore.search import Search
from bough.policy import Tiny, UtteranceCritic
from bough.store import Checkpoints, read_metrics
from bough.train import Checkpointing, Evaluation, Run, Tasks, Warmup, start
from bough.train.texts import collect
from bough.tree import Floats, Kind, Tree, counted, path

RECIPES = [module.name for module in pkgutil.iter_modules(bough.recipes.__path__)]
SHOWN = Warmup(demonstrations=6, epochs=12, learning_rate=1e-2, batch_tokens=128)
"""Enough to succeed now and then, without which a search has nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin:
    """Channel "coin": 0, 1/2 or 1 for each path, by its tokens, so that paths differ that all fail."""

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
class Toss:
    """Quality: 0, 1/2 or 1 for each action, by its tokens, so that candidates differ of which none is any good."""

    async def __call__(self, player: Player, draft: Draft) -> float:
        del player
        return sum(draft.tokens) % 3 / 2


def small(run: Run) -> Run:
    """The same pieces, with less of everything; a search has to find something, and is shown all tasks first."""
    searches = isinstance(run.method.explorer, Search)
    return run.replace(
        policy=Tiny(layers=1, width=32, heads=2),
        explorer=_small(run.method.explorer),
        limits=replace(run.world.limits, turns=4, tree_turns=20 if searches else run.world.limits.tree_turns),
        rewards=(*run.world.rewards, Coin()),
        hooks=tuple(
            replace(each, steps=2, warmup_steps=1) if isinstance(each, UtteranceCritic) else each
            for each in run.method.hooks
        ),
        warmup=SHOWN
        if searches
        else replace(run.world.warmup, demonstrations=min(4, run.world.warmup.demonstrations), epochs=2),
        demonstrations=replace(run.method.demonstrations, demonstrations=min(4, run.demonstrations.count), per_step=2),
        steps=3,
        batch_tasks=4,
        max_sampling_rounds=min(2, run.method.max_sampling_rounds),
        tasks=Tasks(split="train", count=6),
        evaluation=Evaluation(tasks=Tasks(split="test", count=2), every=100),
        checkpointing=Checkpointing(every=100, trees_every=100),
    )


def _small(explorer: Explorer) -> Explorer:
    if isinstance(explorer, Slate):
        return replace(explorer, quality=Toss())
    return replace(explorer, n=4) if isinstance(explorer, Chains) else explorer


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_trains(recipe: str, tmp_path: Path) -> None:
    if recipe.endswith("textworld"):
        pytest.importorskip("textworld")
    run = small(importlib.import_module(f"bough.recipes.{recipe}").run())
    directory = start(run, tmp_path, terminal=False)
    assert directory.report.is_file()
    assert (directory.final / "model.safetensors").is_file()
    assert Checkpoints(directory=directory.checkpoints).latest().checkpoint is not None
    rows = [row for row in read_metrics(directory.metrics) if "reward/mean" in row]
    assert len(rows) == 3
    learned = [row for row in rows if "loss/total" in row]
    assert learned, "nothing was learned from"
    assert all(math.isfinite(float(row["loss/total"])) for row in learned)
    assert max(float(row["optimizer/gradient_norm"]) for row in learned) > 0


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_says_where_it_comes_from(recipe: str) -> None:
    text = importlib.import_module(f"bough.recipes.{recipe}").__doc__ or ""
    assert "arXiv" in text, "the paper"
    assert "Assumes" in text or "assumes" in text, "what it assumes of the environment"


@pytest.mark.parametrize(
    ("recipe", "tokens"),
    [("latr_frozenlake", lambda one: one.windows[0] + 1), ("treepo_frozenlake", lambda one: one.tokens)],
)
def test_answers_are_long_enough_to_branch_inside(
    recipe: str, tokens: Callable[[Explorer], int], tmp_path: Path
) -> None:
    """A segment ends within an answer; a branch is compared after its first token."""
    run = importlib.import_module(f"bough.recipes.{recipe}").run()
    host, turns = Inline(env=run.world.env), run.world.limits.turns
    shown = [
        asyncio.run(collect(host, task, run.world.parser, turns=turns)) for task in run.world.env.tasks("train", 16, 0)
    ]
    texts = [text for several in shown for text in several]
    renderer = run.world.policy.build(texts, tmp_path).renderer
    for past in ((), (Turn(observation="", action="down", tokens=(), marks={}),)):
        answer = run.world.parser.write("down", past, ("down", "right", "down"))
        assert tokens(run.method.explorer) < len(renderer.write(answer)) <= run.world.sampling.max_tokens
