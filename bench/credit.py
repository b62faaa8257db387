"""Seconds that each credit rule needs for a large batch, on one core.

    python bench/credit.py [--groups 1000] [--rounds 3] [--rules Grpo rloo] [--write]

The batch: a tree for each group, 100 chains of 10 turns in it, 2 tokens an answer, so 1,000 groups are 100,000 paths
and 1,000,000 turns. All that a rule may need is there: state keys, entropies, marks, random numbers for a critic's
values. Time is the processor's, in one thread, from rewarded trees to credited trees; memory that a call frees stays
with the process. Rules on tokens are measured on answers of 10 tokens too, 10,000,000 in all.

The second table has a few rules beside a plain loop in Python over paths, turns and tokens, as one writes it from the
paper, on a batch ten times smaller, in turn. Both must say the same. `--write` puts the tables into
docs/performance.md.
"""

import argparse
import ctypes
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bough.credit import Credit
from bough.needs import REFERENCE, Annotation, Appraised, Channel, Estimate, Head, Need, names_of, needs_of
from bough.tree import (
    DTYPES,
    UNKNOWN_VALUES,
    Appraisal,
    Credited,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Task,
    Tree,
    Verdict,
)
from machine import machine
from page import write
from plain import PLAIN
from rules import rules

PATHS, TURNS = 100, 10
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How much there is of everything."""

    groups: int
    tokens: int = 2

    @property
    def turns(self) -> int:
        """How many turns."""
        return self.groups * PATHS * TURNS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rules", nargs="+")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    keep_memory()
    measured = {name: rule for name, rule in rules().items() if name in (arguments.rules or rules())}
    tables = [table(measured, arguments.groups, arguments.rounds), beside(measured, arguments.groups, arguments.rounds)]
    text = "\n\n".join([*tables, machine(1)])
    print(text)
    if arguments.write:
        write("performance.md", "credit", text)


def table(measured: dict[str, Credit], groups: int, rounds: int) -> str:
    """Every rule, slowest first."""
    needs = frozenset[Need]().union(*(needs_of(rule) for rule in measured.values()))
    short = Shape(groups=groups)
    batch = forest(short, needs)
    spent = {name: times(rule, batch, rounds) for name, rule in measured.items()}
    of_tokens = [
        name for name, rule in measured.items() if rule(forest(Shape(groups=1), needs))[0].turn_advantage is None
    ]
    del batch
    long = Shape(groups=groups, tokens=10)
    batch = forest(long, needs) if of_tokens else []
    spent_long = {name: times(measured[name], batch, rounds) for name in of_tokens}
    lines = [
        f"| rule | {short.turns:,} turns: median s | best s | {long.turns * long.tokens:,} tokens: median s | best s |",
        "|---|---|---|---|---|",
    ]
    slowest_first = sorted(spent, key=lambda name: -statistics.median(spent[name]))
    cells = {name: both(spent_long[name]) if name in spent_long else " | " for name in spent}
    return "\n".join([*lines, *(f"| `{name}` | {both(spent[name])} | {cells[name]} |" for name in slowest_first)])


def beside(measured: dict[str, Credit], groups: int, rounds: int) -> str:
    """A few rules beside a plain loop, on a smaller batch."""
    shape = Shape(groups=max(1, groups // 10))
    lines = [f"| rule | {shape.turns:,} turns: plain loop, s | Bough, s | ratio |", "|---|---|---|---|"]
    for name, loop in PLAIN.items():
        if name not in measured:
            continue
        rule = measured[name]
        batch = forest(shape, needs_of(rule))
        check(name, rule(batch), loop(rule, batch))
        pairs = [(timed(lambda: loop(rule, batch)), timed(lambda: rule(batch))) for _ in range(rounds)]  # noqa: B023
        theirs, ours = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(theirs / ours for theirs, ours in pairs)
        lines.append(f"| `{name}` | {theirs:.3f} | {ours:.4f} | **{ratio:.0f}** |")
    return "\n".join(lines)


def check(name: str, ours: Sequence[Credited], theirs: Sequence[list[float]]) -> None:
    """Raise when the two sides differ."""
    for one, other in zip(ours, theirs, strict=True):
        apart = float(np.abs(one.advantage - np.asarray(other)).max())
        assert apart < TOLERANCE, f"{name}: the two sides differ by {apart}"


def keep_memory() -> None:
    """Have the C library keep what is freed: the rule is timed, not how long a system takes to hand out pages anew."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        never_map, never_trim = (-4, 0), (-1, 2**31 - 1)
        library.mallopt(*never_map)
        library.mallopt(*never_trim)


def times(rule: Credit, batch: list[Rewarded], rounds: int) -> list[float]:
    """Seconds of each round; the first call is not timed."""
    rule(batch)
    return [timed(lambda: rule(batch)) for _ in range(rounds)]


def timed(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def both(seconds: list[float]) -> str:
    """Median and best."""
    return f"{statistics.median(seconds):.2f} | {min(seconds):.2f}"


def forest(shape: Shape, needs: frozenset[Need]) -> list[Rewarded]:
    """The batch: half of the chains succeed, states are among fifty, every tenth turn is paid something."""
    rng = np.random.default_rng(0)
    return [_tree(number, shape, needs, rng) for number in range(shape.groups)]


def _tree(number: int, shape: Shape, needs: frozenset[Need], rng: np.random.Generator) -> Rewarded:
    nodes = 1 + PATHS * TURNS * 2
    at = np.arange(nodes)
    acts, ends = at % 2 == 1, (at > 0) & (at % (2 * TURNS) == 0)
    parent = at - 1
    parent[1 :: 2 * TURNS] = 0
    lengths = np.where(acts, shape.tokens, 1)
    written = np.repeat(acts, lengths)
    count = len(written)
    columns: dict[str, NDArray[np.generic]] = {
        **{name: np.full(nodes, unknown) for name, unknown in UNKNOWN_VALUES.items()},
        "parent": parent,
        "kind": np.where(acts, Kind.ACTION, Kind.OBSERVATION),
        "span": np.concatenate([[0], np.cumsum(lengths)]),
        "token": rng.integers(0, 1000, count),
        "logprob": np.where(written, -0.5, np.nan),
        "entropy": np.where(written, rng.random(count), np.nan),
        "allowed": np.full(count, -1),
        "outcome": np.where(ends, Outcome.TERMINATED, Outcome.OPEN),
        "env_reward": np.where(acts, rng.random(nodes) < 0.1, 0.0),
        "state_key": np.where(acts, 0, rng.integers(1, 50, nodes)),
        "source": np.where(acts, Source.SAMPLED, Source.FORCED),
        "policy_version": np.where(acts, 0, -1),
    }
    columns["kind"][0] = Kind.PROMPT
    typed = {name: column.astype(DTYPES[name]) for name, column in columns.items()}
    tree = Tree(
        task=Task(id=str(number)),
        info=_info(needs, shape.tokens, rng, nodes),
        appraisals={name: _appraisal(acts, rng) for name in names_of(needs, Appraised)},
        **typed,  # type: ignore[arg-type]
    )
    names = [*names_of(needs, Head), *names_of(needs, Estimate)]
    estimates = {name: rng.random(count) for name in names}
    if REFERENCE in needs:
        estimates["reference"] = np.where(written, -rng.random(count), np.nan)
    paid = ["env", *names_of(needs, Channel)]
    return Rewarded(tree=tree, channels=dict.fromkeys(paid, tree.env_reward), estimates=estimates)


def _appraisal(acts: NDArray[np.bool_], rng: np.random.Generator) -> Appraisal:
    """A value from -1 to 1 at every action."""
    none = np.zeros(len(acts), dtype=np.int32)
    return Appraisal(
        value=np.where(acts, rng.uniform(-1.0, 1.0, len(acts)), np.nan),
        verdict=np.where(acts, Verdict.OK, Verdict.NONE).astype(np.int8),
        votes=none,
        questions=none,
        tokens=none,
    )


def _info(needs: frozenset[Need], tokens: int, rng: np.random.Generator, nodes: int) -> tuple[dict[str, object], ...]:
    """Every other node has one of four infos."""
    marks = names_of(needs, Annotation)
    some = [
        {**{mark: bool(which % 2) for mark in marks}, "spans": {mark: [0, which % (tokens + 1)] for mark in marks}}
        for which in range(4)
    ]
    if not marks:
        return ({},) * nodes
    drawn = rng.integers(0, 4, nodes).tolist()
    return tuple(some[drawn[node]] if node % 2 else {} for node in range(nodes))


if __name__ == "__main__":
    main()
