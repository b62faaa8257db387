import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, build, chains, credited, random_tree, rewarded, seeds

from bough.batch import Batch, pack, pack_demonstrations
from bough.tree import Outcome, Source, Tree, counted, path, spread_paths, token_node, trained

DONE = Outcome.TERMINATED


def branching(*, edit: bool = False) -> Tree:
    """The example of `Batch`: after a shared action, two more."""
    return build(
        N(parent=-1, kind=PROMPT, tokens=(7, 8)),
        N(parent=0, kind=ACTION, tokens=(1, 2), logprob=(-0.1, -0.2)),
        N(parent=1, kind=EDIT if edit else OBSERVATION, tokens=(9,)),
        N(parent=2, kind=ACTION, tokens=(3,), logprob=-0.3),
        N(parent=3, kind=OBSERVATION, tokens=(6, 6), outcome=DONE),
        N(parent=2, kind=ACTION, tokens=(4, 5), logprob=(-0.4, -0.5), outcome=DONE),
    )


def rows(batch: Batch) -> list[list[int]]:
    return [row.tolist() for row in batch.tokens.split(batch.row.diff().tolist())]


def test_worked_example() -> None:
    batch = pack([spread_paths(rewarded(branching()), np.asarray([2.0, -1.0]))])
    assert rows(batch) == [[7, 8, 1, 2, 9, 3], [7, 8, 1, 2, 9, 4, 5]]
    assert batch.position.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 6]
    assert batch.row.tolist() == [0, 6, 13]
    assert batch.tree.tolist() == [0, 0]
    assert batch.at.tolist() == [2, 3, 5, 11, 12]
    assert batch.target.tolist() == [1, 2, 3, 4, 5]
    forest = batch.prefix_tree()
    assert forest.tokens.tolist() == [7, 8, 1, 2, 9, 4]
    assert forest.at.tolist() == [1, 2, 4, 4, 5]
    assert batch.prefix_tree(merge=False).path_tokens == len(batch.prefix_tree(merge=False)) == 11
    assert batch.rollout_logprob.tolist() == pytest.approx([-0.1, -0.2, -0.3, -0.4, -0.5])
    assert batch.positive.tolist() == [1, 1, 2, 0, 0]
    assert batch.negative.tolist() == [-0.5, -0.5, 0, -1, -1]
    assert batch.paths.tolist() == [2, 2, 1, 1, 1]
    assert batch.inverse_length.tolist() == pytest.approx([1 / 3 + 1 / 4] * 2 + [1 / 3] + [1 / 4] * 2)
    assert batch.equal_length.tolist() == [False, False, True, True, True]


def test_a_rebuilt_context_is_a_row_of_its_own() -> None:
    batch = pack([spread_paths(rewarded(branching(edit=True)), np.asarray([2.0, -1.0]))])
    assert rows(batch) == [[7, 8, 1, 2], [9, 3], [9, 4, 5]]
    assert batch.target.tolist() == [1, 2, 3, 4, 5]
    assert batch.paths.tolist() == [2, 2, 1, 1, 1]


def test_rows_that_would_train_nothing_are_not_there() -> None:
    tree = chains([1.0, 0.0, 0.0, 1.0], outcomes=[DONE, Outcome.FAILED, Outcome.REFUSED, Outcome.OPEN])
    batch = pack([spread_paths(rewarded(tree), np.asarray([1.0]))])
    assert batch.rows == 1
    assert rows(batch)[0] == [1, 2, 3, *tree.tokens_of(1).tolist()]


def test_teachers_are_context_for_the_policy_and_the_other_way_round() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(7,)),
        N(parent=0, kind=ACTION, tokens=(1, 2), source=Source.TEACHER),
        N(parent=1, kind=OBSERVATION, tokens=(9,)),
        N(parent=2, kind=ACTION, tokens=(3,)),
        N(parent=3, kind=OBSERVATION, tokens=(9,)),
        N(parent=4, kind=ACTION, tokens=(4,), source=Source.TEACHER, outcome=DONE),
    )
    batch = pack([spread_paths(rewarded(tree), np.asarray([1.0]))])
    assert (rows(batch), batch.target.tolist()) == ([[7, 1, 2, 9, 3]], [3])
    shown = pack_demonstrations([tree])
    assert (rows(shown), shown.target.tolist()) == ([[7, 1, 2, 9, 3, 9, 4]], [1, 2, 4])
    assert shown.positive.tolist() == [1, 1, 1]
    assert shown.negative.tolist() == shown.rollout_logprob.tolist() == [0, 0, 0]
    assert shown.inverse_length.sum().item() == pytest.approx(1.0)


def test_a_failed_demonstration_is_not_shown() -> None:
    start = N(parent=-1, kind=PROMPT)
    failed = N(parent=0, kind=ACTION, source=Source.TEACHER, outcome=Outcome.FAILED)
    batch = pack_demonstrations([build(start, failed)])
    assert (batch.rows, len(batch.tokens), len(batch.at)) == (0, 0, 0)
    assert batch.minibatches(3, seed=0) == []
    assert batch.prefix_tree().chunks(10) == []


def test_nothing_packs_to_nothing() -> None:
    assert pack([]).rows == 0
    assert pack([]).row.tolist() == [0]


def test_an_action_at_the_start_of_a_text_is_refused() -> None:
    tree = build(N(parent=-1, kind=PROMPT, tokens=()), N(parent=0, kind=ACTION, outcome=DONE))
    with pytest.raises(ValueError, match="got a trained token at the start of a text; need a token before it"):
        pack([spread_paths(rewarded(tree), np.asarray([1.0]))])


@given(seeds())
def test_path_statistics_of_random_trees(rng: np.random.Generator) -> None:
    trees = [random_tree(rng, task=str(i)) for i in range(3)]
    batch = pack([credited(tree, rng) for tree in trees])
    paths, inverse, even = [], [], []
    for tree in trees:
        learn, node = trained(tree), token_node(tree)
        ways = [path(tree, int(leaf)) for leaf in counted(tree)]
        length = [int(learn[np.isin(node, way)].sum()) for way in ways]
        # Rows come in node order, and a shared token is trained in the first row that has it: sort to compare.
        for token in np.flatnonzero(learn):
            mine = [n for n, way in zip(length, ways, strict=True) if node[token] in way]
            paths.append(len(mine))
            inverse.append(sum(1 / n for n in mine))
            even.append(len(set(mine)) == 1)
    assert sorted(batch.paths.tolist()) == sorted(paths)
    assert sorted(batch.inverse_length.tolist()) == pytest.approx(sorted(inverse))
    assert int(batch.equal_length.sum()) == sum(even)


def columns(batch: Batch) -> dict[str, torch.Tensor]:
    held = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    return {name: column for name, column in held.items() if isinstance(column, torch.Tensor)}


@given(seeds(), st.integers(1, 60), st.booleans())
def test_every_trained_token_is_predicted_from_what_was_read(
    rng: np.random.Generator, max_tokens: int, merge: bool
) -> None:
    batch = pack([credited(random_tree(rng, task=str(i)), rng) for i in range(3)])
    forest = batch.prefix_tree(merge=merge)
    assert sum(len(each) for each in forest.chunks(max_tokens)) == len(forest)
    for begin, at, place in zip(
        (batch.at - batch.position[batch.at]).tolist(), batch.at.tolist(), forest.at, strict=True
    ):
        seen = np.flatnonzero(forest.end[: place + 1] > place)
        assert torch.equal(forest.tokens[torch.as_tensor(seen)], batch.tokens[begin:at])


@given(seeds(), st.integers(1, 9))
def test_taking_rows_loses_nothing(rng: np.random.Generator, hands: int) -> None:
    batch = pack([credited(random_tree(rng, task=str(i)), rng) for i in range(3)])
    parts = [batch.select_rows(torch.arange(batch.rows)[first::hands]) for first in range(hands)]
    assert sorted(row for part in parts for row in rows(part.batch)) == sorted(rows(batch))
    assert sorted(torch.cat([torch.empty(0), *(part.trained for part in parts)]).tolist()) == list(range(len(batch.at)))
    for part in parts:
        for name in ("rollout_logprob", "positive", "negative", "paths", "inverse_length", "equal_length", "target"):
            assert torch.equal(getattr(part.batch, name), getattr(batch, name)[part.trained])
        before = [rows(batch)[i] for i in torch.searchsorted(batch.row, batch.at[part.trained], right=True) - 1]
        after = [rows(part.batch)[i] for i in torch.searchsorted(part.batch.row, part.batch.at, right=True) - 1]
        assert before == after


@given(seeds(), st.integers(1, 6))
def test_optimizer_steps_get_whole_trees(rng: np.random.Generator, count: int) -> None:
    batch = pack([credited(random_tree(rng, unusual=0.0, task=str(i)), rng) for i in range(4)])
    parts = batch.minibatches(count, seed=3)
    assert len(parts) == min(count, 4)
    dealt = [set(part.batch.tree.tolist()) for part in parts]
    assert sorted(tree for hand in dealt for tree in hand) == [0, 1, 2, 3]
    assert sum(part.batch.rows for part in parts) == batch.rows
    for part in parts:
        paths = part.batch.inverse_length.sum().item()
        assert paths == pytest.approx(round(paths))
    again = batch.minibatches(count, seed=3)
    assert all(torch.equal(a.trained, b.trained) for a, b in zip(parts, again, strict=True))


def test_other_seeds_deal_other_hands() -> None:
    batch = pack([spread_paths(rewarded(chains([1.0], task=str(i))), np.ones(1)) for i in range(8)])
    hands = {tuple(sorted(batch.minibatches(2, seed=seed)[0].batch.tree.tolist())) for seed in range(10)}
    assert len(hands) > 3


def test_each_optimizer_step_has_sampled_paths_and_demonstrations() -> None:
    sampled = [spread_paths(rewarded(chains([1.0], task=str(i))), np.ones(1)) for i in range(4)]
    answer = N(parent=0, kind=ACTION, tokens=(1, 2), source=Source.TEACHER, outcome=DONE)
    shown = build(N(parent=-1, kind=PROMPT, tokens=(7,)), answer)
    batch = pack(sampled, experts=[shown] * 4)
    for seed in range(10):
        assert [part.batch.expert.unique().tolist() for part in batch.minibatches(4, seed)] == [[False, True]] * 4


def test_taking_rows_out_of_order_keeps_them_whole() -> None:
    batch = pack([spread_paths(rewarded(branching()), np.asarray([2.0, -1.0]))])
    part = batch.select_rows(torch.tensor([1, 0]))
    assert rows(part.batch) == [[7, 8, 1, 2, 9, 4, 5], [7, 8, 1, 2, 9, 3]]
    assert part.trained.tolist() == [3, 4, 0, 1, 2]
    assert part.batch.at.tolist() == [5, 6, 9, 10, 12]
    back = part.batch.select_rows(torch.tensor([1, 0])).batch
    assert all(torch.equal(mine, columns(batch)[name]) for name, mine in columns(back).items())


def test_counts_below_one_are_refused() -> None:
    batch = pack([spread_paths(rewarded(branching()), np.asarray([2.0, -1.0]))])
    with pytest.raises(ValueError, match=r"Batch.minibatches: got count=0; need at least 1"):
        batch.minibatches(0, seed=0)


def test_moving_keeps_every_column() -> None:
    batch = pack([spread_paths(rewarded(branching()), np.asarray([2.0, -1.0]))])
    moved = columns(batch.to("cpu"))
    assert all(torch.equal(mine, moved[name]) for name, mine in columns(batch).items())


@pytest.mark.parametrize("paths", [False, True])
def test_with_paths_the_trees_of_a_task_are_in_one_optimizer_step(paths: bool) -> None:
    trees = [chains([1.0, 0.0], turns=2, task=task) for task in "abcdabcd"]
    whole = pack([spread_paths(rewarded(tree), np.asarray([1.0, -1.0])) for tree in trees], paths=paths)
    owner = torch.arange(len(whole.at)) // (len(whole.at) // 8) % 4
    together = 0
    for seed in range(8):
        parts = whole.minibatches(4, seed)
        assert sum(len(part.trained) for part in parts) == len(whole.at)
        tasks = [set(owner[part.trained].tolist()) for part in parts]
        together += sum(map(len, tasks)) == 4
    assert (together == 8) == paths, "without paths a tree may be parted from the other one of its task"
