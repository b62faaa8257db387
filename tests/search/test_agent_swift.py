"""A value model chooses which designs are evaluated."""

import asyncio
import math
import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.explore.stage import STOP, runner
from tests.search.game import Game, Known, search

from bough.engine import Request, Scripted
from bough.env import InProcessHost
from bough.rollout import Explorer
from bough.search import (
    Admissible,
    Descend,
    EachKind,
    GuidedDescend,
    SearchNode,
    SearchTree,
    Surrogate,
    Uct,
    UncertainUct,
)
from bough.searches.agent_swift import agent_swift
from bough.tree import Kind, Tree, path
from bough.worlds.agent_design import AgentDesign
from bough.worlds.agent_design.env import LIBRARY, Design


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A benchmark on which settings help, and other options and variants hurt."""

    def score(self, design: Design, seed: int) -> float:
        del seed
        parts = [0.05 * level - 0.05 * variant for _, (_, variant, level) in design]
        return 0.3 + sum(parts) - 0.05 * sum(option != LIBRARY[slot][0] for slot, (option, _, _) in design)


ENV = AgentDesign(benchmark=Settings(), target=1.0, max_edits=12)


def edit(request: Request) -> tuple[int, ...]:
    """A random edit of the kind that the hint names."""
    read = "".join(chr(token) for token in request.prompt_tokens if token != STOP)
    luck = random.Random(request.seed)
    kind, slot = read.rpartition("kind: ")[2].partition(".")[0], luck.choice([*LIBRARY])
    ends = {"recombine": f" {luck.choice(LIBRARY[slot])}", "mutate": "", "refine": f" {luck.choice(['up', 'down'])}"}
    return tuple(map(ord, f"{kind} {slot}{ends[kind]}"))


def grown(explorer: Explorer, seed: int) -> Tree:
    async def one() -> Tree:
        place = runner(Scripted(script=edit), InProcessHost(env=ENV), max_tokens=60)
        (tree,) = (await place.run(explorer, ENV.tasks("train", 1, seed), seed=seed)).trees
        return tree

    return asyncio.run(one())


def gain(tree: Tree) -> float:
    """The change of the score up to the answer."""
    node = int(np.flatnonzero(tree.answer)[0])
    return float(sum(tree.env_reward[each] for each in path(tree, node)))


def test_the_value_model_finds_better_designs_with_as_many_evaluations() -> None:
    full = agent_swift(evaluations=20)
    blind = replace(full, select=Descend(by=Uct(c=0.05), revisit=False), rate=None)
    trees = {True: [grown(full, seed) for seed in range(4)], False: [grown(blind, seed) for seed in range(4)]}
    assert all(tree.counts.turns <= 20 for some in trees.values() for tree in some)
    assert np.mean([*map(gain, trees[True])]) > np.mean([*map(gain, trees[False])]) + 0.1


def test_each_design_gets_edits_of_every_kind_and_few_are_evaluated() -> None:
    tree = grown(agent_swift(evaluations=6), 0)
    acts = [node for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION]
    assert {str(tree.info[node]["text"]).split()[0] for node in acts} == {"recombine", "mutate", "refine"}
    assert tree.counts.turns < len(acts)


def test_a_node_that_the_model_misjudged_is_uncertain() -> None:
    root = SearchNode(number=0, parent=None, visits=4)
    node = SearchNode(number=1, parent=root, value=0.5, q=0.5, visits=2, rating=0.1)
    assert UncertainUct(c=0.0, weight=0.5)(node) == pytest.approx(0.5 + 0.5 * 0.4)
    assert UncertainUct(c=1.0, weight=0.0)(node) == pytest.approx(0.5 + math.sqrt(math.log(4) / 2))
    unvisited = SearchNode(number=2, parent=root, rating=0.3)
    assert UncertainUct(c=0.0)(unvisited) == 0.3


def letters(optimism: float) -> SearchTree:
    """A search over the letters a, b and c, of which some are not executed."""
    values = {"": 0.0, "a": 1.0, "b": 0.2, "c": 0.0} | {f"{one}{two}": 0.5 for one in "abc" for two in "abc"}
    how = replace(
        agent_swift(evaluations=3, optimism=optimism),
        expand=Admissible(),
        evaluate=Known(values=values),
        answer_at_any_node=False,
    )
    return search(how, Game(depth=2, letters="abc"))[0]


def test_actions_are_rated_again_by_all_values_so_far_before_each_selection() -> None:
    known = letters(0.5)
    waiting = [node for node in known.live() if node.at is None]
    assert len(waiting) > 1
    for node in waiting:
        node.rating = 9.0
    (selected,) = GuidedDescend(model=Surrogate(optimism=0.5))(known)
    assert [node.rating for node in waiting] == Surrogate(optimism=0.5).estimate(known, waiting)
    assert selected.rating < 9


def test_what_is_unlike_all_that_was_executed_is_more_uncertain() -> None:
    known = letters(0.5)
    done = [node for node in known.nodes if node.draft is not None and not math.isnan(node.value)]
    waiting = [node for node in known.live() if node.at is None]
    bonus = {
        node.number: high - low
        for some in (done, waiting)
        for node, low, high in zip(
            some, *(Surrogate(optimism=optimism).estimate(known, some) for optimism in (0.0, 1.0)), strict=True
        )
    }
    assert min(bonus[node.number] for node in waiting) > max(bonus[node.number] for node in done) > 0


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="noise: got 0"):
        Surrogate(noise=0.0)
    with pytest.raises(ValueError, match="width: got 0"):
        EachKind(width=0)
    with pytest.raises(ValueError, match=r"EachKind.text: got 'edit it'; need the placeholder {kind}"):
        EachKind(text="edit it")
    with pytest.raises(ValueError, match="c: got -1"):
        UncertainUct(c=-1.0)
