"""A bonus for what differs and is rewarded."""

import zlib

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.reward import Diversity
from bough.reward.diversity import DIMENSIONS, _vectors, distances
from bough.tree import Outcome, Source, Tree


def group(*paths: tuple[str, float], start: str = "") -> Tree:
    """A tree of one-action paths with these texts and rewards, after a replayed action if there is one."""
    nodes, parent = [N(parent=-1, kind=PROMPT)], 0
    if start:
        nodes.append(N(parent=0, kind=ACTION, tokens=(1,), source=Source.REPLAYED, info={"text": start}))
        parent = 1
    for text, reward in paths:
        done = Outcome.TERMINATED
        nodes.append(N(parent=parent, kind=ACTION, tokens=(1,), outcome=done, env_reward=reward, info={"text": text}))
    return build(*nodes)


def test_the_worked_example() -> None:
    assert distances(["aaaa", "aaaa", "bbbb"]) == pytest.approx([0.10557, 0.10557, 0.55279], abs=1e-5)
    (paid,) = Diversity(weight=1.0)([group(("aaaa", 1.0), ("aaaa", 0.0), ("bbbb", 1.0))])
    assert paid["diversity"] == pytest.approx([0.0, 0.19098, 0.0, 1.0], abs=1e-5)


def test_equal_texts_and_failures_get_nothing() -> None:
    (paid,) = Diversity()([group(("aaaa", 1.0), ("aaaa", 1.0))])
    assert not paid["diversity"].any()
    (paid,) = Diversity()([group(("aaaa", 0.0), ("bbbb", -1.0))])
    assert not paid["diversity"].any()
    (paid,) = Diversity()([group()])
    assert not paid["diversity"].any()


def test_the_history_is_not_compared() -> None:
    plain, later = (Diversity()([group(("ab", 1.0), ("cd", 0.5), start=start)])[0] for start in ("", "abcdefg"))
    assert later["diversity"][2:] == pytest.approx(plain["diversity"][1:])


def test_paths_of_all_trees_of_a_task_are_one_group() -> None:
    whole = Diversity()([group(("aaaa", 1.0), ("aaaa", 1.0), ("bbbb", 1.0))])[0]["diversity"]
    parts = Diversity()([group(("aaaa", 1.0), ("aaaa", 1.0)), group(("bbbb", 1.0))])
    assert np.concatenate([each["diversity"][1:] for each in parts]) == pytest.approx(whole[1:])
    with pytest.raises(ValueError, match=r"Diversity.weight: got -1; need at least 0"):
        Diversity(weight=-1)


def test_paths_that_end_with_one_action_are_paid_at_their_leaves() -> None:
    done = Outcome.TERMINATED
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(1,), env_reward=1.0, info={"text": "aaaa"}),
        N(parent=1, kind=OBSERVATION, outcome=done),
        N(parent=1, kind=OBSERVATION, outcome=done),
        N(parent=0, kind=ACTION, tokens=(2,), outcome=done, env_reward=1.0, info={"text": "bbbb"}),
    )
    (paid,) = Diversity(weight=1.0)([tree])
    assert paid["diversity"] == pytest.approx([0.0, 0.0, 0.19098, 0.19098, 1.0], abs=1e-5)


def test_the_groups_of_three_characters_are_hashed_as_crc32() -> None:
    """All texts at once, with short ones, empty ones and others than ASCII, as group by group."""
    texts = ["left\nright", "", "ab", "abc", "h\u00f6he", "abcdabcd", "\u4e2d\u6587 text", "xyz" * 50]
    for text, vector in zip(texts, _vectors(texts), strict=True):
        groups = [text[begin : begin + 3] for begin in range(max(1, len(text) - 2))]
        counts = np.bincount([zlib.crc32(group.encode()) % DIMENSIONS for group in groups], minlength=DIMENSIONS)
        assert vector == pytest.approx(counts / np.linalg.norm(counts), abs=1e-15)


def test_equal_texts_in_another_number_of_pieces_are_equal() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(1, 2), outcome=Outcome.TERMINATED, env_reward=1.0, info={"text": "aaaa"}),
        N(parent=0, kind=ACTION, tokens=(1,)),
        N(parent=2, kind=ACTION, tokens=(2,), outcome=Outcome.TERMINATED, env_reward=1.0, info={"text": "aaaa"}),
    )
    (paid,) = Diversity()([tree])
    assert not paid["diversity"].any()
