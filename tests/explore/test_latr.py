import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.explore.shapes import (
    Told,
    ends,
    grown,
    ledgered,
    model_grove,
    pieces,
    place_of,
    scores,
    spelling,
    text_of,
    written,
)

from bough.engine import InjectedFault, Request, Scripted
from bough.explore import Latr
from bough.rollout import Explorer
from bough.tree import Kind, Outcome, Source, Ternary, Tree, counted, leaves, path, trained

TIED = {"x": 0.5, "y": 0.4, "z": 0.05}
CLEAR = {"x": 0.8, "y": 0.1, "z": 0.05}


def tied_at(*places: int) -> Callable[[str], dict[str, float]]:
    """Ties before these letters of an action, and nowhere else."""
    return lambda before: TIED if len(before.rpartition("}")[2]) in places else CLEAR


def told(likely: Callable[[str], dict[str, float]], reply: Callable[[str], str]) -> Told:
    """An engine that writes what follows from what is written."""
    return Told(script=lambda request: tuple(map(ord, reply(text_of(request)))), likely=likely)


def filled(letter: str, length: int = 9) -> Callable[[str], str]:
    """Goes on with one letter, or with its capital after a forced y: another text."""
    return lambda begun: (letter.upper() if "y" in begun else letter) * (length - len(begun))


def forced(tree: Tree) -> list[str]:
    """The letters that nobody sampled."""
    nodes = np.flatnonzero((tree.kind == Kind.ACTION) & (tree.source == Source.FORCED)).tolist()
    return [chr(token) for node in nodes for token in tree.tokens_of(node).tolist()]


SMALL = Latr(paths=2, windows=(3,))


def test_a_path_branches_where_two_tokens_are_nearly_tied() -> None:
    assert isinstance(SMALL, Explorer)
    tree = grown(place_of(told(tied_at(2), filled("x"))), SMALL)
    assert [written(tree, leaf) for leaf in leaves(tree)] == ["xxxxxxxxx.", "xxyXXXXXX."]
    assert ends(tree) == [Outcome.TERMINATED] * 2
    assert forced(tree) == ["y"]
    # The forced token is a piece of its own, and not learned from; all else is.
    assert pieces(tree, int(leaves(tree)[1])) == [2, 1, 2, 5]
    assert int(trained(tree).sum()) == len(tree.token) - len("{go: }{.}") - 1


@pytest.mark.parametrize(
    ("likely", "branches"),
    [
        ({"x": 0.5, "y": 0.36}, True),
        ({"x": 0.5, "y": 0.34}, False),
        ({"x": 0.3, "y": 0.26}, True),
        ({"x": 0.3, "y": 0.24}, False),
    ],
)
def test_a_tie_is_near_and_likely(likely: dict[str, float], branches: bool) -> None:
    tree = grown(place_of(told(lambda _: likely, filled("x"))), SMALL)
    assert forced(tree) == (["y"] if branches else [])
    assert len(counted(tree)) == 2


def test_whoever_wrote_the_second_branches_to_the_likeliest() -> None:
    """Tokens are sampled here: the likeliest is forced where the other was written, and only at a tie."""
    tree = grown(place_of(told(tied_at(2), lambda begun: "y" * (9 - len(begun)))), SMALL)
    assert forced(tree) == ["x"]
    clear = grown(place_of(told(tied_at(), lambda begun: "y" * (9 - len(begun)))), SMALL)
    assert forced(clear) == []
    # Where neither was written, both are.
    both = grown(place_of(told(tied_at(2), filled("z"))), Latr(paths=3, windows=(3,)))
    assert forced(both) == ["x", "y"]


def test_look_alikes_are_cut_off() -> None:
    """A branch that comes back to the same text: one token of five is an edit distance of 0.2."""
    engine = told(tied_at(2), lambda begun: "x" * (20 - len(begun)))
    for explorer, kept in [
        (Latr(paths=2, windows=(5,)), False),
        (Latr(paths=2, windows=(5,), edit=0.2), True),
        (Latr(paths=2, windows=(5,), edit=None), True),
        (Latr(paths=2, windows=(5,), edit=None, suffix=0.7), False),
        (Latr(paths=2, windows=(5,), edit=None, suffix=0.8), True),
        (Latr(paths=2, windows=(5,), edit=None, rouge=0.7), False),
        (Latr(paths=2, windows=(5,), edit=None, rouge=0.81), True),
        # The longer stretch is more alike still.
        (Latr(paths=2, windows=(5, 10), edit=0.15), False),
    ]:
        tree = grown(place_of(engine, max_tokens=60), explorer)
        paths = [written(tree, leaf) for leaf in counted(tree)]
        assert (("xxy" + "x" * 17 + ".") in paths) == kept, explorer
        assert len(paths) == 2


def test_what_was_cut_off_is_not_learned_from_and_cost_what_it_cost() -> None:
    engine = told(tied_at(2), lambda begun: "x" * (20 - len(begun)))
    tree, rollout = ledgered(place_of(engine, max_tokens=60), Latr(paths=2, windows=(5,)))
    (gone,) = [leaf for leaf in leaves(tree) if tree.outcome[leaf] == Outcome.OPEN]
    # Born at 2 and compared over five tokens, the first of which was forced.
    assert written(tree, gone) == "xxyxxxx"
    assert rollout.budget.spent.tokens == 2 * 21 + 4
    assert tree.counts.pruned_branches == 1
    assert not trained(tree)[tree.span[gone] : tree.span[gone + 1]].any()


def test_short_groups_get_new_samples() -> None:
    """Nothing branches: every path is a sample of its own, none a copy of the first."""
    engine = Told(script=spelling(9), likely=lambda _: CLEAR)
    tree = grown(place_of(engine), Latr(windows=(3,)))
    texts = [written(tree, leaf) for leaf in counted(tree)]
    assert len(texts) == len(set(texts)) == 8
    assert (tree.parent[tree.kind == Kind.ACTION] == 0).sum() == 8


def test_verdicts_belong_to_the_branches_compared() -> None:
    """Of three branches only the middle one comes back to the same text; exactly that one is cut off.

    The released code drops branches from the list of those compared, not from that of those to cut off: it would take
    the first.
    """

    def reply(begun: str) -> str:
        left = 30 - len(begun)
        return ("A" if begun[:1] == "y" else "B" if begun[4:5] == "y" else "x") * left

    engine = told(lambda before: TIED if before.rpartition("}")[2] in ("", "xx", "xxxx") else CLEAR, reply)
    tree = grown(place_of(engine, max_tokens=60), Latr(paths=4, windows=(6,)))
    gone = [written(tree, leaf) for leaf in leaves(tree) if tree.outcome[leaf] == Outcome.OPEN]
    assert gone == ["xxyxxxxx"]
    kept = {written(tree, leaf)[:5] for leaf in counted(tree)}
    assert {"yAAAA", "xxxxy"} <= kept


def test_a_stretch_in_which_the_turn_ended_spares_the_branch() -> None:
    """Six letters and a stop: from token 2 on there are five tokens with the stop, four without."""
    engine = told(tied_at(2), lambda begun: "x" * (6 - len(begun)))
    for window, kept in ((3, False), (4, False), (5, True), (20, True)):
        tree = grown(place_of(engine, turns=6), Latr(paths=2, windows=(window,), edit=0.9))
        assert ("xxyxxx." in [written(tree, leaf) for leaf in counted(tree)]) == kept, window


def test_there_are_never_more_than_there_is_room_for() -> None:
    engine = Told(script=spelling(30, "xyz"), likely=lambda _: TIED)
    for share, grow_from_first in ((1.0, 8), (0.5, 4), (0.25, 2), (0.0, 0)):
        explorer = Latr(windows=(3,), share=share, edit=None)
        tree = grown(place_of(engine, max_tokens=60), explorer)
        assert len(counted(tree)) == explorer.paths == 8
        roots = int((tree.parent[tree.kind == Kind.ACTION] == 0).sum())
        assert len(forced(tree)) == max(grow_from_first - 1, 0)
        # The first path may have been left at its first token.
        assert roots >= 8 - grow_from_first


def test_of_ties_at_one_token_the_likelier_come_first() -> None:
    """Room for two more: at the earliest tie, in order of likelihood."""
    engine = told(
        lambda before: {"a": 0.34, "b": 0.32, "c": 0.3} if before.endswith("}xx") else CLEAR,
        lambda begun: "x" * (9 - len(begun)),
    )
    tree = grown(place_of(engine), Latr(paths=3, windows=(3,), candidates=3, edit=None))
    assert sorted(forced(tree)) == ["a", "b"]


def test_branches_branch_and_go_on_through_turns() -> None:
    engine = Told(script=spelling(2, "xyz"), likely=tied_at(0, 1))
    tree = grown(place_of(engine, turns=6), Latr(paths=16, windows=(2,)))
    assert len(counted(tree)) == 16
    texts = [written(tree, leaf) for leaf in counted(tree)]
    assert {text.count(".") for text in texts} == {3}
    assert {len(text) for text in texts} == {9}
    walks = [set(path(tree, int(leaf)).tolist()) for leaf in leaves(tree)]
    deep = [len(one & other) for one in walks for other in walks if one is not other]
    assert max(deep) > 4


def test_a_forced_stop_ends_the_turn() -> None:
    engine = told(lambda before: {"x": 0.5, chr(0): 0.45} if before.endswith("}xxx") else CLEAR, filled("x"))
    tree = grown(place_of(engine), SMALL)
    assert [written(tree, leaf) for leaf in leaves(tree)] == ["xxxxxxxxx.", "xxx."]
    assert ends(tree) == [Outcome.TERMINATED] * 2
    (node,) = np.flatnonzero((tree.kind == Kind.ACTION) & (tree.source == Source.FORCED)).tolist()
    assert tree.info[node]["text"] == "xxx"


def test_a_forced_token_may_be_the_last_of_an_action() -> None:
    engine = told(tied_at(4), filled("x"))
    tree = grown(place_of(engine, max_tokens=5), SMALL)
    assert [written(tree, leaf) for leaf in leaves(tree)] == ["xxxxx", "xxxxy"]
    assert tree.well_formed[tree.parent[leaves(tree)]].tolist() == [Ternary.NO, Ternary.NO]


def test_no_branches_after_so_many_tokens() -> None:
    for most, branches in ((3, 0), (6, 1)):
        tree = grown(place_of(told(tied_at(5), filled("x"))), Latr(paths=2, windows=(3,), max_fork_tokens=most))
        assert len(forced(tree)) == branches
        assert len(counted(tree)) == 2


def test_engines_that_say_no_alternatives_are_refused() -> None:
    class Mute(Scripted):
        async def generate(self, request: Request):  # type: ignore[no-untyped-def]
            return replace(await super().generate(request), top_probs=None)

    with pytest.raises(BaseExceptionGroup) as caught:
        grown(place_of(Mute(script=spelling(3))), SMALL)
    assert "Sampling.top_probs: got 2 and the engine Mute" in str(caught.value.exceptions[0])


def test_what_fails_is_tried_again() -> None:
    def reply(request: Request) -> object:
        return InjectedFault.FAULT if random.Random(request.seed).random() < 0.3 else spelling(5)(request)

    for seed in range(5):
        place = place_of(Scripted(script=reply), turns=10)  # type: ignore[arg-type]
        tree = grown(place, Latr(windows=(3,), retries=40), seed=seed)
        assert len(counted(tree)) == 8
        assert Outcome.FAILED in ends(tree)
    dead = grown(place_of(Scripted(script=lambda _: InjectedFault.FAULT)), Latr(paths=4, retries=1))
    assert ends(dead) == [Outcome.FAILED] * 8


def test_a_model_reads_what_the_tree_says() -> None:
    place = model_grove(max_tokens=12)
    tree = grown(place, Latr(windows=(2, 4), floor=0.005, gap=0.05))
    assert len(counted(tree)) == 8
    assert forced(tree)
    np.testing.assert_allclose(*zip(*scores(place, tree), strict=True), atol=1e-6)


def test_ranges() -> None:
    for field in (
        {"paths": 0},
        {"candidates": 1},
        {"max_fork_tokens": 0},
        {"retries": -1},
        {"share": 1.5},
        {"windows": ()},
        {"windows": (0,)},
        {"windows": (3, 3)},
        {"windows": (5, 3)},
    ):
        with pytest.raises(ValueError, match=rf"Latr\.{next(iter(field))}: got .*; need"):
            Latr(**field)  # type: ignore[arg-type]
