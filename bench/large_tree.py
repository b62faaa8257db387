"""Seconds until a large tree in `bough view` is drawn and answers keys, in a real browser.

    python bench/large_tree.py runs/grpo_sokoban [--turns 10000] [--rounds 5] [--write]

The tree is written into a copy of the run. Needs `pip install playwright`, and Chromium.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from bough.store import write_trees
from bough.tree import Credited, Kind, Outcome, Rewarded, Tree, TreeNode, build, spread_paths
from machine import machine
from page import section
from served_viewer import opened_browser, served

STEP = 1_000_000
"""Of the trees that are added: after all steps of the run."""

PAINTED = """
async () => {
  const canvas = () => document.querySelector("canvas.tree-canvas");
  const frame = () => new Promise(requestAnimationFrame);
  while (!canvas()) await frame();
  await frame();
  await frame();
  return performance.now() / 1000;
}
"""
"""Seconds from the navigation until the frame after the first drawing."""

ANSWERED = """
async () => {
  const canvas = document.querySelector("canvas.tree-canvas");
  const frame = () => new Promise(requestAnimationFrame);
  const begin = performance.now();
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: KEY, bubbles: true }));
  await frame();
  canvas.getContext("2d").getImageData(0, 0, 1, 1);
  return (performance.now() - begin) / 1000;
}
"""
"""Seconds from a key until its drawing."""


def large_tree(turns: int, task: str = "large", seed: int = 0) -> Credited:
    """A tree of some turns, with up to three actions after each, whose episodes have up to twelve turns."""
    rng = np.random.default_rng(seed)
    nodes = [TreeNode(parent=-1, kind=Kind.PROMPT, tokens=(1, 2, 3))]

    def act(parent: int, left: int) -> None:
        text = ("up", "down", "left", "right")[int(rng.integers(4))] * int(rng.integers(1, 4))
        action = TreeNode(parent=parent, kind=Kind.ACTION, tokens=(4, 5), entropy=0.3, info={"text": text})
        won = bool(rng.random() < 0.3)
        ends = left == 1 or rng.random() < 0.05
        outcome = Outcome(rng.choice((Outcome.TERMINATED, Outcome.TRUNCATED))) if ends else Outcome.OPEN
        nodes.extend(
            [
                action,
                TreeNode(
                    parent=len(nodes),
                    kind=Kind.OBSERVATION,
                    tokens=(2, 3),
                    outcome=outcome,
                    success=won if ends else None,
                ),
            ]
        )
        action.env_reward = float(ends and won)
        place = len(nodes) - 1
        for _ in range(0 if ends else int(rng.integers(1, 4))):
            if len(nodes) < 2 * turns:
                act(place, left - 1)
        if not ends and len(nodes) - 1 == place:
            nodes[place].outcome = Outcome.TRUNCATED

    while len(nodes) < 2 * turns:
        act(0, 12)
    return _credited(build(*nodes, task=task))


def _credited(tree: Tree) -> Credited:
    rewarded = Rewarded(tree=tree, channels={"env": tree.env_reward})
    returns = rewarded.returns()
    return spread_paths(rewarded, returns - returns.mean())


def with_tree(run: Path, folder: Path, credited: Credited) -> Path:
    """A copy of what the viewer needs of a run, in a folder, with a tree as the only one of step `STEP`."""
    copy = folder / run.name
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("checkpoints", "final", "trees", "tensorboard"))
    (copy / "trees").mkdir()
    write_trees(copy / "trees" / f"step_{STEP:06d}.safetensors", [credited])
    return copy


def main() -> None:
    """Open the tree some times, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    given = parser.parse_args()
    credited = large_tree(given.turns)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), Path(folder) / "branches") as address:
        with_tree(given.run, Path(folder), credited)
        rounds = [_seconds(f"{address}#/run/{given.run.name}/tree/{STEP}.0") for _ in range(given.rounds)]
    with section("large-tree", keep=given.write) as say:
        say("| turns | drawn, s | a key at the first size, s | the whole tree in view, s | a key there, s |")
        say("|---" * 5 + "|")
        medians = " | ".join(f"**{median(each):.2f}**" for each in zip(*rounds, strict=True))
        say(f"| {given.turns:,} | {medians} |")
        say(f"\n{machine()}")


def _seconds(address: str) -> tuple[float, float, float, float]:
    with opened_browser() as browser:
        page = browser.new_page(viewport={"width": 1300, "height": 800})
        page.goto(address)
        drawn = page.evaluate(PAINTED)
        key, fitted, key_there = (page.evaluate(ANSWERED.replace("KEY", repr(key))) for key in ("ArrowRight", "0", "n"))
    return drawn, key, fitted, key_there


if __name__ == "__main__":
    main()
