# ruff: noqa: ARG002
"""ETS by what actions mean and what they cost: clusters of embeddings, and tokens of the KV cache."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from tests.explore.stage import runner, says
from tests.search.game import Game

from bough.engine import Scripted
from bough.env import InProcessHost
from bough.learner.embeddings import Embeddings
from bough.policy import Tiny
from bough.policy.model import causal
from bough.rollout import Limits
from bough.search import Cosine, Embedded, RougeL, Search, SearchNode, SearchTree, Similarity, Sparse
from bough.search.ets import choose, kv_tokens
from bough.search.search import ConstantValue
from bough.searches.ets import ets
from bough.tree import Kind, Task, Tree

MEANING = {"go": [1.0, 0.0], "walk": [0.99, 0.05], "stop": [0.0, 1.0]}


def test_an_embedding_is_the_mean_hidden_state_of_the_action() -> None:
    policy = Tiny(layers=2, width=16, heads=2, vocab_tokens=260, context_tokens=64, dtype="float64").build(["a b"])
    text = tuple(np.random.default_rng(0).integers(0, 40, 9).tolist())
    hidden = policy.hidden(torch.tensor(text), torch.arange(9), causal)
    for micro_tokens in (100, 4):
        found = asyncio.run(Embeddings(policy, micro_tokens=micro_tokens)(text, 3))
        assert found == pytest.approx(hidden[-3:].mean(0).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Liked:
    """A value for each action, whatever was before it."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        return {"go": 0.9, "walk": 0.88, "stop": 0.5}[node.action]


def level(alike: Similarity, **settings: float | str) -> set[str]:
    """The actions that are kept of go, walk and stop, with values .9, .88 and .5."""

    async def embed(tokens: tuple[int, ...], count: int) -> Sequence[float]:
        return MEANING["".join(map(chr, tokens[-count:]))]

    words = [*MEANING]
    engine = Scripted(script=says(lambda luck: luck.choice(words)))
    place = runner(engine, InProcessHost(env=Game(depth=9)), limits=Limits(turns=3))
    place = replace(place, agent=replace(place.agent, embed=embed))
    how = ets(width=24)
    assert isinstance(how.prune[0], Sparse)
    sparse = replace(how.prune[0], alike=alike, **settings)  # type: ignore[arg-type]
    search = replace(how, merge=True, evaluate=Embedded(evaluate=Liked()), prune=(sparse,), rounds=2)
    (tree,) = asyncio.run(place.run(search, [Task(id="t")], seed=0)).trees
    return expanded(tree)


def expanded(tree: Tree) -> set[str]:
    """The first actions after which more actions were sampled."""
    acts = np.flatnonzero(tree.kind == Kind.ACTION).tolist()
    below = {int(tree.parent[tree.parent[node]]) for node in acts}
    return {str(tree.info[node]["text"]) for node in acts if node in below}


def test_two_ways_to_say_one_thing_are_one_cluster() -> None:
    """Each cluster is worth .9 / clusters, each node costs about .6: `walk` means what `go` means, and is dropped."""
    settings = {"cost": 2.4, "spread": 2.0, "cut": 0.05}
    assert level(Cosine(), **settings) == {"go", "stop"}
    assert level(RougeL(), **settings) == {"go", "walk", "stop"}, "their letters differ"


def test_cosine() -> None:
    nodes = [SearchNode(number=at, parent=None, notes={"Embedding": each}) for at, each in enumerate(MEANING.values())]
    assert Cosine()(nodes[0], nodes[1]) == pytest.approx(0.99 / np.hypot(0.99, 0.05))
    assert Cosine()(nodes[0], nodes[2]) == 0
    with pytest.raises(ValueError, match=r"Cosine: got .* without an embedding; need evaluate=Embedded"):
        Cosine()(nodes[0], SearchNode(number=9, parent=None))


def test_a_long_path_costs_what_it_holds_in_the_cache() -> None:
    """Two leaves of one gain: by nodes both are kept or none is better; by tokens the long one is not worth it."""
    walks, gains = [[0, 1], [0, 2]], [0.5, 0.5]
    assert choose(walks, gains, [0, 0], cost=1.0, spread=0.0) == {0, 1}
    assert choose(walks, gains, [0, 0], cost=1.0, spread=0.0, size={0: 10, 1: 10, 2: 100}) == {0}


def test_a_longer_action_of_nearly_the_same_value_is_too_dear_in_tokens_and_not_as_a_node() -> None:
    assert level(RougeL(), cost=1.2, spread=0.0, per="node") == {"go", "walk"}
    assert level(RougeL(), cost=1.2, spread=0.0) == {"go"}


def test_the_tokens_of_a_node_are_those_of_its_action_and_observation() -> None:
    known: list[tuple[str, int]] = []

    class Noted:
        def __call__(self, tree, fresh) -> None:  # type: ignore[no-untyped-def]
            known.extend((node.action, kv_tokens(node)) for node in fresh)

    engine = Scripted(script=says(lambda luck: luck.choice(["go", "stop"])))
    place = runner(engine, InProcessHost(env=Game(depth=9)), limits=Limits(turns=2))
    how = Search(
        select=ets().select, evaluate=ConstantValue(value=0.1), prune=(Noted(),), eager=True, stop_value=None, rounds=1
    )
    asyncio.run(place.run(how, [Task(id="t")], seed=0))
    sizes = dict(known)
    # The action with its stop token, and the observation in braces, which repeats the word.
    assert sizes == {word: 2 * len(word) + 3 for word in sizes}
    assert len(sizes) > 1


def test_hidden_states_are_needed() -> None:
    place = runner(Scripted(script=says(lambda _: "a")), InProcessHost(env=Game()))
    how = replace(ets(), evaluate=Embedded(evaluate=ConstantValue()))
    with pytest.raises(BaseException, match=r"Embedded: got an agent without hidden states|unhandled errors"):
        asyncio.run(place.run(how, [Task(id="t")], seed=0))
