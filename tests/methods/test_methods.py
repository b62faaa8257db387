"""Every method: built or refused on every world, tried or trained on one, with its paper in the docstring."""

import asyncio
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from tests.methods.small import small, train_small

from bough.cli.catalogue import misfits
from bough.cli.find import find_run, find_world, names
from bough.config import ConfigError
from bough.context import Turn
from bough.env import Branching, InProcessHost, ParallelCalls, PlannerExecutor
from bough.explore import BeforeUpdates
from bough.methods import SHARED
from bough.needs import FORKS, needs_of, pieces
from bough.objective import Kl
from bough.reward import EnvReward
from bough.rollout import Deadlines, Explorer
from bough.search import Search
from bough.train import Run, Runtime, World
from bough.train.check import check
from bough.train.dry_pass import dry_pass
from bough.train.texts import tokenizer_corpus
from bough.worlds.sokoban import Sokoban

METHODS = list(names("methods"))
WORLDS = list(names("worlds"))
GRPO = find_run("grpo", "frozenlake")
TRAINED = {
    "cr_planner": ("cr_planner(kinds=[up,down,left,right])", "sokoban"),
    "digi_q": ("digi_q(threshold=0)", "frozenlake"),
    "igpo": ("igpo(field=answers)", "search"),
    "promed": ("promed", "facts"),
}
"""Methods that need a world's actions or fields, or that learn nothing of a small Q-function at the default."""
UNLABELLED = ("scope_ttrl", "ttrl")
"""Methods for tasks without right answers, hence without the world's rewards."""


@pytest.mark.parametrize("method", METHODS)
def test_a_method_fits_a_world_or_is_refused_with_a_reason(method: str) -> None:
    refused = misfits(method)
    for world in WORLDS:
        if reason := refused.get(world):
            assert re.search(r"\b(needs?|set|take)\b", reason)
        else:
            run = find_run(method, _world(world))
            check(run)
            assert run.name == f"{method}_{world}"


@cache
def _world(name: str) -> World:
    """A world, made once: some read thousands of rows."""
    return find_world(name)


def _own(method: str) -> frozenset[str]:
    """What a run of the method has besides its loss that GRPO's has not: classes of pieces, and names of fields."""
    run, found = _with_the_loss_of(find_run(method, "frozenlake"), GRPO), set[str]()
    for mine, usual in ((run.method, GRPO.method), (run.world, GRPO.world)):
        for name in (each.name for each in fields(mine)):
            if (value := getattr(mine, name)) != getattr(usual, name):
                found |= {f"{name}: {type(piece.value).__name__}" for piece in pieces(value)} or {name}
    return frozenset(found)


@cache
def _pairwise() -> frozenset[str]:
    """Methods that together have every piece that any method has, beside every other one."""
    pairs = {method: {*combinations_with_replacement(sorted(_own(method)), 2)} for method in METHODS}
    chosen, seen = set[str](), set[tuple[str, str]]()
    while pairs[best := max(METHODS, key=lambda each: len(pairs[each] - seen))] - seen:
        chosen.add(best)
        seen |= pairs[best]
    return frozenset(chosen)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_trains(method: str, tmp_path: Path) -> None:
    """Methods that together have every pair of pieces train; any other has a dry pass with its rule and its loss."""
    run = find_run(*TRAINED.get(method, (method, "frozenlake")))
    if method not in _pairwise():
        asyncio.run(dry_pass(Runtime(small(run), tmp_path, Deadlines())))
    else:
        # Searches need few moves to an end, which Sokoban has.
        searches = isinstance(run.method.explorer, Search | BeforeUpdates)
        train_small(find_run(method, "sokoban") if searches and method not in TRAINED else run, tmp_path)


def _with_the_loss_of(run: Run, other: Run) -> Run:
    """The run with credit, objective, rewards and steps of another one."""
    return run.replace(
        name=other.name,
        credit=other.method.credit,
        objective=other.method.objective,
        normalizer=other.method.normalizer,
        rewards=other.world.rewards,
        filters=other.world.filters,
        regularizers=other.world.regularizers,
        optimizer=other.world.optimizer,
        sampling=other.world.sampling,
        schedule=other.world.schedule,
    )


def test_a_loss_alone_has_a_dry_pass_and_whatever_has_state_trains() -> None:
    assert not {"grpo", "gspo", "gigpo", "dpo"} & _pairwise()
    assert {"cts", "dapo", "exit", "prorag", "treerl"} <= _pairwise()
    hooks = {method: {type(each) for each in find_run(method, "frozenlake").method.hooks} for method in METHODS}
    assert set().union(*hooks.values()) == set().union(*(hooks[method] for method in _pairwise()))


@pytest.mark.parametrize("method", METHODS)
def test_a_method_states_its_paper_and_its_assumptions(method: str) -> None:
    function = vars(importlib.import_module(f"bough.methods.{method}"))[method]
    text = inspect.getdoc(function) or ""
    assert "arXiv" in text.partition("\n")[0]
    assert "Assumes" in text


def test_the_docs_have_the_differences_that_methods_share() -> None:
    page = Path(__file__).parents[2] / "docs" / "methods.md"
    assert " ".join(SHARED.split()) in " ".join(page.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("method", METHODS)
def test_a_method_keeps_what_belongs_to_the_world(method: str) -> None:
    """Environment, policy, warm-up, engine and held-out tasks stay the world's."""
    world = replace(find_world("sokoban"), name="other", env=Sokoban(size=7))
    run = find_run(method, world)
    env = run.world.env.env if isinstance(run.world.env, PlannerExecutor | ParallelCalls) else run.world.env
    shown = replace(run.world.warmup, stages=world.warmup.stages)
    assert (env, run.world.policy, shown) == (world.env, world.policy, world.warmup)
    assert (run.world.execution, run.world.evaluation.tasks) == (world.execution, world.evaluation.tasks)
    if method not in UNLABELLED:
        assert {type(each) for each in world.rewards} <= {type(each) for each in run.world.rewards}


@dataclass(frozen=True, slots=True, kw_only=True)
class Once(Sokoban):
    """Sokoban whose states cannot be stepped twice."""

    branching = Branching.NONE


@pytest.mark.parametrize("method", METHODS)
def test_a_method_with_forks_is_refused_where_states_step_once(method: str) -> None:
    run = find_run(method, replace(find_world("sokoban"), env=Once()))
    if FORKS in needs_of(run.method.explorer):
        with pytest.raises(ConfigError, match="needs an environment that steps a state more than once; got env="):
            check(run)
    else:
        check(run)


def _other() -> World:
    return find_world("sokoban").replace(
        rewards=(EnvReward(weight=2.0),), regularizers=(Kl(coefficient=0.5),), steps=40, batch_tasks=4
    )


def test_lengths_and_batches_follow_from_the_world() -> None:
    world = _other()  # 5 turns of 4 tokens
    assert find_run("dapo", world).world.rewards[1].limit_tokens == 20
    assert find_run("dr_grpo", world).method.normalizer.horizon_tokens == 20
    assert find_run("ppo", world).world.schedule.batch_tasks == 32
    assert find_run("archer", world).world.schedule.steps == 60
    assert find_run("aepo", world).world.optimizer.epochs > 1
    assert find_run("simpo", world).world.optimizer.learning_rate == world.optimizer.learning_rate / 4
    assert find_run("hiper", world).world.sampling.max_tokens == 32
    assert find_run("hiper(every=1)", world).world.sampling.max_tokens == 24


def test_a_regularizer_of_the_world_is_in_the_loss_or_dropped_by_the_paper() -> None:
    world = _other()
    assert find_run("cispo", world).loss.terms[1] == Kl(coefficient=0.5)
    assert find_run("dapo", world).loss == find_run("dapo", world).method.objective
    assert find_run("reinforce_pp_baseline", world).loss.terms[1] == Kl(coefficient=0.04, estimator="k2")
    # Demonstrations have no log-probabilities of the reference policy: the divergence is of samples only.
    assert find_run("chord", world).loss.objective.terms[1] == Kl(coefficient=0.5)


@pytest.mark.parametrize("method", ["latr", "treepo"])
@pytest.mark.parametrize("world", ["frozenlake", "sokoban"])
def test_answers_are_long_enough_to_branch_inside(method: str, world: str, tmp_path: Path) -> None:
    """A segment ends within an answer; a branch is compared after its first token."""
    fewest: dict[str, Callable[[Explorer], int]] = {
        "latr": lambda one: one.windows[0] + 1,
        "treepo": lambda one: one.tokens,
    }
    run = find_run(method, world)
    env, parser = run.world.env, run.world.parser
    shown = [
        asyncio.run(tokenizer_corpus(InProcessHost(env=env), task, parser, turns=run.world.limits.turns))
        for task in env.tasks("train", 16, 0)
    ]
    renderer = run.world.policy.build([text for several in shown for text in several], tmp_path).renderer
    for past in ((), (Turn(observation="", action="down", tokens=(), marks={}),)):
        answer = parser.write("down", past, ("down", "right", "down"))
        assert fewest[method](run.method.explorer) < len(renderer.write(answer)) <= run.world.sampling.max_tokens
