"""Pairs from trees of searches: the authors' examples."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.credit.grown import branching
from tests.objective.preference_pairs import P, T, lay
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.batch import pack
from bough.credit import Process, Searched
from bough.learner.loss_inputs import by_path
from bough.needs import PATHS, REFERENCE
from bough.objective import Dpo, LossInputs, Normalizer, Pairs, agent_q_dpo, mcts_dpo, rstar, tp_llama
from bough.objective.pairs import PreferencePairs
from bough.tree import Credited, Outcome, Rewarded, TruncatedBy


def view_of(*credited: Credited) -> LossInputs:
    """The path view of a batch, every token as likely as when it was sampled."""
    batch = pack(credited, paths=True)
    columns = LossInputs(
        logprob=batch.rollout_logprob.double(),
        rollout_logprob=batch.rollout_logprob,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=torch.ones_like(batch.rollout_logprob),
    )
    return by_path(columns, batch, Normalizer())


def tree_of(values: dict[str, float], visits: dict[str, int] | None = None, cut: Collection[str] = ()) -> Rewarded:
    """Nodes of a search by the words that lead there, "AB" below "A"; each has a token of its own.

    What ends at 1 is a success, what ends elsewhere a failure, and from `cut` the search did not go on.
    """
    nodes, place = [N(parent=-1, kind=PROMPT)], {"": 0}
    for name, value in sorted(values.items()):
        inner = any(other != name and other.startswith(name) for other in values)
        count = 1 if visits is None else visits[name]
        nodes.append(N(parent=place[name[:-1]], kind=ACTION, tokens=(ord(name[-1]),), value=value, visits=count))
        ending = Outcome.OPEN if inner else Outcome.TRUNCATED if name in cut else Outcome.TERMINATED
        success, why = None if inner else value == 1.0, TruncatedBy.EXPLORER if name in cut else TruncatedBy.NOTHING
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=ending, success=success, truncated_by=why))
        place[name] = len(nodes) - 1
    return rewarded(build(*nodes))


def told(pairs: PreferencePairs) -> dict[tuple[float, float], float]:
    score = pairs.candidates.score
    each = zip(pairs.won.tolist(), pairs.lost.tolist(), pairs.gap.tolist(), strict=True)
    return {(round(float(score[one]), 4), round(float(score[two]), 4)): round(gap, 4) for one, two, gap in each}


def test_rstar_takes_the_two_best_over_the_two_worst() -> None:
    values = {"A": 0.5, "Aa": 1.0, "Ab": -1.0, "B": -0.5, "Ba": 1.0, "Bb": -1.0, "C": -1.0}
    columns = view_of(*Searched(relative=False)([tree_of(values)]))
    pairs = Pairs(unit="turn", choice="top_bottom")(columns, "test")
    assert sorted(pairs.gap.tolist()) == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0], abs=2e-5)
    assert told(pairs) == {(0.5, -1.0): 1.5, (0.5, -0.5): 1.0, (-0.5, -1.0): 0.5, (1.0, -1.0): 2.0}
    assert len(rstar(gap=0.75).pairs(columns, "test").gap) == 4
    assert len(rstar().pairs(columns, "test").gap) == 5, "a gap of .5 is enough"
    assert len(rstar(gap=1.0).pairs(columns, "test").gap) == 4
    assert len(rstar(gap=0.0).pairs(view_of(*Searched()([tree_of({"A": 0.5, "B": 0.5})])), "test").gap) == 0


def test_pairs_below_the_most_visited_response_with_both_ends() -> None:
    """C is visited most of all, but leads to one kind of end; B is visited more than A."""
    values = {"A": 0.5, "Aa": 1.0, "Ab": -1.0, "B": -0.5, "Ba": 0.9, "Baa": 1.0, "Bab": -0.8, "Bb": -1.0, "C": -0.9}
    visits = {"A": 3, "Aa": 1, "Ab": 1, "B": 4, "Ba": 2, "Baa": 1, "Bab": 1, "Bb": 1, "C": 9}
    columns = view_of(*Searched(relative=False)([tree_of(values, visits)]))
    pairs = Pairs(unit="turn", choice="top_bottom", ends=True)
    below = replace(pairs, below="most_visited")
    left = told(pairs(columns, "test"))
    assert told(below(columns, "test")) == {pair: gap for pair, gap in left.items() if pair != (1.0, -1.0)}
    assert {(0.5, -0.9), (0.9, -1.0), (1.0, -0.8)} <= left.keys()
    visits |= {"A": 4}
    first = view_of(*Searched(relative=False)([tree_of(values, visits)]))
    assert (1.0, -1.0) in told(below(first, "test")), "ties to the first"
    with pytest.raises(ValueError, match=r"Pairs.below: got 'most_visited' with unit='path'; need unit='turn'"):
        Pairs(below="most_visited")


def test_rstars_better_answer_leads_to_a_correct_end_and_its_worse_to_a_wrong_one() -> None:
    """D is the best and E the worst by value, but neither has come to an end; B leads to no correct one."""
    values = {"A": 0.5, "Aa": 1.0, "Ab": -1.0, "B": -0.5, "C": -0.2, "Ca": 1.0, "D": 0.9, "E": -0.9}
    columns = view_of(*Searched(relative=False)([tree_of(values, cut="DE")]))
    assert told(rstar().pairs(columns, "test")) == {(0.5, -0.5): 1.0, (1.0, -1.0): 2.0}
    assert told(rstar(gap=0.2).pairs(columns, "test")) == {(0.5, -0.5): 1.0, (-0.2, -0.5): 0.3, (1.0, -1.0): 2.0}
    plain = told(Pairs(unit="turn", choice="top_bottom", gap=0.5)(columns, "test"))
    assert (0.9, -0.9) in plain


def test_ends_hold_for_every_choice_and_need_the_path_view_to_know_them() -> None:
    values = {"A": 0.5, "Aa": 1.0, "Ab": -1.0, "B": -0.5, "D": 0.9}
    columns = view_of(*Searched(relative=False)([tree_of(values, cut="D")]))
    every = told(Pairs(unit="turn", choice="all", ends=True)(columns, "test"))
    assert every == {(0.5, -0.5): 1.0, (1.0, -1.0): 2.0}
    # Of paths, those whose own end it is.
    paths = Pairs(choice="all", ends=True)(columns, "test")
    assert len(paths.gap) == 2
    assert columns.path_ids is not None
    silent = replace(columns, path_ids=replace(columns.path_ids, end=None))
    with pytest.raises(ValueError, match=r"Pairs.ends: got columns without the ends of paths; need `path_ids.end`"):
        rstar().pairs(silent, "test")


def test_one_alone_on_a_side_is_compared_with_four() -> None:
    values = dict.fromkeys("BCDEF", -1.0) | {"A": 1.0}
    top = Pairs(unit="turn", choice="top_bottom")
    assert len(top(view_of(*Searched(relative=False)([tree_of(values)])), "test").won) == 4
    lone = dict.fromkeys("ABCDE", 1.0) | {"F": -1.0}
    assert len(top(view_of(*Searched(relative=False)([tree_of(lone)])), "test").won) == 4
    even = {"A": 1.0, "B": 0.9, "C": 0.1, "D": 0.0}
    assert len(top(view_of(*Searched(relative=False)([tree_of(even)])), "test").won) == 4
    flat = {"A": 1.0, "B": 1.0}
    assert len(top(view_of(*Searched(relative=False)([tree_of(flat)])), "test").won) == 0


def test_mcts_dpo_takes_best_over_second_and_trusts_visits() -> None:
    visits = {"0": 7, "00": 3, "01": 1, "1": 1}
    values = {"0": 1.25, "00": 1.0, "01": -1.0, "1": -0.5}
    columns = view_of(*Searched(relative=False)([tree_of(values, visits)]))
    pairs = mcts_dpo().pairs(columns, "test")
    assert told(pairs) == {(1.25, -0.5): 1.75, (1.0, -1.0): 2.0}
    by_gap = dict(zip(pairs.gap.tolist(), pairs.label_smoothing().tolist(), strict=True))
    assert by_gap == pytest.approx({1.75: 1 - 1 / (1 + 1 / 7), 2.0: 0.25})
    halves = view_of(*Searched(relative=False)([tree_of({"A": 1.0, "B": 0.0}, {"A": 1, "B": 9})]))
    assert mcts_dpo().pairs(halves, "test").label_smoothing().tolist() == [0.5], "never more than a half"
    # At lead 0 the loss is log 2 whatever the doubt; its slope is not.
    columns.logprob.requires_grad_()
    loss = replace(mcts_dpo(beta=1.0), reference="rollout")(columns)
    assert float(loss.value.detach()) == pytest.approx(np.log(2), abs=1e-6)
    (slope,) = torch.autograd.grad(loss.value, columns.logprob)
    # Two pairs: half of (.5 - doubt) each, on both sides.
    assert float(slope.abs().sum()) == pytest.approx(0.375 + 0.25, abs=1e-6)


def test_without_a_search_there_is_no_doubt() -> None:
    pairs = Pairs()(lay([P(turns=[T(logprob=[-1.0])], advantage=a) for a in (1.0, 0.0)]), "test")
    assert pairs.label_smoothing().tolist() == [0.0]


def test_tp_llama_prefers_what_is_on_a_good_path_to_its_failed_siblings() -> None:
    shape = {"a": {"a1": 1, "a2": 0}, "b": 0}
    tree = branching(shape).tree
    words = {"a": 1, "a1": 2, "a2": 3, "b": 4}
    columns = tree.columns()
    token = np.array(tree.token)
    for node, info in enumerate(tree.info):
        if "text" in info:
            token[tree.span[node] : tree.span[node + 1]] = words[str(info["text"])]
    columns["token"] = token
    told_apart = type(tree)(task=tree.task, info=tree.info, **columns)
    view = view_of(*Process(label="hard")([rewarded(told_apart)]))
    pairs = tp_llama().pairs(view, "test")
    assert told(pairs) == {(1.0, 0.0): 1.0}
    assert len(pairs.won) == 2, "at the prompt and after a, and none between b and a2"


def test_agent_q_is_held_to_what_was_logged() -> None:
    rule = agent_q_dpo(gap=0.2)
    assert rule.needs == {PATHS}
    columns = lay([P(turns=[T(logprob=[-1.0], reference=[-9.0])], advantage=a) for a in (1.0, 0.9, 0.0)])
    loss = rule(columns)
    assert float(loss.metrics["pairs"]) == 2
    assert float(loss.metrics["pair_margin"]) == 0.0, "the policy is still the one that sampled"
    assert Dpo().needs == {PATHS, REFERENCE}
    with pytest.raises(ValueError, match=r"Dpo\.smoothing: got 0\.5"):
        Dpo(smoothing=0.5)
