"""Bias and variance of every credit rule, against what is exactly true in worlds small enough to enumerate.

    python bench/laboratory.py [--groups 1000] [--rules Grpo rloo] [--worlds chain tree] [--write]

docs/estimators.md says what is measured and what the columns mean; `--write` puts the tables there.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc

import numpy as np

from bough import credit
from bough.credit import Credit
from bough.needs import Estimate, Head, needs_of
from bough.tree import Credited, paths_through, token_node
from machine import machine
from page import write
from rules import rules
from samples import Design, Sample, sample
from worlds import WORLDS, Floats, Ints, World

PATHS = 8
"""Episodes of a group."""
TOGETHER = 4
"""Groups of a batch."""
TOKENS = 1000
"""Signal to noise is given for as many sampled tokens."""
SURE = 4.0
"""Standard errors from which on a difference counts as one."""
DESIGNS: tuple[Design, ...] = ("chains", "branches")


@dataclass(frozen=True, slots=True, kw_only=True)
class Advantages:
    """What a rule says of an answer, beside what is exactly true; in units of the size of true advantages.

    Attributes:
        bias: Root mean square of its mean error, over answers as often as they are given.
        std: Root mean square of its standard deviation.
        scaled_bias: The same after multiplication with the best number above 0.
        scaled_std: As above.
    """

    bias: float
    std: float
    scaled_bias: float
    scaled_std: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradients:
    """The policy gradient that a rule implies, beside the exact one.

    Attributes:
        bias: Size of the mean error, in units of the size of the exact gradient.
        angle: Degrees between the mean and the exact gradient; nan when the mean cannot be told from nothing.
        biased: Whether the mean can be told from the exact gradient.
        turned: Whether its direction can.
        signal: Mean along the exact gradient over the standard deviation, for `TOKENS` sampled tokens.
    """

    bias: float
    angle: float
    biased: bool
    turned: bool
    signal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule in a world."""

    advantages: Advantages
    gradients: Gradients


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--rules", nargs="+")
    parser.add_argument("--worlds", nargs="+", default=[world.name for world in WORLDS])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    chosen = {name: rule for name, rule in rules().items() if name in (arguments.rules or rules())}
    worlds = [world for world in WORLDS if world.name in arguments.worlds]
    parts = [f"### The rules\n\n{catalogue(chosen)}"]
    for design in DESIGNS:
        found = measure(chosen, worlds, design, arguments.groups)
        parts += tables(found, worlds, design)
    parts.append(f"{arguments.groups:,} groups of {PATHS} episodes for each world and design; {machine(1)}")
    text = "\n\n".join(parts)
    print(text)
    if arguments.write:
        write("estimators.md", "laboratory", text)


def measure(
    chosen: Mapping[str, Credit], worlds: Sequence[World], design: Design, groups: int
) -> dict[str, dict[str, Finding]]:
    """Every rule in every world, on the same samples."""
    found: dict[str, dict[str, Finding]] = {name: {} for name in chosen}
    for number, world in enumerate(worlds):
        drawn = sample(world, groups=groups, paths=PATHS, design=design, seed=number)
        for name, rule in chosen.items():
            found[name][world.name] = examine(rule, drawn)
    return found


def examine(rule: Credit, drawn: Sample) -> Finding:
    """A rule on a sample."""
    through = np.concatenate([paths_through(tree)[token_node(tree)] for tree in drawn.trees]).astype(np.float64)
    said = np.concatenate([each.advantage for each in run(rule, drawn)]).astype(np.float64)
    return Finding(advantages=_advantages(drawn, said, through), gradients=_gradients(drawn, said, through))


def run(rule: Credit, drawn: Sample) -> list[Credited]:
    """The credit of every tree, batch by batch."""
    given = drawn.rewarded(needs_of(rule), getattr(rule, "discount", 1.0))
    batches = range(0, len(given), TOGETHER)
    return [each for first in batches for each in rule(given[first : first + TOGETHER])]


def _gradients(drawn: Sample, said: Floats, through: Floats) -> Gradients:
    """[batches, W * A]: the sum over the tokens of each path of advantage times score, its mean over the paths."""
    exact = drawn.world.exact
    own = drawn.point >= 0
    batch, weight = (drawn.tree // TOGETHER)[own], (said * through)[own]
    row, choice = exact.row[drawn.point[own]], drawn.choice[own]
    batches, (rows, tokens) = int(batch.max()) + 1, exact.policy.shape
    taken = np.bincount((batch * rows + row) * tokens + choice, weight, minlength=batches * rows * tokens)
    pushed = np.bincount(batch * rows + row, weight, minlength=batches * rows).reshape(batches, rows, 1)
    total = taken.reshape(batches, rows, tokens) - pushed * exact.policy
    sampled = total.reshape(batches, -1) / (PATHS * TOGETHER)
    return against(sampled, exact.gradient.ravel(), drawn.written / batches)


def against(sampled: Floats, true: Floats, tokens: float) -> Gradients:
    """Sampled gradients [n, k] beside the exact one [k].

    Args:
        sampled: Independent of each other.
        true: The exact gradient.
        tokens: How many tokens each of them was made of.
    """
    size, count = float(np.linalg.norm(true)), len(sampled)
    ahead, mean = true / size, sampled.mean(0)
    error = (sampled - mean).T @ (sampled - mean) / (count - 1) / count  # covariance of the mean
    aside = np.eye(len(true)) - np.outer(ahead, ahead)
    wrong, noise = _beyond(mean - true, error)
    turned, _ = _beyond(aside @ mean, aside @ error @ aside)
    some, length = _beyond(mean, error)
    off, along = _square(aside @ mean, aside @ error @ aside), float(mean @ ahead)
    return Gradients(
        bias=np.sqrt(noise) / size,
        angle=float(np.degrees(np.arctan2(np.sqrt(off), along))) if some else np.nan,
        biased=wrong,
        turned=turned,
        signal=along / np.sqrt(np.trace(error) * count) * np.sqrt(TOKENS / tokens) if length else 0.0,
    )


def _square(value: Floats, error: Floats) -> float:
    """The squared length of what `value` estimates with that covariance, without bias but not below 0."""
    return max(0.0, float(value @ value - np.trace(error)))


def _beyond(value: Floats, error: Floats) -> tuple[bool, float]:
    """Whether a vector can be told from nothing, and the squared length of what it estimates."""
    beyond = float(value @ value - np.trace(error))
    # Rounding alone does not make a difference.
    return beyond > max(SURE * np.sqrt(2 * float(np.sum(error**2))), 1e-12), max(0.0, beyond)


def _advantages(drawn: Sample, said: Floats, through: Floats) -> Advantages:
    """Answers that begin alike and end alike are one kind: E[said] against what is true of the kind, and its spread."""
    exact = drawn.world.exact
    own = drawn.point >= 0
    kinds, kind = np.unique(np.stack([drawn.first, drawn.last, drawn.closing])[:, own], axis=1, return_inverse=True)
    true = exact.quality[kinds[1], kinds[2]] - exact.value[kinds[0]]
    # An answer counts once, however many tokens it has.
    turn = np.flatnonzero(np.diff(_turn(drawn)[own], prepend=-1))
    weight = np.add.reduceat(through[own], turn) / np.diff([*turn, own.sum()])
    mean_said = np.add.reduceat(said[own], turn) / np.diff([*turn, own.sum()])
    kind = kind.ravel()[turn]
    mass = np.bincount(kind, weight)
    mean = np.bincount(kind, weight * mean_said) / mass
    spread = np.bincount(kind, weight * (mean_said - mean[kind]) ** 2) / mass
    share, count = mass / mass.sum(), np.maximum(np.bincount(kind), 2)
    unit = np.sqrt(share @ true**2)
    # What the mean of few samples is off by itself is no bias.
    luck = share @ (spread / (count - 1))
    power = max(share @ mean**2 - luck, 1e-300)
    scale = max(0.0, float(share @ (mean * true))) / power
    return Advantages(
        bias=np.sqrt(max(0.0, share @ (mean - true) ** 2 - luck)) / unit,
        std=np.sqrt(share @ spread) / unit,
        scaled_bias=np.sqrt(max(0.0, share @ (scale * mean - true) ** 2 - scale**2 * luck)) / unit,
        scaled_std=scale * np.sqrt(share @ spread) / unit,
    )


def _turn(drawn: Sample) -> Ints:
    """[T] number of the node of each token, over all trees."""
    return np.repeat(
        np.arange(sum(tree.nodes for tree in drawn.trees)), np.concatenate([np.diff(tree.span) for tree in drawn.trees])
    )


def catalogue(chosen: Mapping[str, Credit]) -> str:
    """What each rule says of itself, and what it is given."""
    lines = ["| rule | what it is | is given |", "|---|---|---|"]
    for name, rule in chosen.items():
        summary = (getdoc(getattr(credit, name)) or "").partition("\n")[0]
        given = sorted("exact values" if isinstance(need, Head | Estimate) else need.text for need in needs_of(rule))
        lines.append(f"| `{name}` | {summary} | {', '.join(dict.fromkeys(given))} |")
    return "\n".join(lines)


def tables(found: dict[str, dict[str, Finding]], worlds: Sequence[World], design: Design) -> list[str]:
    """Direction, signal and size of gradients, and advantages: a line for a rule, a column for a world."""
    shown = {
        "direction of the gradient: degrees between its mean and the exact one": _angle,
        f"signal to noise of the gradient, for {TOKENS:,} sampled tokens": lambda f: f"{f.gradients.signal:.2f}",
        "bias of the gradient as it is, in units of the exact one": _bias,
        "advantages at the best scale: bias / std": _scaled,
        "advantages as they are: bias / std": _raw,
    }
    return [f"### {design.capitalize()}: {title}\n\n{_table(found, worlds, cell)}" for title, cell in shown.items()]


def _table(found: dict[str, dict[str, Finding]], worlds: Sequence[World], cell: Callable[[Finding], str]) -> str:
    head = f"| rule | {' | '.join(world.name for world in worlds)} |\n{'|---' * (len(worlds) + 1)}|"
    lines = [f"| `{name}` | {' | '.join(cell(row[world.name]) for world in worlds)} |" for name, row in found.items()]
    return "\n".join([head, *lines])


def _angle(finding: Finding) -> str:
    gradients = finding.gradients
    if np.isnan(gradients.angle):
        return "none"
    return f"**{gradients.angle:.0f}**" if gradients.turned else "0"


def _bias(finding: Finding) -> str:
    return f"**{finding.gradients.bias:.2f}**" if finding.gradients.biased else "0"


def _scaled(finding: Finding) -> str:
    return f"{finding.advantages.scaled_bias:.2f} / {finding.advantages.scaled_std:.2f}"


def _raw(finding: Finding) -> str:
    return f"{finding.advantages.bias:.2f} / {finding.advantages.std:.2f}"


if __name__ == "__main__":
    main()
