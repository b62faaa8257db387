import numpy as np
from hypothesis import given
from tests.credit.seen import paid
from tests.trees import random_tree, rewarded, seeds

from bough.credit.marks import marked, need_of, spans, written
from bough.needs import annotation
from bough.tree import Kind, Rewarded, path_view


def test_marks_spans_and_needs() -> None:
    infos = [[{"tool": True, "spans": {"tool": [1, 2]}}, {"tool": ""}], [{"spans": {"other": [0, 2]}}]]
    view = path_view([paid([0.0, 1.0], [0.0], infos=infos)])
    assert marked(view, "tool").tolist() == [True, False, False]
    assert [side.tolist() for side in spans(view, "tool")] == [[1, 0, 0], [2, 0, 0]]
    assert need_of("tool") == {annotation("tool")}
    assert need_of("valid") == need_of("well_formed") == frozenset()


@given(seeds())
def test_written_counts_the_sampled_tokens_of_each_turn(rng: np.random.Generator) -> None:
    trees: list[Rewarded] = [rewarded(random_tree(rng, task=task)) for task in ("a", "b")]
    view = path_view(trees)
    nodes = [(each.tree, node) for each in trees for node in range(each.tree.nodes)]
    for node, count in zip(view.node.tolist(), written(view).tolist(), strict=True):
        tree, own = nodes[node]
        assert tree.kind[own] == Kind.ACTION
        assert count == tree.sampled[tree.span[own] : tree.span[own + 1]].sum()


def test_of_nothing() -> None:
    view = path_view([])
    assert len(marked(view, "tool")) == len(written(view)) == len(spans(view, "tool")[0]) == 0
