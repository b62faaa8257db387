"""Roll-ins and roll-outs of a guide: who acts where, and what an action is worth."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.explore.stage import Letters, World, runner, says, scripted
from tests.methods.small import small
from tests.rollout.test_starts import grown
from tests.small import world as small_world

from bough.cli.find import find_run
from bough.credit import TreeRpo
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.explore import RollIns
from bough.methods.rlgf import rlgf
from bough.reward import Success
from bough.roles import StartingWeights
from bough.rollout import Limits, RoleModel
from bough.store import read_metrics
from bough.train import start
from bough.tree import Kind, Outcome, Rewarded, Source, Task, Tree, TruncatedBy, counted, leaves, path

LENGTH = 5


def tree_of(explorer: RollIns, *, guide: str = "a", letters: str = "ab", length: int = LENGTH) -> Tree:
    """The policy writes any of some letters, and the guide one of its own; five times `a` succeeds."""
    own, other = scripted(lambda chance: chance.choice(letters)), Scripted(script=says(lambda c: c.choice(guide)))
    place = runner(own, InProcessHost(env=World(length=length)), limits=Limits(turns=LENGTH))
    models = {"guide": RoleModel(engine=other, renderer=Letters(), name="guide")}
    place = replace(place, agent=replace(place.agent, models=models))
    (tree,) = grown(place, explorer, Task(id="t")).trees
    return tree


def who(tree: Tree) -> list[str]:
    """Each path: p for an action of the policy, g for one of the guide."""
    names = {Source.SAMPLED: "p", Source.TEACHER: "g"}
    return [
        "".join(
            names[Source(int(tree.source[node]))] for node in path(tree, int(leaf)) if tree.kind[node] == Kind.ACTION
        )
        for leaf in leaves(tree)
    ]


@pytest.mark.parametrize("guide", ["", "guide"])
def test_the_policy_takes_over_from_the_guide(guide: str) -> None:
    """PPO++: after any number of turns of the guide the rest is the policy's."""
    paths = who(tree_of(RollIns(guide=guide, n=30, width=2, ppo=1.0)))
    assert len(paths) == 60
    assert {path.count("g") for path in paths} == set(range(LENGTH)), "from 0 to the limit less 1"
    assert all("gp" not in path.lstrip("g") and path.endswith("p") for path in paths)


def test_the_guide_completes_each_action_of_the_policy() -> None:
    """AggreVaTeD: the policy rolls in and acts once more; the rest is the guide's."""
    paths = who(tree_of(RollIns(guide="guide", n=30, width=2, ppo=0.0)))
    assert {path.count("p") for path in paths} == set(range(1, LENGTH + 1))
    assert all("gp" not in path for path in paths)


def test_one_of_both_is_drawn_for_each_roll_in() -> None:
    paths = who(tree_of(RollIns(guide="guide", n=60, width=1, ppo=0.3, mix=0.5)))
    guided_out = sum(path.endswith("g") for path in paths)
    assert guided_out == pytest.approx(60 * 0.7 * 0.8, abs=10), "a roll-in of the whole path leaves nothing to roll out"
    guided_in = sum(path.startswith("g") for path in paths)
    assert guided_in == pytest.approx(60 * 0.3 * 0.5 * 0.8, abs=7)


def test_a_roll_out_of_the_guide_is_the_value_of_an_action() -> None:
    """The guide succeeds from every state in which it can; so an action is worth 1 if it was right, else 0."""
    tree = tree_of(RollIns(guide="guide", n=9, width=8, ppo=0.0))
    (credited,) = TreeRpo()([Rewarded(tree=tree, channels=Success()([tree])[0])])
    given = credited.positive + credited.negative
    found: list[dict[str, float]] = []
    for fork in np.flatnonzero(np.bincount(tree.parent[1:]) == 8).tolist():
        acts = [node for node in np.flatnonzero(tree.parent == fork).tolist() if tree.source[node] == Source.SAMPLED]
        found.append({str(tree.info[node]["text"]): float(np.sign(given[tree.span[node]])) for node in acts})
    assert {"a": 1.0, "b": -1.0} in found
    assert all(signs in ({"a": 1.0, "b": -1.0}, {"a": 0.0, "b": 0.0}) for signs in found), "0 where all is lost"
    teacher = np.repeat(tree.source == Source.TEACHER, np.diff(tree.span))
    assert teacher.any()
    assert not given[teacher].any()


def test_a_roll_in_has_no_credit_for_how_long_the_guide_waits() -> None:
    """The policy's turns before the branching state are shared by its branches; other roll-ins do not compare."""
    tree = tree_of(RollIns(guide="guide", n=20, width=4, ppo=0.0))
    rewarded = [Rewarded(tree=tree, channels=Success()([tree])[0])]
    through = np.zeros(tree.nodes)
    for leaf in counted(tree).tolist():
        through[path(tree, leaf)] += 1
    stems = np.repeat((through > 1) & (tree.source == Source.SAMPLED), np.diff(tree.span))
    (among,), (within,) = TreeRpo()(rewarded), TreeRpo(within_chains=True)(rewarded)
    assert (among.positive + among.negative)[stems].any(), "by length of the roll-in"
    given = within.positive + within.negative
    assert not given[stems].any()
    assert given[~stems].any()
    firsts = tree.chain[tree.parent == 0]
    assert set(firsts.tolist()) == set(range(20))
    assert set(np.bincount(firsts).tolist()) == {1, 4}, "a roll-in of no turns branches at the prompt"


def test_an_early_end_and_a_guide_without_a_plan() -> None:
    tree = tree_of(RollIns(guide="guide", n=6, width=2, ppo=1.0), length=2)
    assert set(map(len, who(tree))) <= {2}
    lost = tree_of(RollIns(n=6, width=3, ppo=0.0), letters="b")
    ends = lost.truncated_by[leaves(lost)]
    assert (ends == TruncatedBy.NO_PLAN).any(), "the oracle has no plan after a wrong letter"
    assert len(counted(lost)) == len(leaves(lost))
    assert (lost.outcome[leaves(lost)] != Outcome.FAILED).all()


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"RollIns.ppo: got 2; need a number from 0 to 1"):
        RollIns(ppo=2)
    with pytest.raises(ValueError, match=r"rlgf.kind: got 'dagger'; need one of ppo_pp, aggrevated, lols"):
        rlgf(small_world(), kind="dagger")  # type: ignore[arg-type]


def test_a_run_with_a_model_as_guide(tmp_path: Path) -> None:
    run = find_run("rlgf(guide=guide,kind=aggrevated)", "frozenlake").replace(models={"guide": StartingWeights()})
    rows = read_metrics(start(small(run).replace(steps=1), tmp_path, terminal=False).metrics)
    assert max(float(row.get("optimizer/gradient_norm", 0.0)) for row in rows) > 0
