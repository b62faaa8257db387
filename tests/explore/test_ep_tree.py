import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.explore.shapes import Told, ends, grown, model_grove, place_of, scores, spelling, text_of, written

from bough.credit import TreeRl
from bough.engine import InjectedFault, Request, Scripted
from bough.explore import EpTree
from bough.reward import EnvReward
from bough.rollout import Explorer
from bough.tree import Kind, Outcome, Rewarded, Tree, counted, leaves, path, turns

ONE = EpTree(chains=1, spots=1, forks_each=2)


def told(lengths: dict[int, float], length: int = 7) -> Told:
    """Letters at the given places of an action are so surprising, all others hardly."""

    def logprob(before: str) -> float:
        return -lengths.get(len(before.rpartition("}")[2]), 0.125)

    return Told(script=spelling(length), logprob=logprob)


def shared(tree: Tree) -> list[int]:
    """For each pair of neighbours among the paths, how many tokens they share beyond the prompt."""
    path_index = [set(path(tree, int(leaf)).tolist()) - {0} for leaf in leaves(tree)]
    common = [one & other for one, other in pairwise(path_index)]
    return [sum(len(tree.tokens_of(node)) for node in nodes) for nodes in common]


def test_forks_stand_before_the_most_surprising_token() -> None:
    """The card's picture: the third of four tokens, two more paths from just before it."""
    assert isinstance(ONE, Explorer)
    tree = grown(place_of(told({2: 2.25, 3: 0.75}, length=3)), ONE)
    assert ends(tree) == [Outcome.TERMINATED] * 3
    assert ONE.paths == 3
    assert shared(tree) == [2, 2]
    assert [len(written(tree, leaf)) for leaf in leaves(tree)] == [4] * 3
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    assert [len(tree.tokens_of(act)) for act in acts.tolist()] == [2, 2, 2, 2]
    assert int(tree.sampled.sum()) == 4 + 2 * 2


def test_the_paper_s_tree_has_thirty_paths() -> None:
    tree = grown(place_of(Scripted(script=spelling(9))), EpTree())
    assert len(counted(tree)) == EpTree().paths == 30


def test_the_first_token_of_a_branch_is_never_taken() -> None:
    """The first is the most surprising of every path; the second most surprising is taken in its place."""
    tree = grown(place_of(told({0: 9.0, 4: 2.0})), ONE)
    assert shared(tree) == [4, 4]
    # The forks begin at token 4 and may not be forked there again; the chain may.
    again = grown(place_of(told({0: 9.0, 4: 2.0, 5: 1.0})), EpTree(chains=1, spots=1, rounds=2, forks_each=1))
    assert shared(again) == [4, 4]


def test_later_rounds_fork_forks() -> None:
    """All of what the fork wrote is more surprising than the chain."""

    def logprob(before: str) -> float:
        text = before.rpartition("}")[2]
        return -2.0 if "z" in text else -1.0 if len(text) == 3 else -0.125

    letters = iter("az")

    def reply(request: Request) -> tuple[int, ...]:
        return tuple(ord(c) for c in next(letters, "z") * (7 - len(text_of(request))))

    tree = grown(place_of(Told(script=reply, logprob=logprob)), EpTree(chains=1, spots=1, rounds=2, forks_each=1))
    assert [written(tree, leaf) for leaf in leaves(tree)] == ["aaaaaaa.", "aaazzzz.", "aaazzzz."]
    assert shared(tree) == [3, 4], "the second round forks the fork after its first token"


def test_tokens_of_all_turns_are_candidates() -> None:
    """In the second turn, at its first token: the fork is another turn from the same place."""

    def logprob(before: str) -> float:
        return -3.0 if before.count(".") + before.count(chr(0)) == 2 and before.endswith("}") else -0.125

    tree = grown(place_of(Told(script=spelling(2), logprob=logprob), turns=6), ONE)
    assert turns(tree)[leaves(tree)].tolist() == [3] * 3
    (fork,) = np.flatnonzero(np.bincount(tree.parent[1:], minlength=tree.nodes) > 1).tolist()
    assert tree.kind[fork] == Kind.OBSERVATION
    assert turns(tree)[fork] == 1
    # Within a later turn, a fork is played to the end of the episode as well.
    tree = grown(place_of(told({1: 3.0}, length=2), turns=6), ONE)
    assert turns(tree)[leaves(tree)].tolist() == [3] * 3


def test_where_there_are_too_few_tokens_chains_take_their_place() -> None:
    explorer = EpTree(chains=2, spots=3, forks_each=2)
    tree = grown(place_of(Scripted(script=spelling(1)), max_tokens=1), explorer)
    assert len(counted(tree)) == explorer.paths == 14
    assert (tree.kind == Kind.ACTION).sum() == 14


def test_engines_that_say_no_log_probabilities_are_refused() -> None:
    class Silent(Scripted):
        async def generate(self, request: Request):  # type: ignore[no-untyped-def]
            return replace(await super().generate(request), logprobs=None)

    with pytest.raises(BaseExceptionGroup) as caught:
        grown(place_of(Silent(script=spelling(3))), ONE)
    assert "EpTree: got tokens without log-probabilities; need" in str(caught.value.exceptions[0])


def test_what_fails_is_tried_again_and_nothing_forks_from_what_failed_for_good() -> None:
    def reply(request: Request) -> object:
        return InjectedFault.FAULT if random.Random(request.seed).random() < 0.3 else spelling(5)(request)

    for seed in range(5):
        place = place_of(Scripted(script=reply), turns=10)  # type: ignore[arg-type]
        explorer = EpTree(chains=2, retries=40)
        tree = grown(place, explorer, seed=seed)
        assert len(counted(tree)) == explorer.paths
        assert Outcome.FAILED in ends(tree)
    dead = place_of(Scripted(script=lambda _: InjectedFault.FAULT))
    assert ends(grown(dead, ONE)) == [Outcome.FAILED] * 3 * 3


def test_a_model_reads_what_the_tree_says() -> None:
    place = model_grove()
    explorer = EpTree(chains=2)
    tree = grown(place, explorer)
    assert len(counted(tree)) == explorer.paths
    said = scores(place, tree)
    assert len(said) > 20
    np.testing.assert_allclose(*zip(*said, strict=True), atol=1e-6)
    (credited,) = TreeRl()([Rewarded(tree=tree, channels=EnvReward()([tree])[0])])
    assert np.isfinite(credited.advantage[tree.sampled]).all()


def test_forks_share_half_a_path() -> None:
    """Surprisal that says nothing falls uniformly: 18 T and 30 T, with the first token of a branch left out."""
    cost = [int(grown(place_of(Scripted(script=spelling(39))), EpTree(), seed=s).sampled.sum()) for s in range(12)]
    assert np.mean(cost) / 40 == pytest.approx(18, abs=1)


def test_ranges() -> None:
    for name in ("chains", "spots", "rounds", "forks_each", "retries"):
        with pytest.raises(ValueError, match=rf"EpTree\.{name}: got -1; need at least"):
            EpTree(**{name: -1})
    assert EpTree(rounds=0).paths == 6
