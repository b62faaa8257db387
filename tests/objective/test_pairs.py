"""Which pairs there are: on chosen paths, and on random trees against a plain enumeration."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from tests.objective.preference_pairs import P, T, lay
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, random_tree, rewarded, seeds
from torch import Tensor

from bough.batch import Batch, pack
from bough.learner import Learner, Optimizer
from bough.learner.loss_inputs import ObjectiveContext, by_path
from bough.objective import Dpo, LossInputs, Normalizer, Pairs
from bough.policy import Tiny
from bough.tree import Credited, Outcome, Source, Tree, counted, path, spread_paths

DONE = Outcome.TERMINATED


def chosen(pairs: Pairs, columns: LossInputs) -> set[tuple[int, int]]:
    """Which unit over which, units numbered in order."""
    found = pairs(columns, "test")
    return set(zip(found.won.tolist(), found.lost.tolist(), strict=True))


def of(*advantages: float, task: int = 0) -> list[P]:
    return [P(turns=[T(logprob=[-1.0])], advantage=a, task=task) for a in advantages]


def test_the_example_of_the_docstring() -> None:
    columns = lay(of(1.0, 1.0, 0.0, -1.0))
    assert chosen(Pairs(), columns) == {(0, 3)}
    assert chosen(Pairs(choice="best_second"), columns) == {(0, 2)}
    assert chosen(Pairs(choice="opposite"), columns) == {(0, 3), (1, 3)}
    assert chosen(Pairs(choice="all"), columns) == {(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}


def test_tasks_are_apart_wherever_their_paths_stand() -> None:
    columns = lay([*of(1.0, task=4), *of(0.0, task=2), *of(-1.0, task=4), *of(3.0, task=2), *of(9.0, task=1)])
    for choice in ("best_worst", "best_second", "all"):
        assert chosen(Pairs(choice=choice), columns) == {(0, 2), (3, 1)}


def test_a_gap_that_is_too_small_is_a_tie() -> None:
    columns = lay(of(1.0, 0.75, 0.25))
    assert chosen(Pairs(choice="all", gap=0.5), columns) == {(0, 2)}
    assert chosen(Pairs(choice="best_second", gap=0.25), columns) == {(0, 2)}
    assert chosen(Pairs(gap=0.75), columns) == set()


def test_a_path_is_worth_the_mean_of_its_turns_however_long_they_are() -> None:
    turns = [T(logprob=[-1.0] * 9, advantage=0.0), T(logprob=[-1.0], advantage=1.0)]
    assert chosen(Pairs(), lay([P(turns=turns), *of(0.4)])) == {(0, 1)}
    assert lay([P(turns=turns)]).advantage.mean() < 0.4


def test_what_both_paths_begin_with_is_left_out() -> None:
    shared = T(logprob=[-0.7, -0.1], reference=[-0.2, -0.2], context_id=0, response_id=5)
    columns = lay(
        [
            P(turns=[shared, T(logprob=[-1.0, -2.0], context_id=1)], advantage=1.0),
            P(turns=[shared, T(logprob=[-3.0], context_id=1)], advantage=-1.0),
        ]
    )
    pairs = Pairs()(columns, "test")
    assert pairs.winner.means(columns.logprob).tolist() == [-1.5]
    assert pairs.loser.means(columns.logprob).tolist() == [-3.0]
    (slope,) = torch.autograd.grad(pairs.margin(columns).sum(), columns.logprob)
    assert slope.tolist() == [0, 0, 1, 1, 0, 0, -1]


def test_a_path_that_is_the_beginning_of_another_makes_no_pair_with_it() -> None:
    shared = T(logprob=[-0.7], context_id=0, response_id=5)
    columns = lay([P(turns=[shared, T(logprob=[-1.0])], advantage=1.0), P(turns=[shared], advantage=-1.0)])
    assert chosen(Pairs(), columns) == set()
    twice = lay([P(turns=[shared], advantage=1.0), P(turns=[shared], advantage=-1.0)])
    assert chosen(Pairs(), twice) == set()


def test_an_answer_written_several_times_is_one_and_worth_its_mean() -> None:
    columns = lay(
        [
            P(turns=[T(logprob=[-1.0], context_id=0, response_id=1)], advantage=1.0),
            P(turns=[T(logprob=[-1.0], context_id=0, response_id=1)], advantage=-0.5),
            P(turns=[T(logprob=[-2.0], context_id=0, response_id=2)], advantage=0.2),
            P(turns=[T(logprob=[-2.0], context_id=0, response_id=3)], advantage=0.2),
        ]
    )
    pairs = Pairs(unit="turn", choice="all")(columns, "test")
    assert pairs.candidates.score.tolist() == pytest.approx([0.25, 0.2, 0.2])
    assert set(zip(pairs.won.tolist(), pairs.lost.tolist(), strict=True)) == {(0, 1), (0, 2)}
    assert pairs.gap.tolist() == pytest.approx([0.05, 0.05])


def forked() -> Tree:
    """A first answer that two paths share, and the same words once more beside it."""
    return build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2)),
        N(parent=0, kind=ACTION, tokens=(3, 4)),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, tokens=(5,), outcome=DONE, env_reward=1.0),
        N(parent=2, kind=ACTION, tokens=(6, 7), outcome=DONE),
        N(parent=0, kind=ACTION, tokens=(3, 4), outcome=DONE),
        N(parent=0, kind=ACTION, tokens=(3, 5), outcome=DONE),
        N(parent=0, kind=ACTION, tokens=(3,), outcome=DONE),
    )


def test_which_turns_of_a_tree_are_the_same_answer() -> None:
    tree = forked()
    path_index = pack([spread_paths(rewarded(tree), np.asarray([1.0, 0.0, 0.0, 0.0, 0.0]))], paths=True).path_index
    assert path_index is not None
    assert path_index.path_of_turn.tolist() == [0, 0, 1, 1, 2, 3, 4]
    first = [0, 2, 4]
    assert len({path_index.response_id[turn].item() for turn in first}) == 1
    assert len(set(path_index.response_id.tolist())) == 5
    assert len({path_index.context_id[turn].item() for turn in (*first, 5, 6)}) == 1
    assert path_index.context_id[1] == path_index.context_id[3] != path_index.context_id[0]


def test_siblings_compete_at_their_fork_and_nowhere_else() -> None:
    columns = _view(pack([spread_paths(rewarded(forked()), np.asarray([1.0, -1.0, 0.0, 0.5, -0.5]))], paths=True))
    pairs = Pairs(unit="turn", choice="all")(columns, "test")
    # First answers: 3 4 is worth the mean of 1, -1 and 0; 3 5 is worth .5, 3 alone -.5. After 3 4: 5 over 6 7.
    score = pairs.candidates.score
    found = {(score[one].item(), score[other].item()) for one, other in zip(pairs.won, pairs.lost, strict=True)}
    assert found == {(0.5, 0.0), (0.0, -0.5), (0.5, -0.5), (1.0, -1.0)}
    assert len(pairs.won) == 4


def _view(batch: Batch, rng: np.random.Generator | None = None) -> LossInputs:
    """The path view with random log-probabilities; the leaf of the gradient is `logprob` before the gather."""
    rng = np.random.default_rng(0) if rng is None else rng
    logprob, reference = (torch.as_tensor(rng.uniform(-2, -0.1, size=len(batch.at))) for _ in range(2))
    columns = LossInputs(
        logprob=logprob.requires_grad_(),
        rollout_logprob=batch.rollout_logprob,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=torch.ones_like(logprob).detach(),
        reference=reference,
    )
    return by_path(columns, batch, Normalizer())


@settings(max_examples=60)
@given(seeds())
def test_random_trees_against_plain_enumeration(rng: np.random.Generator) -> None:
    trees = [random_tree(rng, turns=3, vocab=2, task=f"task {i // 2}") for i in range(4)]
    score = [rng.integers(-1, 2, size=len(counted(tree))).astype(np.float64) for tree in trees]
    credited = [spread_paths(rewarded(tree), each) for tree, each in zip(trees, score, strict=True)]
    batch = pack(credited, paths=True)
    columns = _view(batch, rng)
    assert columns.reference is not None
    paths = _paths(credited, score, batch)
    assert len(paths) == len(columns.path_ids.task)  # type: ignore[union-attr]
    moved = (columns.logprob - columns.reference).detach()
    by_token = torch.zeros(len(batch.at), dtype=torch.float64)
    by_token[batch.path_index.trained] = moved  # type: ignore[union-attr]
    for unit, leads in (("path", _path_leads(paths, by_token)), ("turn", _turn_leads(paths, by_token))):
        loss = Dpo(pairs=Pairs(unit=unit, choice="all"))(columns)  # type: ignore[arg-type]
        assert loss.metrics["pairs"].item() == len(leads)
        wanted = sum(math.log1p(math.exp(-0.1 * margin)) for margin in leads) / max(1, len(leads))
        assert loss.value.item() == pytest.approx(wanted, abs=1e-9)


Turn = tuple[object, tuple[int, ...], list[int], object]
"""Of a turn of a path: its place, its words, which trained tokens they are, and which node or first answer it is."""


def _paths(
    credited: Sequence[Credited], score: Sequence[np.ndarray], batch: Batch
) -> list[tuple[str, float, list[Turn]]]:
    slot = {origin: place for place, origin in enumerate(batch.origin.tolist())}
    found: list[tuple[str, float, list[Turn]]] = []
    start = 0
    for number, (each, values) in enumerate(zip(credited, score, strict=True)):
        tree = each.tree
        for leaf, value in zip(counted(tree).tolist(), values.tolist(), strict=True):
            turns: list[Turn] = []
            for node in path(tree, leaf).tolist():
                tokens = range(start + int(tree.span[node]), start + int(tree.span[node + 1]))
                if tree.kind[node] != ACTION or tree.source[node] != Source.SAMPLED or not len(tokens):
                    continue
                parent = int(tree.parent[node])
                place = ("start", tree.task.id) if parent == 0 else (number, parent)
                words = tuple(tree.tokens_of(node).tolist())
                turns.append((place, words, [slot[t] for t in tokens], (place, words)))
            if turns:
                found.append((tree.task.id, value, turns))
        start += len(tree.token)
    return found


def _path_leads(paths: list[tuple[str, float, list[Turn]]], moved: Tensor) -> list[float]:
    leads: list[float] = []
    for (task, better, one), (other_task, worse, other) in itertools.permutations(paths, 2):
        if task != other_task or not better > worse:
            continue
        same = sum(a[3] == b[3] for a, b in zip(one, other, strict=False))
        sides = [[t for turn in turns[same:] for t in turn[2]] for turns in (one, other)]
        if all(sides):
            leads.append((moved[sides[0]].sum() - moved[sides[1]].sum()).item())
    return leads


def _turn_leads(paths: list[tuple[str, float, list[Turn]]], moved: Tensor) -> list[float]:
    answers: dict[object, tuple[object, list[int], list[float]]] = {}
    for _, value, turns in paths:
        for place, _, tokens, response_id in turns:
            answers.setdefault(response_id, (place, tokens, []))[2].append(value)
    leads: list[float] = []
    for (place, one, better), (other_place, other, worse) in itertools.permutations(answers.values(), 2):
        if place == other_place and np.mean(better) - np.mean(worse) > 1e-6:
            leads.append((moved[one].sum() - moved[other].sum()).item())
    return leads


def test_the_gradient_does_not_depend_on_micro_batches() -> None:
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, turns=4, vocab=200, task=str(i // 2)) for i in range(6)]
    credited = [spread_paths(rewarded(tree), rng.normal(size=len(counted(tree)))) for tree in trees]
    batch = pack(credited, paths=True)
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=128, dtype="float64").build(["a b"])
    reference = policy.replica()
    with torch.no_grad():
        for weight in policy.parameters().values():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1), dtype=weight.dtype))

    def gradient(unit: str, micro_tokens: int) -> list[Tensor]:
        learner = Learner(policy, Optimizer(micro_tokens=micro_tokens), total_updates=1, temperature=1.0)
        for weight in policy.parameters().values():
            weight.grad = None
        objective = Dpo(pairs=Pairs(unit=unit, choice="all"))  # type: ignore[arg-type]
        metrics = learner.backward(batch, objective, Normalizer(), context=ObjectiveContext(reference=reference))
        assert metrics["policy/pairs"] > 5
        return [weight.grad.clone() for weight in policy.parameters().values() if weight.grad is not None]

    for unit in ("path", "turn"):
        whole = gradient(unit, 10**6)
        assert max(slope.abs().max() for slope in whole) > 1e-4
        for micro_tokens in (1, 40):
            for one, other in zip(whole, gradient(unit, micro_tokens), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)
