"""Trees with what a critic said of them, for the rules that need one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.tree import Kind, Outcome, Rewarded, Source, Tree, token_node


def episode(
    lengths: Sequence[int],
    paid: Sequence[float],
    *,
    sources: Sequence[Source] = (),
    info: Sequence[Mapping[str, object]] = (),
    gap: int = 1,
) -> Tree:
    """One path: turns of so many tokens, each paid so much, `gap` tokens of observation after each."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for turn, (length, reward) in enumerate(zip(lengths, paid, strict=True)):
        last = turn == len(lengths) - 1
        nodes.append(
            N(
                parent=len(nodes) - 1,
                kind=ACTION,
                tokens=[3] * length,
                env_reward=reward,
                source=sources[turn] if sources else Source.SAMPLED,
                info=dict(info[turn]) if info else {},
            )
        )
        ending = Outcome.TERMINATED if last else Outcome.OPEN
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=[2] * gap, outcome=ending))
    return build(*nodes)


def judged(tree: Tree, **said: Sequence[float]) -> Rewarded:
    """The tree with what each head says at the tokens of its actions, in order; 9.9 everywhere else."""
    acts = (tree.kind == Kind.ACTION)[token_node(tree)]
    estimates = {}
    for name, values in said.items():
        estimates[name] = np.full(len(acts), 9.9)
        estimates[name][acts] = values
    return Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)}, estimates=estimates)


def cut_off(given: Rewarded, **values: float) -> Rewarded:
    """The same, truncated at its last node, in a state to which each head gives a value."""
    tree = given.tree
    outcome = tree.outcome.copy()
    outcome[-1] = Outcome.TRUNCATED
    ends = {name: np.append(np.full(tree.nodes - 1, np.nan), value) for name, value in values.items()}
    return replace(given, tree=replace(tree, outcome=outcome), end_values=ends)


def at_actions(tree: Tree, column: np.ndarray) -> list[float]:
    """What a column says at the tokens of actions, in order."""
    return column[(tree.kind == Kind.ACTION)[token_node(tree)]].tolist()


def fork(first: Sequence[float], tails: Sequence[Sequence[float]]) -> Tree:
    """A turn of two tokens for each reward in `first`, shared, then one chain of such turns for each of `tails`."""
    nodes = [N(parent=-1, kind=PROMPT)]

    def grow(place: int, rewards: Sequence[float], *, ends: bool) -> int:
        for turn, reward in enumerate(rewards):
            last = ends and turn == len(rewards) - 1
            nodes.append(N(parent=place, kind=ACTION, tokens=[3, 4], env_reward=reward))
            ending = Outcome.TERMINATED if last else Outcome.OPEN
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=ending))
            place = len(nodes) - 1
        return place

    trunk = grow(0, first, ends=False)
    for tail in tails:
        grow(trunk, tail, ends=True)
    return build(*nodes)
