"""What a rule said, path by path."""

from collections.abc import Sequence

import numpy as np
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.tree import Credited, Outcome, Rewarded, path_view


def turns_of(credited: Credited) -> list[list[float]]:
    """The advantage of each turn of each counted path, for rules that have one a turn."""
    assert credited.turn_advantage is not None
    return [part.tolist() for part in np.split(credited.turn_advantage, path_view([credited.rewarded]).start[1:-1])]


def paths_of(credited: Credited) -> list[float]:
    """The advantage of each counted path, for rules that have one a path."""
    turns = turns_of(credited)
    assert all(len(set(path)) == 1 for path in turns)
    return [path[0] for path in turns]


def paid(*rewards: Sequence[float], infos: Sequence[Sequence[dict[str, object]]] = (), task: str = "task") -> Rewarded:
    """A chain for each sequence of rewards, one a turn, with the infos of its actions; actions have two tokens."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for number, path in enumerate(rewards):
        place = 0
        for turn, reward in enumerate(path):
            info = dict(infos[number][turn]) if infos else {}
            nodes.append(N(parent=place, kind=ACTION, tokens=(4, 5), env_reward=reward, info=info))
            last = turn == len(path) - 1
            ending = Outcome.TERMINATED if last else Outcome.OPEN
            success = sum(path) > 0 if last else None
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=ending, success=success))
            place = len(nodes) - 1
    return rewarded(build(*nodes, task=task))
