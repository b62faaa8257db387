import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Split
from bough.env.grid import canonical
from bough.env.splits import SHARES, content_hash, draw_instances, instance_task, split_of
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.sokoban import Sokoban

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
WORLDS = (FrozenLake(size=4), FrozenLake(), Sokoban())
rows = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.text("SFHG", min_size=width, max_size=width), min_size=1, max_size=4)
)


def contents(env: FrozenLake | Sokoban, split: Split, count: int, seed: int) -> set[str]:
    return {canonical(tuple(task.data["rows"])) for task in env.tasks(split, count, seed)}  # type: ignore[arg-type]


@settings(max_examples=15)
@given(st.sampled_from(WORLDS), st.lists(st.integers(0, 10**9), min_size=3, max_size=3))
def test_no_seed_brings_an_instance_of_one_split_into_another(env: FrozenLake | Sokoban, seeds: list[int]) -> None:
    drawn = [contents(env, split, 12, seed) for split, seed in zip(SPLITS, seeds, strict=True)]
    assert [len(some) for some in drawn] == [12, 12, 12], "canonical contents of one list differ from each other"
    assert not drawn[0] & drawn[1]
    assert not drawn[0] & drawn[2]
    assert not drawn[1] & drawn[2]
    for split, some in zip(SPLITS, drawn, strict=True):
        assert {*map(split_of, some)} == {split}, "the canonical content decides, so that all images are in one split"


@given(rows)
def test_all_images_of_a_map_have_one_canonical_text(lines: list[str]) -> None:
    def turned(image: tuple[str, ...]) -> tuple[str, ...]:
        return tuple("".join(column) for column in zip(*image[::-1], strict=True))

    first = tuple(lines)
    images = [first, turned(first), turned(turned(first)), turned(turned(turned(first)))]
    images += [tuple(row[::-1] for row in image) for image in images]
    assert {canonical(image) for image in images} == {canonical(first)}
    assert tuple(canonical(first).split("\n")) in images, "so two different maps cannot share a canonical text"


def test_the_shares_are_met_and_the_hash_stays_what_it_is() -> None:
    counts = dict.fromkeys(SPLITS, 0)
    for number in range(20_000):
        counts[split_of(str(number))] += 1
    for split, share in SHARES.items():
        assert counts[split] / 20_000 == pytest.approx(share, abs=0.01)
    # Were these to change, runs could train on what earlier runs tested on.
    assert content_hash("SF\nFG") == "c61a1fcc78b71dc8"
    assert [text for text in "abcdefghijklmnopqrstuvwxyz" if split_of(text) == "test"] == list("fk")


def test_draws_are_distinct_deterministic_and_prefix_stable() -> None:
    def draw(count: int, seed: int) -> list[int]:
        return draw_instances(
            name="numbers",
            split="train",
            count=count,
            seed=seed,
            propose=lambda rng: rng.randrange(1000),
            content=str,
            accept=lambda number: number % 2 == 0,
        )

    assert draw(50, 1) == draw(50, 1)
    assert draw(10, 1) == draw(50, 1)[:10]
    assert draw(50, 1) != draw(50, 2)
    assert len(set(draw(50, 1))) == 50
    assert all(number % 2 == 0 and split_of(str(number)) == "train" for number in draw(50, 1))
    assert draw(0, 1) == []


def test_an_exhausted_split_says_how_many_it_has() -> None:
    proposed: list[int] = []

    def propose(rng: random.Random) -> int:
        proposed.append(rng.randrange(6))
        return proposed[-1]

    have = sum(split_of(str(number)) == "train" for number in range(6))
    with pytest.raises(
        ValueError, match=rf"things.tasks: got count=7 .*after {have} different instances .*smaller count"
    ):
        draw_instances(
            name="things", split="train", count=7, seed=0, propose=propose, content=str, accept=lambda _: True
        )
    with pytest.raises(ValueError, match=r"FrozenLake.tasks: got count=1000 for split 'test'"):
        FrozenLake(size=3).tasks("test", 1000, 0)
    with pytest.raises(ValueError, match="count=-1"):
        FrozenLake().tasks("test", -1, 0)


def test_equal_ids_mean_equal_tasks() -> None:
    task = instance_task(name="lake", content="SF\nFG", data={"rows": ["SF", "FG"]})
    assert task == instance_task(name="lake", content="SF\nFG", data={"rows": ["SF", "FG"]})
    assert task.id == "lake-c61a1fcc78b71dc8"
    mirrored = instance_task(name="lake", content="FS\nGF", data={"rows": ["FS", "GF"]})
    assert mirrored.id != task.id
    assert mirrored.seed != task.seed


def test_a_message_about_too_many_tasks_names_the_setting() -> None:
    with pytest.raises(ValueError, match=r"need a smaller count \(tasks.count; evaluation.tasks.count for held-out"):
        draw_instances(
            name="one", split="train", count=9, seed=0, propose=lambda _: 1, content=str, accept=lambda _: True
        )
