from collections.abc import Callable, Sequence

import numpy as np
import pytest

from bough.tree import DTYPES, UNKNOWN_VALUES, Credited, Kind, Outcome, Rewarded, Source, Task, Tree, spread_paths

Grow = Callable[..., Credited]


def grow(nodes: Sequence[tuple], task: str = "lake-1") -> Credited:
    """A tree of nodes (parent, kind, text[, outcome[, success[, reward]]]); an action has two tokens, the rest one."""
    full = [(*node, *(Outcome.OPEN, False, 0.0)[len(node) - 3 :]) for node in nodes]
    kind = np.array([node[1] for node in full], dtype=np.int8)
    lengths = np.where(kind == Kind.ACTION, 2, 1)
    sampled = np.repeat(kind == Kind.ACTION, lengths)
    outcome = np.array([node[3] for node in full], dtype=np.int8)
    tree = Tree(
        task=Task(id=task),
        parent=np.array([node[0] for node in full], dtype=np.int32),
        kind=kind,
        span=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        token=np.arange(lengths.sum(), dtype=np.int32),
        logprob=np.where(sampled, -0.5, np.nan).astype(np.float32),
        entropy=np.where(sampled, 0.25, np.nan).astype(np.float32),
        allowed=np.full(lengths.sum(), -1, dtype=np.int32),
        outcome=outcome,
        env_reward=np.array([node[5] for node in full]),
        state_key=np.zeros(len(full), dtype=np.int64),
        source=np.where(kind == Kind.ACTION, Source.SAMPLED, Source.FORCED).astype(np.int8),
        policy_version=np.where(kind == Kind.ACTION, 0, -1).astype(np.int32),
        info=tuple({"text": node[2]} for node in full),
        **{name: np.full(len(full), unknown, DTYPES[name]) for name, unknown in UNKNOWN_VALUES.items()}
        | {"success": np.array([node[4] if node[3] != Outcome.OPEN else -1 for node in full], dtype=np.int8)},
    )
    rewarded = Rewarded(tree=tree, channels={"goal": tree.env_reward})
    values = rewarded.returns()
    return spread_paths(rewarded, values - (values.mean() if len(values) else 0.0))


@pytest.fixture
def two_paths() -> Credited:
    """One action, then two ways on: one solves the task, one falls into a hole."""
    return grow(
        [
            (-1, Kind.PROMPT, "Reach G.\nAFG"),
            (0, Kind.ACTION, "right"),
            (1, Kind.OBSERVATION, "SAG"),
            (2, Kind.ACTION, "right", Outcome.OPEN, False, 1.0),
            (3, Kind.OBSERVATION, "solved", Outcome.TERMINATED, True),
            (2, Kind.ACTION, "down <b>"),
            (5, Kind.OBSERVATION, "you fell & sank", Outcome.TERMINATED, False),
        ]
    )


def chains(*ends: tuple[Outcome, bool, float]) -> Credited:
    """One action a path, with the outcome, success and reward of each."""
    nodes: list[tuple] = [(-1, Kind.PROMPT, "go")]
    for outcome, success, reward in ends:
        nodes.append((0, Kind.ACTION, "go", outcome, success, reward))
    return grow(nodes)


@pytest.fixture
def grown() -> Grow:
    return grow


@pytest.fixture
def chained() -> Grow:
    return chains
