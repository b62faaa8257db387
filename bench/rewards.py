"""Seconds that each rule reward, without a model, needs for a large batch on one core.

    python bench/rewards.py [--groups 1000] [--rounds 3] [--rewards Success Length] [--write]

The batch is that of `bench/credit.py`: 100 chains of 10 turns in each tree, so 1,000 groups are 1,000,000 turns. Half
of the chains succeed, actions are texts of ten characters, one in ten malformed or invalid, and every turn points at a
screen. Time is the processor's, in one thread, from grown trees to their channels; what a tree reads of its nodes when
it is made is measured apart. `--write` puts the table into docs/performance.md.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from inspect import isclass
from typing import Any, cast

import numpy as np

from bough import reward
from bough.needs import needs_of
from bough.reward import Reward
from bough.screen import Pointing
from bough.screen.pointings import read_pointings
from bough.tree import DTYPES, HasRewardRanges, Kind, Outcome, Ternary, Tree, leaves
from credit import Shape, both, forest, keep_memory, timed
from machine import machine
from page import write

SCREEN = (1000, 1000)
THOUGHTS = ("planning", "explore", "reflection", "monitor")
TEXTS = 500
"""Number of different actions, and of different elements."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rewards", nargs="+")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    keep_memory()
    measured = {name: each for name, each in rewards().items() if name in (arguments.rewards or rewards())}
    batch = trees(arguments.groups, measured.values())
    text = "\n\n".join([table(measured, batch, arguments.rounds), reading(batch), machine(1)])
    print(text)
    if arguments.write:
        write("performance.md", "rewards", text)


def rewards() -> dict[str, Reward]:
    """The rewards that `bough.reward` exports, with their default settings, by name."""
    found: dict[str, Reward] = {}
    for name in reward.__all__:
        piece: Any = getattr(reward, name)
        if isclass(piece) and is_dataclass(piece) and isinstance(made := piece(), HasRewardRanges):
            found[name] = cast("Reward", made)
    return found


def table(measured: dict[str, Reward], batch: Sequence[Tree], rounds: int) -> str:
    """Every reward, slowest first."""
    spent = {name: [timed(partial(pay, each, batch)) for _ in range(rounds)] for name, each in measured.items()}
    turns = Shape(groups=len(batch)).turns
    lines = [f"| reward | {turns:,} turns: median s | best s |", "|---|---|---|"]
    slowest_first = sorted(spent, key=lambda name: -statistics.median(spent[name]))
    return "\n".join([*lines, *(f"| `{name}` | {both(spent[name])} |" for name in slowest_first)])


def reading(batch: Sequence[Tree]) -> str:
    """What the columns of pointings cost at their first use."""
    spent = timed(lambda: [read_pointings(tree.info) for tree in batch])
    return f"The pointings of these turns, read once: {spent:.2f} s."


def pay(piece: Reward, batch: Sequence[Tree]) -> None:
    """Reward every tree, each a task of its own."""
    for tree in batch:
        piece([tree])


def trees(groups: int, pieces: Iterable[Reward]) -> list[Tree]:
    """The batch, with all that these rewards read."""
    needs = frozenset().union(*(needs_of(each) for each in pieces))
    rng = np.random.default_rng(0)
    return [_dressed(each.tree, rng) for each in forest(Shape(groups=groups), needs)]


def _dressed(tree: Tree, rng: np.random.Generator) -> Tree:
    acts, ends = tree.kind == Kind.ACTION, leaves(tree)
    success = np.full(tree.nodes, int(Ternary.UNKNOWN))
    success[ends] = np.where(rng.random(len(ends)) < 0.5, Ternary.YES, Ternary.NO)
    formed = np.where(acts, np.where(rng.random(tree.nodes) < 0.1, Ternary.NO, Ternary.YES), Ternary.UNKNOWN)
    actions, observations = _actions(rng, tree.nodes), _observations(rng, tree.nodes)
    own = (action if act else read for act, action, read in zip(acts, actions, observations, strict=True))
    info = tuple({**given, **each} for given, each in zip(tree.info, own, strict=True))
    columns = {"success": success, "well_formed": formed, "valid": formed}
    typed = {name: column.astype(DTYPES[name]) for name, column in columns.items()}
    outcome = tree.outcome.copy()
    outcome[ends] = Outcome.TERMINATED
    return replace(tree, info=info, outcome=outcome, **typed)


def _actions(rng: np.random.Generator, nodes: int) -> list[dict[str, object]]:
    """Actions of ten characters, a few hundred different ones, each with a kind of thought."""
    letters = np.random.default_rng(0).integers(97, 123, (TEXTS, 10), dtype=np.uint8)
    numbers, thoughts = rng.integers(0, TEXTS, nodes).tolist(), rng.choice(THOUGHTS, nodes).tolist()
    return [
        {"text": letters[number].tobytes().decode(), "thought": thought}
        for number, thought in zip(numbers, thoughts, strict=True)
    ]


def _observations(rng: np.random.Generator, nodes: int) -> list[dict[str, object]]:
    """Observations with the point of the action before and its target, one of a few hundred elements."""
    corners = np.random.default_rng(1).integers(0, 900, (TEXTS, 2)).tolist()
    points, numbers = rng.integers(0, 900, (nodes, 2)).tolist(), rng.integers(0, TEXTS, nodes).tolist()
    found: list[dict[str, object]] = []
    for (x, y), number in zip(points, numbers, strict=True):
        left, top = corners[number]
        pointing = Pointing(
            kind="click",
            points=((x, y),),
            target_kind="click",
            target=f"element {number}",
            target_box=(left, top, left + 100, top + 100),
            screen=SCREEN,
        )
        found.append({"text": "a screen", "env": {"pointing": pointing.record()}})
    return found


if __name__ == "__main__":
    main()
