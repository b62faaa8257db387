"""Writes docs/traces.md: for each search, and for each way to grow trees, the tree of one task of Sokoban.

python scripts/traces.py           # whether the page has each of them
python scripts/traces.py --write   # some minutes: trains small agents, then runs every command
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np

from bough.cli.systems import SEARCHED, WITH_CRITIC, systems
from bough.store import stored_rewarded, stored_trees
from bough.tree import Credited, Rewarded, count_path_tokens, seat_view
from bough.view import show_tree

PAGE = Path(__file__).parents[1] / "docs" / "traces.md"
PLAIN = {
    "Best of n": f"bough search runs/{SEARCHED} 'BestOf(n=4)'",
    "Monte-Carlo tree search": f"bough search runs/{SEARCHED} 'mcts(width=3)'",
    "PUCT": f"bough search runs/{WITH_CRITIC} 'puct()'",
    "A*": f"bough search runs/{WITH_CRITIC} 'a_star()'",
    "Tree-Planner": f"bough search runs/{SEARCHED} 'TreePlanner()'",
}
ELSEWHERE = {
    "AgentSwift": ("agent_design", "agent_swift()"),
    "ARIES": ("thoughts", "Aries(votes=5)"),
    "Board games by external search": ("board_games", "board_games()"),
    "TreeInstruct": ("socratic", "TreeInstruct()"),
}
"""The searches of another world than Sokoban, each with its world."""
LINES = 60
"""Most lines of a tree on the page."""

AGENTS = (
    f"bough train {SEARCHED} steps=2",
    f"bough train {WITH_CRITIC} steps=1 batch_tasks=16",
    "bough train mcts_dpo_sokoban steps=1 batch_tasks=16",
    "bough train q_star --on sokoban steps=1 batch_tasks=16",
    "bough train starwm --on sokoban steps=1",
    *(f"bough train grpo --on {world} steps=0" for world, _ in ELSEWHERE.values()),
)
GROWN = (
    "grpo",
    "tree_grpo",
    "tree_rpo",
    "treepo",
    "treerl",
    "arpo",
    "latr",
    "segment_po",
    "tree_ps",
    "dynamic_tree_rpo",
    "hbpo",
    "guided",
    "scope",
    "hi_agent",
)
SMALL = (
    "steps=1",
    "batch_tasks=1",
    "warmup.demonstrations=0",
    "evaluation.tasks.count=1",
    "checkpointing.trees_every=1",
)
HEAD = """# What the searches do

One task of Sokoban, or of the world that a search is for, and one tree of each way to grow. In Sokoban P is the player,
O a box, and X a place where a box must go. A line is a turn: the action, its visits, the value of the state after it,
the rating of the action before it was executed, the reward. Where a line has branches below it, the tree forks.
`scripts/traces.py --write` makes the page with small agents: the searches are shown, not compared.
[Search](search.md) has their pieces, [published systems](systems.md) their papers."""


def searches() -> dict[str, str]:
    """By name, the command of each system that searches with agents of runs."""
    found = PLAIN | {name: f"bough search runs/grpo_{world} '{search}'" for name, (world, search) in ELSEWHERE.items()}
    for system in systems():
        for command in reversed(system.commands):
            words = shlex.split(command)
            if words[1] == "search" and words[2].startswith("runs/"):
                found[system.name] = command
    return found


def page(folder: Path) -> str:
    """The page, from runs in an empty folder."""
    for command in AGENTS:
        run(command, folder)
    parts = [HEAD, "## Searches"]
    for number, (name, command) in enumerate(searches().items()):
        out = f"searched/{number}"
        shared = command.partition(" --out ")[0]
        run(f"{shared} --out {out} evaluation.tasks.count=1 limits.tree_turns=40", folder)
        (tree,) = stored_trees(folder / out / "trees")[:1]
        seats = [
            view for name in [seat.name for seat in tree.seats] or [""] if (view := seat_view(tree, name)) is not None
        ]
        rewarded = [Rewarded(tree=each, channels={"env": each.env_reward}) for each in seats]
        parts.append(section(name, command, shown(rewarded)))
    parts.append("## Growth")
    for name in GROWN:
        start = f"policy='Pretrained(path=runs/{SEARCHED}/final)'"
        run(f"bough train {name} --on sokoban --out grown {start} {' '.join(SMALL)}", folder)
        grown = stored_rewarded(folder / "grown" / f"{name}_sokoban")
        parts.append(section(name, f"bough train {name} --on sokoban", shown(grown)))
    return "\n\n".join(parts) + "\n"


def shown(group: list[Rewarded]) -> str:
    """The trees of a task, without credit."""
    credited = [Credited(rewarded=each, path_advantage=np.zeros(count_path_tokens(each.tree))) for each in group]
    lines = show_tree(credited).splitlines()
    more = [f"... and {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join([*lines[:LINES], *more])


def section(name: str, command: str, tree: str) -> str:
    """A heading, the command, the tree."""
    return f"### {name}\n\n```sh\n{command}\n```\n\n```text\n{tree}\n```"


def run(command: str, folder: Path) -> None:
    """Execute a command in a folder; its messages where it fails."""
    words = [sys.executable, "-m", "bough", *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command}\n{textwrap.indent(done.stderr[-1500:], '    ')}")
    print(command, flush=True)


def main() -> None:
    """Check or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        with tempfile.TemporaryDirectory() as folder:
            PAGE.write_text(page(Path(folder)), encoding="utf-8")
    elif missing := absent():
        sys.exit(f"docs/traces.md lacks {missing}; write it with --write")


def absent() -> list[str]:
    """The searches and ways to grow that the page lacks."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    names = [*searches(), *GROWN]
    return [name for name in names if f"### {name}\n" not in text]


if __name__ == "__main__":
    main()
