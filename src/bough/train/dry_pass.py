"""A dry pass: reward, credit, filters, packing and loss on a small synthetic group, before the warm-up."""

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from bough.batch import pack
from bough.config.config import ConfigError
from bough.context import PromptedParser
from bough.engine import Request, Scripted
from bough.env import EnvFault
from bough.learner.loss_inputs import ObjectiveContext
from bough.needs import (
    CRITIC,
    DEMONSTRATIONS,
    FINAL_VALUES,
    GREEDY,
    PATHS,
    REFERENCE,
    Appraised,
    Estimate,
    gives_of,
    names_of,
    needs_of,
    pieces,
)
from bough.rollout import Agent, RoleModel, paths_of
from bough.train.checks import measure_checks
from bough.train.resolve import check_channels
from bough.train.run import Run
from bough.train.runtime import Runtime
from bough.train.stages import run_stages
from bough.train.trained import TrainedPolicy
from bough.tree import (
    DTYPES,
    Appraisal,
    Credited,
    Entry,
    Floats,
    Outcome,
    Rewarded,
    Source,
    Task,
    Ternary,
    Tree,
    TruncatedBy,
    Verdict,
    counted,
    derive,
    plain_text,
    spread_paths,
)
from bough.varying import constant

TASKS = 2
"""Tasks of the synthetic group."""

TURNS = 2
"""Maximum number of turns of its paths."""

ACTIONS = 4
"""Maximum number of different actions of the scripted engine."""

CALLS = 64
"""Maximum number of engine calls, and of environment steps, of one of its trees."""


@runtime_checkable
class OfTokenizer(Protocol):
    """An appraiser that reads the tokens of one tokenizer alone."""

    def check_tokenizer(self, decode: Callable[[Sequence[int]], str]) -> None:
        """Check that `decode`, from tokens to text, is that of this tokenizer.

        Raises:
            ValueError: when it is not.
        """
        ...


async def dry_pass(runtime: Runtime) -> None:
    """Run a synthetic group from rewards to the gradient, so that incompatible pieces fail before the warm-up.

    The run's explorer grows trees of its first tasks in its environment. A scripted engine returns admissible actions
    of the first state. Outcomes, returns and estimates are synthetic, and differ between paths. Weights, optimizer
    state and random generators do not change. Hooks do not run.

    Raises:
        StageError: when a piece returns a value that the next stage cannot use.
        ConfigError: when the credit rule compares the paths of a task and the explorer grows one path a task; when the
            loss or its gradient is not finite, or its gradient is zero; when an appraiser needs another tokenizer.
    """
    for piece in pieces(runtime.run.world.appraisers, "appraisers"):
        if isinstance(piece.value, OfTokenizer):
            try:
                piece.value.check_tokenizer(runtime.rollouts.agent.renderer.text)
            except ValueError as error:
                raise ConfigError(f"{piece.place}: {error}") from error
    with _random_state(runtime.policy.device):
        trees = await _grow(runtime)
        if not any(len(counted(tree)) for tree in trees):
            # Every path failed; the first step raises the error.
            return
        for trained in runtime.trained:
            views = trained.role.views(trees)
            # A seat may not have acted in the few turns.
            if any(len(counted(tree)) for tree in views):
                _try_out(trained, views)


def _try_out(trained: TrainedPolicy, trees: Sequence[Tree]) -> None:
    """Run the trees of a policy from rewards to the gradient."""
    run = trained.run
    generator = np.random.default_rng(derive(run.seed, "dry pass"))
    ended = [_with_outcomes(tree, place) for place, tree in enumerate(trees)]

    def estimate(rewarded: Sequence[Rewarded]) -> list[Rewarded]:
        check_channels(run, frozenset(rewarded[0].channels))
        return [_with_estimates(run, _with_returns(each), generator) for each in rewarded]

    found = run_stages(run, [_with_appraisals(run, tree, generator) for tree in ended], estimate)
    measure_checks([each.tree for each in found.rewarded], run.world.evaluation.checks)
    _check_group(run, found.credited)
    has_advantage = any(map(_has_advantage, found.kept))
    _learn(trained, found.kept if has_advantage else [*map(_with_advantage, found.credited)], trees)


async def _grow(runtime: Runtime) -> Sequence[Tree]:
    """Trees of the run's first tasks, with a few short paths."""
    run, tasks = runtime.run, runtime.train_tasks[:TASKS]
    runner = runtime.rollouts
    engine = Scripted(script=await _script(runtime, tasks[0]), context_tokens=runner.agent.engine.context_tokens)
    begun = 1 + max(len(task.start) for task in tasks)
    limits = replace(
        runner.limits,
        turns=min(constant(runner.limits.turns), TURNS),
        tree_turns=min(run.world.limits.tree_turns or CALLS * begun, CALLS * begun),
        tree_calls=min(run.world.limits.tree_calls or CALLS, CALLS),
    )
    models = dict.fromkeys(runner.agent.models, RoleModel(engine=engine, renderer=runner.agent.renderer))
    agent = replace(
        runner.agent,
        engine=engine,
        critic=_value if runner.agent.critic else None,
        embed=_embed if runner.agent.embed else None,
        models=models,
    )
    seats = {
        name: replace(seat, agent=replace(agent, parser=seat.agent.parser)) if isinstance(seat.agent, Agent) else seat
        for name, seat in runner.seats.items()
    }
    grown = await replace(runner, agent=agent, seats=seats, limits=limits).run(
        run.method.explorer, tasks, seed=derive(run.seed, "dry pass")
    )
    return grown.trees


async def _script(runtime: Runtime, task: Task) -> Callable[[Request], Sequence[int]]:
    """A script that replies with admissible actions of the first state, else parts of its observation."""
    run, renderer = runtime.run, runtime.policy.renderer
    try:
        state = await runtime.deadlines.until(
            runtime.host.start(task),
            owner="dry pass",
            thing="environment start",
            deadline_s=run.world.limits.env_deadline_s,
        )
        actions = [*(state.admissible or plain_text(state.observation).split())][:ACTIONS]
    except EnvFault:
        actions = []
    parser = run.world.parser if isinstance(run.world.parser, PromptedParser) else None
    texts = [parser.write(each, (), (each,)) if parser else each for each in actions or ["go"]]
    replies = [renderer.write(text) for text in texts]
    return lambda request: replies[request.seed % len(replies)]


async def _value(texts: Sequence[tuple[int, ...]]) -> list[float]:
    """Replaces the critic, which would run the policy."""
    return [len(tokens) % 2 / 2 for tokens in texts]


async def _embed(tokens: tuple[int, ...], count: int) -> list[float]:
    """Replaces the embeddings, which would run the policy."""
    return [1.0, len(tokens) % 2, count]


def _with_outcomes(tree: Tree, place: int) -> Tree:
    """The tree with success at every second path; with one path a tree, at every second tree."""
    ends = counted(tree)
    last = np.unique(tree.parent[ends], return_inverse=True)[1]
    outcome, success, truncated_by = tree.outcome.copy(), tree.success.copy(), tree.truncated_by.copy()
    for end, number in zip(ends.tolist(), last.tolist(), strict=True):
        solves = (number + place) % 2 == 0
        success[end] = Ternary.YES if solves else Ternary.NO
        if solves:
            outcome[end], truncated_by[end] = Outcome.TERMINATED, TruncatedBy.NOTHING
    return replace(tree, outcome=outcome, success=success, truncated_by=truncated_by)


def _with_appraisals(run: Run, tree: Tree, generator: np.random.Generator) -> Tree:
    """The tree with a value in [0, 1) at the end of each path, for each column of the run's appraisers."""
    names = sorted({name for each in run.world.appraisers for name in names_of(gives_of(each), Appraised)})
    columns = {name: {leaf: _entry(generator) for leaf in counted(tree).tolist()} for name in names}
    return replace(tree, appraisals={name: Appraisal.of(column, tree.nodes) for name, column in columns.items()})


def _entry(generator: np.random.Generator) -> Entry:
    return Entry(value=float(generator.random()), verdict=Verdict.OK, votes=1, questions=1)


def _with_returns(rewarded: Rewarded) -> Rewarded:
    """The tree with an added channel of reward 1 at the end of each successful path."""
    tree = rewarded.tree
    paid, ends = np.zeros(tree.nodes), counted(tree)
    paid[ends] = tree.success[ends] == Ternary.YES
    return replace(rewarded, channels={**rewarded.channels, "dry pass": paid})


def _with_estimates(run: Run, rewarded: Rewarded, generator: np.random.Generator) -> Rewarded:
    """The tree with the estimates that the rule needs: values in [0, 1), reference log-probabilities near `logprob`."""
    needs, size = needs_of(run.method.credit), len(rewarded.tree.token)
    heads = () if run.method.critic is None else run.method.critic.heads
    made: dict[str, Floats] = {name: generator.random(size) for name in (*heads, *names_of(needs, Estimate))}
    if REFERENCE in needs:
        made["reference"] = rewarded.tree.logprob - 0.1 * generator.random(size)
    if GREEDY in needs:
        made["greedy"] = np.minimum(rewarded.tree.logprob + 0.1 * generator.random(size), 0.0)
    ends = {name: generator.random(rewarded.tree.nodes) for name in heads} if FINAL_VALUES in needs else {}
    return replace(
        rewarded, estimates={name: column.astype(np.float32) for name, column in made.items()}, end_values=ends
    )


def _check_group(run: Run, credited: Sequence[Credited]) -> None:
    """Refuse one path a task when the rule gives groups of one no advantage."""
    alone = (
        paths_of(run.method.explorer) == 1
        and run.world.schedule.batch_tasks <= run.world.tasks.count
        and not run.method.hooks
    )
    if alone and len(credited) > 1 and not any(map(_has_advantage, credited)):
        explorer, rule = type(run.method.explorer).__name__, type(run.method.credit).__name__
        raise ConfigError(
            f"explorer={explorer}: got 1 path a task and credit={rule}, which compares the paths of a task and gives a "
            "path alone no advantage; set explorer.n=2 or more, or take a rule with a baseline of its own, such as "
            "credit=Gae or credit=ReinforcePlusPlus"
        )


def _has_advantage(credited: Credited) -> bool:
    return not credited.is_zero


def _with_advantage(credited: Credited) -> Credited:
    """The tree with advantages of both signs, for a tree to which the rule gives none."""
    paths = len(counted(credited.tree))
    made = spread_paths(credited.rewarded, np.where(np.arange(paths) % 2 == 0, 1.0, -1.0))
    return replace(made, value_targets=credited.value_targets)


def _learn(trained: TrainedPolicy, credited: Sequence[Credited], trees: Sequence[Tree]) -> None:
    """Pack the trees, and compute the loss and its gradient."""
    run, needs = trained.run, needs_of(trained.run.loss)
    shown = [_taught(tree) for tree in trees[:1]] if DEMONSTRATIONS in needs else []
    batch = pack(credited, paths=PATHS in needs, experts=shown)
    if not len(batch.at):
        return
    # Scripted alternatives may have ids beyond the vocabulary.
    batch = replace(batch, tokens=batch.tokens % trained.policy.vocab_tokens).to(trained.policy.device)
    context = ObjectiveContext(reference=trained.policy if REFERENCE in needs else None)
    learner, objective = trained.learner, run.method.objective
    metrics = learner.rehearse(batch, run.loss, trained.normalizer, context=context)
    wrong = {name: value for name, value in metrics.items() if not np.isfinite(value)}
    if wrong:
        raise ConfigError(
            f"objective={type(objective).__name__}: got {wrong} on a synthetic batch; need a finite loss "
            "with a finite gradient: check the objective's settings and the size of the rewards"
        )
    if not needs_of(objective) & {CRITIC, PATHS}:
        # With `PATHS` the batch may lack pairs, and with `CRITIC` the critic may be all that learns. Ratios are
        # slightly off 1: a ratio of 1 can be the minimum of a divergence, and one far from 1 is clipped.
        offset = 0.01 * (-1.0) ** torch.arange(len(batch.at), device=batch.at.device)
        sampled = replace(batch, rollout_logprob=learner.logprobs(batch) + offset)
        metrics = learner.rehearse(sampled, objective, trained.normalizer, context=context)
        if metrics["optimizer/gradient_norm"] == 0:
            raise ConfigError(
                f"objective={type(objective).__name__}: got a gradient of 0 on a synthetic batch with advantages; "
                "need a loss that depends on columns.logprob: look for `detach`, or for a factor of 0"
            )


def _taught(tree: Tree) -> Tree:
    """The tree with its sampled tokens marked as a teacher's, for objectives that need demonstrations."""
    unknown = np.full(len(tree.token), np.nan, dtype=DTYPES["logprob"])
    source = np.where(tree.source == Source.SAMPLED, Source.TEACHER, tree.source).astype(DTYPES["source"])
    version = np.full_like(tree.policy_version, -1)
    return replace(tree, logprob=unknown, entropy=unknown.copy(), source=source, policy_version=version)


@contextmanager
def _random_state(device: torch.device) -> Generator[None]:
    """Restore the state of every global random generator afterwards."""
    plain, array = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):  # pyright: ignore[reportUnknownMemberType]
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(array)
