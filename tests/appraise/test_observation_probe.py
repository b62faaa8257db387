"""Probes of observations, where the posterior is exact: IGPO's and InfoPO's."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.appraise.twenty_questions import appraised, chance, grown
from tests.explore.stage import Letters

from bough.appraise import AnswerProbe, Masked, ObservationProbe
from bough.reward import ObservationValue, PotentialGain
from bough.train.mask_observation import mask_observation
from bough.tree import Kind, Message, Rewarded, Task, Tree, Verdict, context, path_view

HIDDEN = Message(role="user", content="no.")


def read(tree: Tree, node: int) -> str:
    return Letters().text(context(tree, node).tolist())


def test_igpo_pays_the_change_of_the_exact_posterior(tmp_path: Path) -> None:
    """A new bit doubles the posterior of the answer, from 1/8; a bit known and no bit pay nothing."""
    trees, engine = grown()
    trees = [replace(tree, task=Task(id=tree.task.id, data={"answer": "6"})) for tree in trees]
    (tree,) = appraised(trees, engine, AnswerProbe(), tmp_path)
    (channels,) = PotentialGain()([tree])
    view = path_view([Rewarded(tree=tree, channels=channels)])
    inner = ~view.last
    after = np.append(view.node[1:], 0)[inner].tolist()
    moved = [
        chance(read(tree, later), "6") - chance(read(tree, node), "6")
        for node, later in zip(view.node[inner].tolist(), after, strict=True)
    ]
    assert view.reward[inner] == pytest.approx(moved)
    assert not view.reward[view.last].any()
    assert {0.0, 0.125} <= {round(each, 6) for each in moved}


def test_a_shared_prefix_is_probed_once(tmp_path: Path) -> None:
    trees, engine = grown(n=12, questions="xy")
    trees = [replace(tree, task=Task(id=tree.task.id, data={"answer": "6"})) for tree in trees]
    states = {read(tree, int(node)) for tree in trees for node in np.flatnonzero(tree.kind == Kind.ACTION)}
    engine.scored.clear()
    appraised(trees, engine, AnswerProbe(), tmp_path)
    assert sorted(engine.scored) == sorted((state, "6") for state in states)


def test_information_is_the_change_of_the_next_action(tmp_path: Path) -> None:
    """After the bit x, asking x again is less likely by as much as the policy has learnt; `hm` tells nothing."""
    trees, engine = grown()
    (tree,) = appraised(trees, engine, ObservationProbe(mask="no."), tmp_path)
    column = tree.appraisals["information"]
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    assert set(np.flatnonzero(column.verdict == Verdict.OK)) == set(acts)
    told, untold = 0, 0
    for node in acts.tolist():
        place = int(tree.parent[node])
        if tree.kind[place] != Kind.OBSERVATION:
            assert column.value[node] == 0
            continue
        seen, letter = read(tree, node), Letters().text(tree.tokens_of(node).tolist())
        observation = str(tree.info[place]["text"])
        unseen = seen[: seen.rindex("{")] + f"{{{'no.'[: len(observation)]}}}"
        assert column.value[node] == pytest.approx(math.log(chance(seen, letter) / chance(unseen, letter)))
        told += column.value[node] != 0
        untold += column.value[node] == 0
    assert told > 2
    assert untold > 2


def test_each_turn_is_scored_twice_and_the_pay_is_of_the_action_before(tmp_path: Path) -> None:
    trees, engine = grown()
    engine.scored.clear()
    (tree,) = appraised(trees, engine, ObservationProbe(mask="no."), tmp_path)
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    later = [node for node in acts.tolist() if tree.kind[tree.parent[node]] == Kind.OBSERVATION]
    assert len(engine.scored) == len(set(engine.scored)) <= 2 * len(later)
    assert int(tree.appraisals["information"].questions.sum()) == 2 * len(later)
    (channels,) = ObservationValue(weight=2)([tree])
    view = path_view([Rewarded(tree=tree, channels=channels)])
    value = tree.appraisals["information"].value
    for step in np.flatnonzero(~view.last).tolist():
        place = view.place[step + 1]
        followed = [node for node in acts.tolist() if tree.parent[node] == place]
        assert view.reward[step] == pytest.approx(2 * value[followed].mean())
    assert not view.reward[view.last].any()


@pytest.mark.parametrize(
    ("seen", "shown"),
    [("yes, the door is open", "no..................."), ("ok", "no"), ("no", "no"), ("no. bread", "no.......")],
)
def test_a_mask_keeps_the_frame_and_the_number_of_tokens(seen: str, shown: str) -> None:
    letters = Letters()
    last = letters._read(seen)
    tokens = (*letters._read("go"), ord("a"), 0, *last)
    masked = Masked(last=len(last), action=(ord("a"), 0), messages=(HIDDEN,))
    hidden = mask_observation(letters, tokens, masked)
    assert len(hidden) == len(tokens)
    assert letters.text(hidden) == f"{{go}}a{{{shown}}}"


def test_a_probe_without_a_mask_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ObservationProbe.mask: got ' '; need a text without information"):
        ObservationProbe(mask=" ")
