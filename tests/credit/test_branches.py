from dataclasses import replace

import numpy as np
from hypothesis import given
from tests.credit.grown import TOY, branching
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, random_tree, rewarded, seeds

from bough.credit.branches import mean_of_children, place_of, stem_of, trunk_of, value_after, value_before
from bough.tree import Kind, Outcome, Rewarded, counted, path, path_view


def test_stretches_go_from_fork_to_fork() -> None:
    tree = branching({"a": {"b": {"c": {"d": 1}, "e": {"f": 0}}}})
    assert stem_of(path_view([tree])).tolist() == [0, 0, 2, 2, 4, 4, 6, 6]
    assert stem_of(path_view([rewarded(chains([1, 0], turns=[3, 2]))])).tolist() == [0, 0, 0, 3, 3]


def test_a_branch_that_does_not_count_makes_no_fork() -> None:
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION), N(parent=1, kind=OBSERVATION)]
    nodes += [N(parent=2, kind=ACTION, outcome=ending) for ending in (Outcome.TERMINATED, Outcome.FAILED)]
    assert stem_of(path_view([rewarded(build(*nodes))])).tolist() == [0, 0]
    nodes[-1] = N(parent=2, kind=ACTION, outcome=Outcome.TRUNCATED)
    assert stem_of(path_view([rewarded(build(*nodes))])).tolist() == [0, 1, 2, 3]


@given(seeds())
def test_values_are_means_over_the_paths_through(rng: np.random.Generator) -> None:
    trees = [rewarded(random_tree(rng, task=task)) for task in ("a", "b", "a")]
    view = path_view(trees)
    before, after = value_before(view, view.returns), value_after(view, view.returns)
    paths: list[tuple[str, set[int], float]] = []
    for number, one in enumerate(trees):
        returns = one.returns().tolist()
        for leaf, came in zip(counted(one.tree).tolist(), returns, strict=True):
            nodes = {int(node) + int(view.offset[number]) for node in path(one.tree, leaf)}
            paths.append((one.tree.task.id, nodes, came))
    for step in range(len(view.path)):
        node, place, task = int(view.node[step]), int(view.place[step]), paths[int(view.path[step])][0]
        through = [came for _, nodes, came in paths if node in nodes]
        assert np.isclose(after[step], np.mean(through), atol=1e-9)
        prompt = place in view.offset.tolist()
        acts = [c for t, nodes, c in paths if ((t == task and len(nodes) > 1) if prompt else place in nodes)]
        assert np.isclose(before[step], np.mean(acts), atol=1e-9)


@given(seeds())
def test_stretches_are_turns_that_the_same_paths_run_through(rng: np.random.Generator) -> None:
    view = path_view([rewarded(random_tree(rng)), rewarded(random_tree(rng))])
    through = [set(view.path[view.node == node].tolist()) for node in view.node]
    stem = stem_of(view)
    for step in range(len(view.path)):
        assert view.path[stem[step]] == view.path[step]
        mine = [s for s in range(len(view.path)) if view.path[s] == view.path[step] and through[s] == through[step]]
        assert stem[step] == min(mine)


@given(seeds())
def test_forks_count_their_branches_evenly(rng: np.random.Generator) -> None:
    one = rewarded(random_tree(rng))
    view = path_view([one])
    value, stretch = mean_of_children(view, view.returns)
    ways = [path(one.tree, int(leaf)).tolist() for leaf in counted(one.tree)]
    returns = one.returns().tolist()

    def worth(node: int) -> float:
        """By the definition, one turn at a time: a turn that does not fork is worth what follows."""
        below = {
            next(n for n in w[w.index(node) + 1 :] if one.tree.kind[n] == Kind.ACTION) for w in ways if goes_on(w, node)
        }
        ends = [came for way, came in zip(ways, returns, strict=True) if node in way and not goes_on(way, node)]
        return float(np.mean([*(worth(n) for n in sorted(below)), *ends]))

    def goes_on(way: list[int], node: int) -> bool:
        return node in way and any(one.tree.kind[n] == Kind.ACTION for n in way[way.index(node) + 1 :])

    for step in range(len(view.path)):
        assert np.isclose(value[stretch[step]], worth(int(view.node[step])), atol=1e-9)


def test_prompts_of_one_task_are_one_place() -> None:
    view = path_view([branching(TOY), branching(TOY), branching(TOY, task="other")])
    place = place_of(view).reshape(3, 4, 2)
    assert len(set(place[:2, :, 0].ravel().tolist())) == 1
    assert place[2, 0, 0] != place[0, 0, 0]
    assert len(set(place[:, :, 1].ravel().tolist())) == 6


def test_trunks_are_first_actions_or_what_the_explorer_says() -> None:
    tree = branching(TOY)
    assert trunk_of(path_view([tree])).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert len(set(trunk_of(path_view([tree, branching(TOY)])).tolist())) == 4
    named = [info.get("text") in ("a", "b") for info in tree.tree.info]
    chain = np.where(named, 0, tree.tree.chain).astype(np.int32)
    marked = replace(tree, tree=replace(tree.tree, chain=chain))
    assert trunk_of(path_view([marked])).tolist() == [0] * 4


def test_nothing_is_nothing() -> None:
    nobody: list[Rewarded] = []
    view = path_view(nobody)
    for found in (place_of(view), stem_of(view), trunk_of(view), value_before(view, view.returns)):
        assert found.tolist() == []
    assert mean_of_children(view, view.returns)[0].tolist() == []
