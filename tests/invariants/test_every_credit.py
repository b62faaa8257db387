"""Invariants 2 to 4 for every credit rule there is: a rule that is added to the room is tested here without an edit."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from tests.trees import (
    ACTION,
    EDIT,
    OBSERVATION,
    PER_TOKEN,
    PROMPT,
    N,
    build,
    dressed,
    each_seed,
    random_tree,
    sides,
    subtree,
    view_of,
)

from bough.credit import Credit, compares_with
from bough.needs import Need, needs_of
from bough.tree import (
    COUNTED,
    Credited,
    Kind,
    Outcome,
    Rewarded,
    Tree,
    counted,
    paths_through,
    token_node,
    trained,
)
from rules import rules

RULES = rules()
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
CLOSE = 1e-5
"""Sums in another order, in float32, relative to credit of size 1."""


def forest(seed: int, rule: Credit, **shape: float) -> list[Rewarded]:
    """Four trees of three tasks, the second of which has two."""
    return [*_forest(seed, frozenset(needs_of(rule)), **shape)]


@lru_cache(maxsize=512)
def _forest(seed: int, needs: frozenset[Need], **shape: float) -> list[Rewarded]:
    rng = np.random.default_rng([seed, 1])
    return [dressed(tree, rng, needs) for tree in _trees(seed, **shape)]


@lru_cache(maxsize=64)
def _trees(seed: int, **shape: float) -> list[Tree]:
    rng = np.random.default_rng(seed)
    return [random_tree(rng, task=task, **shape) for task in ("a", "b", "c", "b")]  # type: ignore[arg-type]


def same(one: Credited, other: Credited) -> bool:
    """Whether both say the same of all tokens and turns, but for rounding."""
    pairs = [*zip(sides(one), sides(other), strict=True)]
    turns, other_turns = one.turn_advantage, other.turn_advantage
    if turns is not None and other_turns is not None:
        pairs.append((turns, other_turns))
    pairs += [(goal, other.value_targets[name]) for name, goal in one.value_targets.items()]
    return (turns is None) == (other_turns is None) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=CLOSE, atol=CLOSE, equal_nan=True) for a, b in pairs
    )


def nothing(credited: Credited) -> bool:
    """Whether no token is to thank or to blame, exactly."""
    return not any(side.any() for side in sides(credited))


def test_the_scan_finds_rules() -> None:
    assert {"Grpo", "dr_grpo", "rloo"} <= set(RULES)
    assert not {"Credit", "compares_with"} & set(RULES)


@every_rule
@each_seed
def test_credit_is_finite_has_its_sign_and_is_of_trained_tokens_alone(rule: Credit, seed: int) -> None:
    given_trees = forest(seed, rule)
    credited = rule(given_trees)
    assert [c.rewarded.tree for c in credited] == [each.tree for each in given_trees]
    for c in credited:
        outside, (positive, negative) = ~trained(c.tree), sides(c)
        assert np.isfinite(positive).all()
        assert np.isfinite(negative).all()
        assert (positive >= 0).all()
        assert (negative <= 0).all()
        assert not positive[outside].any()
        assert not negative[outside].any()
        assert all(np.isnan(goal[outside]).all() for goal in c.value_targets.values())
        assert set(c.excluded_leaves.tolist()) <= set(counted(c.tree).tolist())


@every_rule
@each_seed
def test_what_is_packed_is_the_mean_of_what_the_paths_say(rule: Credit, seed: int) -> None:
    """A rule on turns says what each path gives to each turn, and a node gets the means of what gains and loses."""
    for c in rule(forest(seed, rule)):
        if c.turn_advantage is None:
            continue
        view, advantage, learns, of_node = (
            view_of(c.rewarded),
            c.turn_advantage,
            trained(c.tree),
            token_node(c.tree),
        )
        thanked, blamed = sides(c)
        for node in np.flatnonzero((c.tree.kind == Kind.ACTION) & (view.through > 0)).tolist():
            said = advantage[view.node == node]
            mine = (of_node == node) & learns
            assert len(said) == view.through[node]
            for side, means in ((thanked, np.maximum(said, 0).mean()), (blamed, np.minimum(said, 0).mean())):
                values = {*side[mine].tolist()}
                assert len(values) <= 1
                assert all(math.isclose(value, means, rel_tol=CLOSE, abs_tol=CLOSE) for value in values)


@lru_cache(maxsize=512)
def _uncounted(seed: int, needs: frozenset[Need]) -> tuple[list[Rewarded], list[np.ndarray], list[Rewarded]]:
    """Trees with paths that do not count, the nodes [N] bool of those that do, and the trees of these."""
    trees = _forest(seed, needs, unusual=0.5)
    kept = [(paths_through(each.tree) > 0) | (np.arange(each.tree.nodes) == 0) for each in trees]
    return trees, kept, [subtree(each, stays) for each, stays in zip(trees, kept, strict=True)]


@every_rule
@each_seed
def test_refused_failed_and_open_paths_move_nobodys_credit(rule: Credit, seed: int) -> None:
    with_them, kept, without = _uncounted(seed, frozenset(needs_of(rule)))
    for one, stays, other in zip(rule(with_them), kept, rule(without), strict=True):
        words = stays[token_node(one.tree)]
        value_targets = {name: goal[words] for name, goal in one.value_targets.items()}
        excluded_leaves = np.flatnonzero(np.isin(np.flatnonzero(stays), one.excluded_leaves))
        cut = replace(
            one,
            rewarded=other.rewarded,
            path_advantage=one.path_advantage,
            value_targets=value_targets,
            excluded_leaves=excluded_leaves,
        )
        assert same(cut, other)
        assert not any(side[~words].any() for side in sides(one))


def chain(
    rng: np.random.Generator, needs: frozenset[Need], copies: int, task: str = "task", returns: float | None = None
) -> Rewarded:
    """Chains that are the same in everything: tokens, rewards, states, estimates, marks. No state comes twice."""
    turns = int(rng.integers(1, 5))
    nodes = [N(parent=-1, kind=PROMPT, state_key=100)]
    for turn in range(turns):
        written = tuple(rng.integers(4, 9, size=int(rng.integers(1, 4))).tolist())
        paid = float(rng.integers(-2, 3)) if returns is None else returns
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION, tokens=written, env_reward=paid))
        ending = Outcome.TERMINATED if turn == turns - 1 else Outcome.OPEN
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=ending, state_key=101 + turn))
    return twins(dressed(build(*nodes, task=task), rng, needs), copies)


def twins(one: Rewarded, copies: int) -> Rewarded:
    """A chain, several times from its prompt."""
    tree = one.tree
    below = tree.nodes - 1
    prompt = tree.span[1]
    columns = {}
    for name, column in tree.columns().items():
        head = prompt if name in PER_TOKEN else 1
        columns[name] = np.concatenate([column[:head], *([column[head:]] * copies)])
    shift = np.repeat(np.arange(copies) * below, below)
    parent = columns["parent"].copy()
    parent[1:] += np.where(parent[1:] > 0, shift, 0).astype(parent.dtype)
    columns["parent"] = parent
    columns["span"] = np.cumsum([0, prompt, *(np.diff(tree.span)[1:].tolist() * copies)])
    nodes = np.asarray([0, *[*range(1, tree.nodes)] * copies])
    whole = Tree(
        task=tree.task,
        info=(tree.info[0], *(tree.info[1:] * copies)),
        appraisals={name: each.take(nodes) for name, each in tree.appraisals.items()},
        **columns,
    )
    return Rewarded(
        tree=whole,
        channels={n: np.concatenate([c[:1], *([c[1:]] * copies)]) for n, c in one.channels.items()},
        estimates={n: np.concatenate([c[:prompt], *([c[prompt:]] * copies)]) for n, c in one.estimates.items()},
    )


@lru_cache(maxsize=512)
def _alike(seed: int, needs: frozenset[Need]) -> tuple[list[Rewarded], list[Rewarded]]:
    """Three tasks, each with one to four chains that are the same; and three tasks that are the same."""
    rng, copies = np.random.default_rng(seed), 1 + seed % 4
    tasks = [chain(rng, needs, copies, task=str(number)) for number in range(3)]
    return tasks, [chain(np.random.default_rng(3), needs, copies, task=str(n), returns=1.0) for n in range(3)]


@every_rule
@each_seed
def test_groups_of_one_and_groups_that_are_all_alike(rule: Credit, seed: int) -> None:
    """Exactly zero for what compares within a task, over the batch when that is all alike; never nan."""
    tasks, even = _alike(seed, frozenset(needs_of(rule)))
    credited = rule(tasks)
    assert all(np.isfinite(side).all() for c in credited for side in sides(c))
    match compares_with(rule):
        case "task":
            assert all(nothing(c) for c in credited)
            assert all(nothing(c) for c in rule(tasks[:1]))
        case "batch":
            assert all(nothing(c) for c in rule(even))
        case "nothing":
            pass


@lru_cache(maxsize=512)
def _pair(seed: int, needs: frozenset[Need]) -> list[Rewarded]:
    """A task with two chains that are the same, and one with one."""
    rng = np.random.default_rng(seed)
    return [chain(rng, needs, copies) for copies in (2, 1)]


@every_rule
@each_seed
def test_paths_that_are_alike_get_the_same(rule: Credit, seed: int) -> None:
    pair = _pair(seed, frozenset(needs_of(rule)))
    credited = rule(pair)[0]
    half = (len(credited.tree.token) - int(credited.tree.span[1])) // 2
    for side in sides(credited):
        assert np.allclose(side[-half:], side[-2 * half : -half], rtol=0, atol=CLOSE)


@lru_cache(maxsize=512)
def _in_texts(seed: int, needs: frozenset[Need]) -> tuple[list[Rewarded], list[Rewarded]]:
    """Trees whose paths are one text each, and the same with a text for every turn."""
    whole = _forest(seed, needs, edits=0.0)
    inner = [np.isin(np.arange(each.tree.nodes), each.tree.parent) for each in whole]
    rebuilt = []
    for each, goes_on in zip(whole, inner, strict=True):
        columns = each.tree.columns()
        again = (columns["kind"] == OBSERVATION) & goes_on & (np.diff(each.tree.span) > 0)
        columns["kind"] = np.where(again, EDIT, columns["kind"]).astype(np.int8)
        rebuilt.append(replace(each, tree=replace(each.tree, **columns)))
    return whole, rebuilt


@every_rule
@each_seed
def test_statistics_are_over_paths_however_many_texts_they_are_read_in(rule: Credit, seed: int) -> None:
    """Whether a turn is read as more of one text or begins a new one, which is a row of its own, changes nothing."""
    whole, rebuilt = _in_texts(seed, frozenset(needs_of(rule)))
    for one, other in zip(rule(whole), rule(rebuilt), strict=True):
        assert same(one, other)


@every_rule
@each_seed
def test_the_order_of_trees_does_not_matter(rule: Credit, seed: int) -> None:
    trees = forest(seed, rule)
    order = np.random.default_rng(seed).permutation(len(trees)).tolist()
    credited = rule(trees)
    for place, again in zip(order, rule([trees[place] for place in order]), strict=True):
        assert same(again, credited[place])


@lru_cache(maxsize=512)
def _turned(seed: int, needs: frozenset[Need]) -> tuple[list[Rewarded], list[list[int]], list[Rewarded]]:
    """Trees, the numbers of their nodes in another order, and the trees in that order."""
    trees, rng = _forest(seed, needs), np.random.default_rng(seed)
    orders = [shuffled(each, rng) for each in trees]
    return trees, orders, [subtree_in_order(each, order) for each, order in zip(trees, orders, strict=True)]


@every_rule
@each_seed
def test_the_order_of_paths_does_not_matter(rule: Credit, seed: int) -> None:
    """The branches of a root, in another order."""
    trees, orders, turned = _turned(seed, frozenset(needs_of(rule)))
    for one, order, other in zip(rule(trees), orders, rule(turned), strict=True):
        words = words_of(one.tree, order)
        for mine, again in zip(sides(one), sides(other), strict=True):
            assert np.allclose(mine[words], again, rtol=CLOSE, atol=CLOSE)


def shuffled(given_tree: Rewarded, rng: np.random.Generator) -> list[int]:
    """The nodes with the branches of the root in another order."""
    tree = given_tree.tree
    branch = np.cumsum(tree.parent == 0)
    order = [0]
    for number in (rng.permutation(int(branch[-1])) + 1).tolist():
        order += np.flatnonzero(branch == number).tolist()
    return order


def words_of(tree: Tree, order: Sequence[int]) -> np.ndarray:
    """The tokens of the nodes, in their order."""
    return np.concatenate([np.arange(tree.span[node], tree.span[node + 1]) for node in order])


def subtree_in_order(one: Rewarded, order: list[int]) -> Rewarded:
    """The same tree with its nodes in another order."""
    tree, words = one.tree, words_of(one.tree, order)
    columns = {
        name: column[words] if name in PER_TOKEN else column[order]
        for name, column in tree.columns().items()
        if name != "span"
    }
    number = np.argsort(order)
    columns["parent"] = np.where(columns["parent"] < 0, -1, number[columns["parent"]]).astype(np.int32)
    columns["span"] = np.concatenate([[0], np.cumsum(np.diff(tree.span)[order])])
    return Rewarded(
        tree=Tree(
            task=tree.task,
            info=tuple(tree.info[node] for node in order),
            appraisals={name: each.take(np.asarray(order)) for name, each in tree.appraisals.items()},
            **columns,  # type: ignore[arg-type]
        ),
        channels={name: paid[order] for name, paid in one.channels.items()},
        estimates={name: thought[words] for name, thought in one.estimates.items()},
    )


@every_rule
@each_seed
def test_what_is_given_stays_as_it_is(rule: Credit, seed: int) -> None:
    trees = _forest.__wrapped__(seed, frozenset(needs_of(rule)))
    arrays = [column for each in trees for column in (*each.channels.values(), *each.estimates.values())]
    before = [column.copy() for column in arrays]
    infos = [repr(each.tree.info) for each in trees]
    rule(trees)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays, before, strict=True))
    assert infos == [repr(each.tree.info) for each in trees]


@every_rule
def test_batches_with_nothing_in_them(rule: Credit) -> None:
    rng = np.random.default_rng(0)
    assert rule([]) == []
    bare = dressed(build(N(parent=-1, kind=PROMPT)), rng, needs_of(rule))
    failed = chain(rng, frozenset(needs_of(rule)), 2, task="failed")
    columns = failed.tree.columns()
    columns["outcome"] = np.where(np.isin(columns["outcome"], COUNTED), Outcome.FAILED, columns["outcome"]).astype(
        np.int8
    )
    failed = replace(failed, tree=replace(failed.tree, **columns))
    for batch in ([bare], [failed], [bare, failed]):
        for c in rule(batch):
            assert nothing(c)
            assert all(np.isnan(goal).all() for goal in c.value_targets.values())
