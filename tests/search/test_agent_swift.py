"""A value model chooses which designs are evaluated."""

import asyncio
import math
import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.explore.stage import STOP, runner

from bough.engine import Request, Scripted
from bough.env import AgentDesign, InProcessHost
from bough.env.agent_design import LIBRARY, Design
from bough.rollout import Explorer
from bough.search import Descend, EachKind, SearchNode, Surrogate, Uct, UncertainUct, agent_swift
from bough.tree import Kind, Tree, path


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


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="noise=0"):
        Surrogate(noise=0.0)
    with pytest.raises(ValueError, match="width=0"):
        EachKind(width=0)
    with pytest.raises(ValueError, match=r"EachKind.text: got 'edit it'; need the placeholder {kind}"):
        EachKind(text="edit it")
    with pytest.raises(ValueError, match="c=-1"):
        UncertainUct(c=-1.0)
