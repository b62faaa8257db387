"""Multi-hop questions over three knowledge bases: choose one, search it, answer."""

from dataclasses import replace

from bough.train import World
from bough.worlds.search.preset import GRAPH, search
from bough.worlds.search.routed_search import RoutedSearch


def routed_search(evidence_reward: float = 0.2) -> World:
    """Questions of two facts in several knowledge bases, far smaller than R1-Router's (arXiv 2505.22095).

    Assumes an oracle for the warm-up. As the world `search`, with a base in each search. A search that finds a fact is
    rewarded at its turn, so that turns can be compared.

    Args:
        evidence_reward: Reward for the facts, in equal parts.
    """
    world = search()
    env = RoutedSearch(
        source=GRAPH, top=2, snippet_words=12, max_calls=5, max_errors=0, evidence_reward=evidence_reward
    )
    sampling = replace(world.sampling, max_tokens=32)
    return replace(world, name="routed_search", env=env, sampling=sampling)
