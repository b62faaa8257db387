"""What holds for every objective there is: one that is added to the room is tested here without an edit."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch
from tests.invariants.objectives import heads, objectives, random_columns
from tests.invariants.test_credit_spread import branches
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded
from torch import Tensor

from bough.batch import Batch, MiniBatch, pack
from bough.critics import ValueHead
from bough.critics.critic import Critic
from bough.learner import Learner, Optimizer
from bough.learner.loss_inputs import ObjectiveContext, before_forward, by_path, loss_weights, with_outputs
from bough.learner.token_outputs import TokenOutputs
from bough.needs import (
    CLIPPED_NORM,
    CRITIC,
    DEMONSTRATIONS,
    ENTROPY,
    HIDDEN_STATES,
    MEAN_TURN_ENTROPY,
    OLD_LOGPROBS,
    PATHS,
    REFERENCE,
    needs_of,
)
from bough.objective import Loss, LossInputs, Need, Normalizer, Objective, PpoClip
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.tree import Outcome, Source, Tree, counted, spread_paths, sum_of_subtree, token_node

OBJECTIVES = objectives()
SEEDS = range(3)
SHARES = [Normalizer(), Normalizer(by="unique_tokens"), Normalizer(by="constant", horizon_tokens=9)]
CUTS = ((64, 2), (64, 1), (10, 1), (10**6, 1))
"""Tokens of a micro-batch, and readers."""
every = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
DEFAULTS = {name: each for name, each in OBJECTIVES.items() if "(" not in name}
with_defaults = pytest.mark.parametrize("objective", DEFAULTS.values(), ids=DEFAULTS.keys())
WHOLE = {name: each for name, each in OBJECTIVES.items() if PATHS in needs_of(each)}
SEPARABLE = {name: each for name, each in OBJECTIVES.items() if name not in WHOLE}
separable = pytest.mark.parametrize("objective", SEPARABLE.values(), ids=SEPARABLE.keys())


def regularises(objective: Objective) -> bool:
    return bool(getattr(objective, "regularises", False))


def slopes(loss: Loss, leaves: list[Tensor]) -> list[Tensor]:
    """The gradient of each leaf; 0 where the loss does not depend on it."""
    if not loss.value.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return list(torch.autograd.grad(loss.value, leaves, materialize_grads=True, retain_graph=True))


def test_the_scan_finds_classes_settings_and_variants() -> None:
    assert isinstance(OBJECTIVES["PpoClip"], PpoClip)
    assert OBJECTIVES["gspo()"].needs == {PATHS}
    assert "PpoClip(ratio='turn')" in OBJECTIVES
    assert "Tis(objective.ratio='sequence')" in OBJECTIVES
    assert len({type(each) for each in OBJECTIVES.values()}) >= 16


# --- The gradient is that of the value. ---


@contextmanager
def holding(held: list[Tensor], *, replay: bool) -> Iterator[None]:
    """Notes what is detached, or gives back in the same order what was noted."""
    detach = torch.Tensor.detach
    place = iter(range(len(held)))

    def note(tensor: Tensor) -> Tensor:
        held.append(detach(tensor).clone())
        return held[-1]

    def give(tensor: Tensor) -> Tensor:
        again = held[next(place)]
        assert again.shape == tensor.shape
        return again.clone()

    torch.Tensor.detach = give if replay else note  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.Tensor.detach = detach  # type: ignore[method-assign]


DIRECTIONS = 4
"""A gradient that is wrong anywhere is wrong along a random direction; a few need fewer values than all coordinates."""


def differences(
    value: Callable[[], float], leaves: list[Tensor], directions: list[Tensor], step: float = 1e-6
) -> list[Tensor]:
    """The slopes of a function along the directions [DIRECTIONS, n] of each leaf [n], from values on both sides."""
    found: list[Tensor] = []
    for leaf, ways in zip(leaves, directions, strict=True):
        along: list[float] = []
        for way in step * ways:
            sides: list[float] = []
            for move in (way, -way):
                with torch.no_grad():
                    leaf.add_(move)
                sides.append(value())
                with torch.no_grad():
                    leaf.sub_(move)
            along.append((sides[0] - sides[1]) / (2 * step))
        found.append(torch.tensor(along, dtype=leaf.dtype))
    return found


def gradient_and_differences(objective: Objective, rng: np.random.Generator) -> tuple[list[Tensor], list[Tensor]]:
    """For each leaf its slopes along random directions, by the gradient and by differences of values."""
    given, leaves = random_columns(rng, objective)
    directions = [torch.as_tensor(rng.normal(size=(DIRECTIONS, len(leaf)))) for leaf in leaves]
    held: list[Tensor] = []
    with holding(held, replay=False):
        loss = objective(given)

    def value() -> float:
        with holding(held, replay=True):
            return objective(given).value.item()

    exact = [ways @ slope for ways, slope in zip(directions, slopes(loss, leaves), strict=True)]
    return exact, differences(value, leaves, directions)


@every
def test_the_gradient_is_that_of_the_value(objective: Objective) -> None:
    """With everything that `Tensor.detach` holds fixed held fixed."""
    moved = 0.0
    for seed in range(2):
        exact, estimated = gradient_and_differences(objective, np.random.default_rng(seed))
        for one, two in zip(exact, estimated, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-8)
            moved = max(moved, float(one.abs().max()))
    assert moved > 1e-6


class _Crooked(torch.autograd.Function):
    """A square that says its slope is 1."""

    @staticmethod
    def forward(_: object, value: Tensor) -> Tensor:
        return value.square()

    @staticmethod
    def backward(_: object, slope: Tensor) -> Tensor:
        return slope


class Crooked:
    needs: frozenset[Need] = frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        return Loss(value=_Crooked.apply(columns.logprob).sum(), metrics={})


class Fixed:
    """Holds a factor fixed: were it not replayed, the differences would be twice the gradient."""

    needs: frozenset[Need] = frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        return Loss(value=(columns.logprob.detach() * columns.logprob).sum(), metrics={})


def test_a_wrong_gradient_would_show() -> None:
    (one,), (two,) = gradient_and_differences(Crooked(), np.random.default_rng(0))
    assert not torch.allclose(one, two, rtol=1e-2)
    (one,), (two,) = gradient_and_differences(Fixed(), np.random.default_rng(0))
    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-8)


# --- Views and splits. ---


def demonstration(rng: np.random.Generator, task: str) -> Tree:
    """A chain of two turns that a teacher wrote."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1, 2))]
    for turn in range(2):
        written = tuple(rng.integers(13, size=2).tolist())
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION, tokens=written, source=Source.TEACHER))
        done = Outcome.TERMINATED if turn else Outcome.OPEN
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(3,), outcome=done))
    return build(*nodes, task=task)


@cache
def forest(*, experts: bool, seed: int, count: int = 4) -> tuple[list[Tree], Batch]:
    """Trees whose branches disagree about the tokens they share, and two demonstrations for those who want them."""
    rng = np.random.default_rng(seed)
    trees = [branches(rng, str(i)) for i in range(count)]
    shown = [demonstration(rng, str(i)) for i in range(2)] if experts else []
    credited = [spread_paths(rewarded(tree), rng.normal(size=len(counted(tree)))) for tree in trees]
    batch = pack(credited, paths=True, experts=shown)
    assert bool(((batch.positive > 0) & (batch.negative < 0)).any())
    return [*trees, *shown], batch


class Sight:
    """What a policy that is but a table thinks of a batch: every token of every tree has numbers of its own."""

    def __init__(self, objective: Objective, tokens: int, seed: int) -> None:
        rng = np.random.default_rng(seed)

        def draw(low: float, high: float) -> Tensor:
            return torch.as_tensor(rng.uniform(low, high, size=tokens))

        self.objective = objective
        names = heads(objective) if CRITIC in needs_of(objective) else ()
        self.logprob = draw(-2.5, -0.2).requires_grad_()
        self.entropy = draw(0.1, 2.0).requires_grad_()
        self.values = {name: draw(-1.0, 1.0).requires_grad_() for name in names}
        self.leaves = [self.logprob, self.entropy, *self.values.values()]
        self.reference, self.near = draw(-2.5, -0.2), draw(-0.5, 0.5)
        self.said = {name: draw(-1.0, 1.0) for name in names}
        self.usual = torch.tensor([0.7, torch.nan, 1.1])
        self.hidden = torch.as_tensor(rng.normal(size=(tokens, 3)))

    def columns(self, batch: Batch, weight: Tensor) -> LossInputs:
        """The columns of a batch, or of a part of one."""
        needs, at = needs_of(self.objective), batch.origin
        values = {name: value[at] for name, value in self.values.items()}
        seen = TokenOutputs(
            logprob=self.logprob[at],
            entropy=self.entropy[at] if ENTROPY in needs else None,
            values=values,
            hidden=self.hidden[at] if HIDDEN_STATES in needs else None,
        )
        expert = batch.expert if DEMONSTRATIONS in needs else torch.zeros(len(at), dtype=torch.bool)
        near = (self.logprob.detach()[at] + self.near[at]).where(~expert, 0.0)
        said = {name: said[at] for name, said in self.said.items()}
        batch = replace(batch, rollout_logprob=near, value_targets=said, old_values=said)
        old = near + self.near.flip(0)[at] * (batch.tree % 2)[batch_rows(batch)] if OLD_LOGPROBS in needs else None
        context = ObjectiveContext(
            mean_turn_entropy=self.usual if MEAN_TURN_ENTROPY in needs else None,
            progress=0.4,
            clipped_norm=1.5 if CLIPPED_NORM in needs else None,
        )
        columns = with_outputs(before_forward(batch, needs, context, loss_weight=weight, old=old), seen, needs)
        # The scale of the whole optimizer batch, of which this may be a part.
        return replace(columns, metric_scale=1.0, reference=self.reference[at] if REFERENCE in needs else None)

    def read(self, columns: LossInputs) -> tuple[list[Tensor], dict[str, float]]:
        """Gradients of all that the policy is, and what is reported."""
        loss = self.objective(columns)
        return slopes(loss, self.leaves), {name: float(metric) for name, metric in loss.metrics.items()}


def batch_rows(batch: Batch) -> Tensor:
    """[M]: the row of each trained token."""
    return torch.searchsorted(batch.row, batch.at, right=True) - 1


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-9)


@separable
@pytest.mark.parametrize("share", SHARES, ids=lambda share: share.by)
def test_token_by_token_is_path_by_path(objective: Objective, share: Normalizer) -> None:
    trees, batch = forest(experts=DEMONSTRATIONS in needs_of(objective), seed=0)
    sight = Sight(objective, sum(len(tree.token) for tree in trees), seed=1)
    columns = sight.columns(batch, loss_weights(batch, share))
    packed, apiece = sight.read(columns), sight.read(by_path(columns, batch, share))
    assert_same(packed[0], apiece[0])


@separable
def test_any_split_gives_the_same_gradient_and_metrics(objective: Objective) -> None:
    trees, batch = forest(experts=DEMONSTRATIONS in needs_of(objective), seed=2)
    sight = Sight(objective, sum(len(tree.token) for tree in trees), seed=3)
    weight = loss_weights(batch, Normalizer())
    whole, reported = sight.read(sight.columns(batch, weight))
    shuffled = torch.randperm(batch.rows, generator=torch.Generator().manual_seed(1))
    splits: list[list[MiniBatch]] = [
        [batch.select_rows(row[None]) for row in shuffled],
        [batch.select_rows(shuffled)],
        [batch.select_rows(shuffled[0::2]), batch.select_rows(shuffled[1::2])],
    ]
    for parts in splits:
        each = [sight.read(sight.columns(part.batch, weight[part.trained])) for part in parts]
        assert_same([torch.stack(column).sum(0) for column in zip(*(part[0] for part in each), strict=True)], whole)
        assert {name: sum(part[1][name] for part in each) for name in reported} == pytest.approx(
            reported, rel=1e-5, abs=1e-7
        )


@every
def test_only_what_the_policy_wrote_and_what_counts_is_moved(objective: Objective) -> None:
    trees, batch = forest(experts=DEMONSTRATIONS in needs_of(objective), seed=4)
    sight = Sight(objective, sum(len(tree.token) for tree in trees), seed=5)
    columns = sight.columns(batch, loss_weights(batch, Normalizer()))
    moved = sum(slope.abs() for slope in sight.read(by_path(columns, batch, Normalizer()))[0])
    assert isinstance(moved, Tensor)
    assert moved.max() > 0
    allowed = np.concatenate([_may_learn(tree, teacher=i >= 4) for i, tree in enumerate(trees)])
    assert not bool(moved[torch.as_tensor(~allowed)].any())


def _may_learn(tree: Tree, *, teacher: bool) -> np.ndarray:
    """[T] bool: of actions that the policy (or the teacher) wrote, on the way to an end that counts."""
    ends = np.zeros(tree.nodes)
    ends[counted(tree)] = 1
    source = Source.TEACHER if teacher else Source.SAMPLED
    return ((tree.kind == ACTION) & (tree.source == source) & (sum_of_subtree(tree, ends) > 0))[token_node(tree)]


# --- Through a model, as the learner does it. ---


def exact_norms(policy: Policy) -> None:
    """Have a model's norms compute in its own dtype: transformers computes them in float32 whatever that is."""
    for module in policy._model.model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = partial(_norm, module)


def _norm(module: torch.nn.Module, hidden: Tensor) -> Tensor:
    return module.weight * hidden * (hidden.square().mean(-1, keepdim=True) + module.variance_epsilon).rsqrt()


# Gradients are taken of them, and no step.
@cache
def policies(dtype: str) -> tuple[Policy, Policy]:
    """A policy with tied embeddings, and another as its reference."""
    one, other = (
        Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=128, dtype=dtype, seed=seed).build(["a"])  # type: ignore[arg-type]
        for seed in (0, 1)
    )
    exact_norms(one)
    exact_norms(other)
    return one, other


@cache
def _replica(policy: Policy) -> Policy:
    """A copy, made once: nothing changes its weights."""
    return policy.replica()


@cache
def _seen(dtype: str, *, experts: bool) -> tuple[Batch, Tensor]:
    """A forest, and the log-probabilities of its tokens, [M]: the same for all objectives."""
    _, batch = forest(experts=experts, seed=6, count=2)
    learner = Learner(policies(dtype)[0], Optimizer(), total_updates=1, temperature=1.0)
    return batch, learner.logprobs(batch).double()


def gradient_through(
    objective: Objective,
    batch: Batch,
    pair: tuple[Policy, Policy],
    critic: Critic,
    old: Tensor,
    *,
    merges: bool,
    micro_tokens: int,
    cpu_workers: int = 1,
) -> tuple[dict[str, float], Tensor]:
    """What the learner reports, and its gradient of all weights in one row."""
    optimizer = Optimizer(micro_tokens=micro_tokens, cpu_workers=cpu_workers)
    learner = Learner(pair[0], optimizer, total_updates=1, temperature=1.0, critic=critic)
    learner.merges = merges
    weights = [*pair[0].parameters().values(), *critic.parameters()]
    for weight in weights:
        weight.grad = None
    context = ObjectiveContext(
        reference=_replica(pair[1]), mean_turn_entropy=torch.tensor([4.0, torch.nan, 7.0]), progress=0.4
    )
    metrics = learner.backward(
        batch, objective, Normalizer(), context=context, old=old if OLD_LOGPROBS in needs_of(objective) else None
    )
    flat = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in weights]
    # How much was read, and when, is what differs.
    told = {name: value for name, value in metrics.items() if not name.startswith(("update/", "time/"))}
    return told, torch.cat([each.flatten() for each in flat])


def _with_ends(batch: Batch, seed: int) -> Batch:
    """The batch with made-up ends of its paths, each a success or a failure."""
    if batch.path_index is None:
        return batch
    ends = np.random.default_rng(seed).choice([-1, 1], size=len(batch.path_index.end))
    return replace(batch, path_index=replace(batch.path_index, end=torch.as_tensor(ends)))


@every
def test_a_forest_in_stretches_is_path_by_path(objective: Objective) -> None:
    """Branches disagree in sign about tokens that they share, and some ratios are clipped."""
    # A setting is no matter of how often a forest is cut.
    assert_stretches_are_paths(objective, "float64", 1e-10, CUTS if objective in DEFAULTS.values() else CUTS[2:3])


@with_defaults
def test_a_forest_in_stretches_is_path_by_path_in_single_precision(objective: Objective) -> None:
    assert_stretches_are_paths(objective, "float32", 1e-5, CUTS[:1])


def assert_stretches_are_paths(objective: Objective, dtype: str, bound: float, cuts: Sequence[tuple[int, int]]) -> None:
    pair = policies(dtype)
    batch, seen = _seen(dtype, experts=DEMONSTRATIONS in needs_of(objective))
    torch.manual_seed(0)
    names = heads(objective) if CRITIC in needs_of(objective) else ("value",)
    critic = ValueHead(heads=names).build(16).to(pair[0].dtype)
    torch.nn.init.normal_(critic.linear.weight)
    rng = np.random.default_rng(7)
    goal = {name: torch.as_tensor(rng.normal(size=len(batch.at))) for name in names}
    near = seen + torch.as_tensor(rng.uniform(-0.5, 0.5, size=len(seen)))
    batch = replace(batch, rollout_logprob=near.where(~batch.expert, 0.0), value_targets=goal, old_values=goal)
    old = near + torch.as_tensor(rng.uniform(-0.01, 0.01, size=len(seen)))
    drawn = (_with_ends(batch, seed) for seed in range(32))
    tried = (
        (each, gradient_through(objective, each, pair, critic, old, merges=False, micro_tokens=10**6)) for each in drawn
    )
    # Preferences that go by how paths end have no pairs for some draws.
    batch, (reported, apiece) = next((each, found) for each, found in tried if bool(found[1].any()))
    forest_ = batch.prefix_tree()
    assert len(forest_) < forest_.path_tokens
    assert len(forest_.chunks(10)) > 3
    # Rounding is the same in all cuts.
    for micro_tokens, cpu_workers in cuts:
        again, packed = gradient_through(
            objective, batch, pair, critic, old, merges=True, micro_tokens=micro_tokens, cpu_workers=cpu_workers
        )
        assert again == pytest.approx(reported, rel=1e3 * bound, abs=1e3 * bound)
        assert float((packed - apiece).norm() / apiece.norm()) <= bound


# --- Nothing to learn, and too much. ---


@every
def test_without_gain_or_lose_nothing_moves(objective: Objective) -> None:
    """But for regularisers, which say so; and demonstrations, which always gain."""
    moved = 0.0
    for seed in SEEDS:
        given, _ = random_columns(np.random.default_rng(seed), objective)
        expert = torch.zeros_like(given.positive).bool() if given.expert is None else given.expert
        still = replace(given, positive=expert.to(given.positive), negative=torch.zeros_like(given.negative))
        leaves = [given.logprob, *([] if given.entropy is None else [given.entropy])]
        moved = max(moved, *(float(slope[~expert].abs().max()) for slope in slopes(objective(still), leaves)))
    assert (moved > 0) == regularises(objective)


@every
def test_what_is_asked_for_is_enough_and_metrics_carry_no_gradient(objective: Objective) -> None:
    """`random_columns` gives the needs alone."""
    given, _ = random_columns(np.random.default_rng(0), objective)
    loss = objective(given)
    assert loss.value.shape == ()
    assert not any(metric.requires_grad for metric in loss.metrics.values())


@every
@pytest.mark.parametrize("side", [1.0, -1.0], ids=["likelier", "less likely"])
def test_a_policy_far_from_everything_is_finite(objective: Objective, side: float) -> None:
    for seed in SEEDS:
        given, leaves = random_columns(np.random.default_rng(seed), objective, dtype=torch.float32)
        # Both ends are log-probabilities: one of almost 0, the other 60 below.
        here, there = (-0.001, -60.001) if side > 0 else (-60.001, -0.001)
        logprob = torch.full_like(given.logprob, here).detach().requires_grad_()
        far = torch.full_like(given.logprob, there).detach()
        expert = torch.zeros_like(given.positive).bool() if given.expert is None else given.expert
        given = replace(
            given,
            logprob=logprob,
            rollout_logprob=far.where(~expert, 0.0),
            reference=None if given.reference is None else far,
            old=None if given.old is None else torch.where(torch.arange(len(far)) % 2 == 0, far, logprob.detach()),
        )
        loss = objective(given)
        found = [loss.value.detach(), *loss.metrics.values(), *slopes(loss, [logprob, *leaves[1:]])]
        assert all(bool(each.isfinite().all()) for each in found)
