"""Searches compared at equal budgets of sampled tokens, over several seeds.

    python bench/search.py grpo_sokoban --seeds 5 --jobs 2 --curves docs/search_sokoban.svg
    python bench/search.py grpo_textworld --seeds 5 --jobs 2 --tasks 40
    python bench/search.py grpo --on alfworld_long --seeds 5 --tasks 40 --budgets 1 2 4 8 --searches "best of n" MCTS

The agent of a seed is the policy after the recipe's warm-up, with a critic that was fitted to its own paths, the policy
left as it is. A budget of 1 is what the longest of single paths took, one on each task; no search may sample more than
its budget. Every search may look into the future as often as its budget allows (both environments can be stepped from
any state), so this measures what looking ahead is worth, not what a single try is.

Prints a Markdown table; what is there already is read, not repeated.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bough.cli.find import find_run
from bough.config import override
from bough.credit import TurnPpo
from bough.critics import ValueHead
from bough.evaluate import evaluate, search
from bough.learner import Optimizer
from bough.objective import ValueClip
from bough.policy import Pretrained
from bough.store import RunDirectory
from bough.train import Run, Warmup, start
from curve import write_curves
from interval import half_interval, interval
from machine import machine

DISCOUNT = 0.9
"""Of a turn, in what the critic learns: A* reads turns to go off its values."""

SEARCHES = {
    "best of n": "BestOf(n=1000)",
    "beam": "beam(width=4)",
    "best-first": "best_first()",
    "MCTS": "mcts()",
    "PUCT": "puct()",
    "A*": "Search(select=Best(by=AStarCost),evaluate=CriticTurns(discount=0.9),prune=[DedupeStates],eager=true)",
}

WITHOUT_CRITIC = {"best of n", "MCTS"}
"""The searches that use no critic; if no other one is measured, none is fitted."""


def main() -> None:
    arguments = _arguments()
    if arguments.one is not None:
        _measure(arguments, arguments.one)
        return
    seeds = range(arguments.seeds)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda seed: _process(arguments, seed), seeds))
    results = [json.loads(_result(arguments, seed).read_text()) for seed in seeds]
    least, most = (bound(result["unit"] for result in results) for bound in (min, max))
    units = f"{least}" if least == most else f"{least} to {most}"
    print(f"`{_base(arguments)}`: held-out success, %, of {arguments.tasks} tasks\n")
    print(f"| budget | {' | '.join(map(str, arguments.budgets))} |")
    print(f"|---|{'---|' * len(arguments.budgets)}")
    print(f"| greedy | {_cell([result['greedy'] for result in results])} |{' |' * (len(arguments.budgets) - 1)}")
    for name in arguments.searches:
        cells = [_cell([result[name][str(budget)] for result in results]) for budget in arguments.budgets]
        print(f"| {name} | {' | '.join(cells)} |")
    if arguments.curves is not None:
        rates = {
            name: [_mean([each[name][str(b)] for each in results]) for b in arguments.budgets]
            for name in arguments.searches
        }
        unit = f"budget; 1x is {units} sampled tokens"
        write_curves(arguments.curves, arguments.budgets, rates, unit=unit)
    print(f"\nA budget of 1 is {units} sampled tokens. {arguments.seeds} seeds; {machine(1)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", default="grpo_sokoban", help="a recipe, or a method with --on")
    parser.add_argument("--on", help="a world")
    parser.add_argument("changes", nargs="*", help="fields of the recipe to change, as for `bough train`")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="seeds at the same time")
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--critic-steps", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("runs/search"))
    parser.add_argument("--curves", type=Path, help="an SVG to draw")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    return parser.parse_intermixed_args()


def _base(arguments: argparse.Namespace) -> str:
    return f"{arguments.recipe} --on {arguments.on}" if arguments.on else arguments.recipe


def _label(arguments: argparse.Namespace) -> str:
    return "_".join(filter(None, (arguments.recipe, arguments.on)))


def _result(arguments: argparse.Namespace, seed: int) -> Path:
    return arguments.out / f"{_label(arguments)}_{seed}.json"


def _process(arguments: argparse.Namespace, seed: int) -> None:
    """Measure a seed, unless that is done, as a process of its own."""
    if _result(arguments, seed).is_file():
        return
    command = [sys.executable, __file__, arguments.recipe, *arguments.changes, "--one", str(seed)]
    command += [f"--tasks={arguments.tasks}", f"--out={arguments.out}", f"--critic-steps={arguments.critic_steps}"]
    command += ["--budgets", *map(str, arguments.budgets), "--searches", *arguments.searches]
    command += ["--on", arguments.on] if arguments.on else []
    subprocess.run(command, check=True, stdout=sys.stderr, env=os.environ | {"OMP_NUM_THREADS": "1"})


def _measure(arguments: argparse.Namespace, seed: int) -> None:
    recipe = override(find_run(arguments.recipe, arguments.on), [*arguments.changes, f"seed={seed}"])
    agent = _agent(arguments, recipe, seed)
    count = f"evaluation.tasks.count={arguments.tasks}"
    single = search(agent.path, ["explorer=BestOf(n=1)", count])
    # What the longest path wrote, and what has to be set aside for its last answer.
    unit = max(int(tree.sampled.sum()) for tree in single.trees) + recipe.world.sampling.max_tokens
    greedy = evaluate(agent.path, changes=[count, "evaluation.temperature=0"]).score.rate
    result: dict[str, object] = {"unit": unit, "greedy": greedy}
    for name in arguments.searches:
        explorer = SEARCHES[name]
        rates: dict[int, float] = {}
        for budget in arguments.budgets:
            found = search(agent.path, [f"explorer={explorer}", f"limits.tree_tokens={budget * unit}", count])
            rates[budget] = found.rate
            print(
                f"seed {seed}, {name}, budget {budget}: {found.rate:.1%}, {found.cost['tokens']:.1f} tokens", flush=True
            )
        result[name] = rates
    _result(arguments, seed).write_text(json.dumps(result))


def _agent(arguments: argparse.Namespace, recipe: Run, seed: int) -> RunDirectory:
    """The policy after its warm-up, with a critic of its own where a search needs one."""
    warm = RunDirectory(path=arguments.out / f"{_label(arguments)}_warm_{seed}")
    if not warm.final.is_dir():
        start(recipe.replace(name=warm.path.name, steps=0), arguments.out)
    if WITHOUT_CRITIC.issuperset(arguments.searches):
        return warm
    done = RunDirectory(path=arguments.out / f"{_label(arguments)}_critic_{seed}")
    if done.final.is_dir():
        return done
    fitted = recipe.replace(
        name=done.path.name,
        policy=Pretrained(path=str(warm.final)),
        warmup=Warmup(),
        credit=TurnPpo(discount=DISCOUNT, lam=1.0),
        critic=ValueHead(detach=True, learning_rate=3e-3),
        objective=ValueClip(clip=None),
        regularizers=(),
        filters=(),
        optimizer=Optimizer(learning_rate=1e-4, minibatches=8),
        steps=arguments.critic_steps,
    )
    return start(fitted, arguments.out)


def _cell(rates: list[float]) -> str:
    return interval(100 * np.asarray(rates))


def _mean(rates: list[float]) -> tuple[float, float]:
    """In percent, with half of its 95 % interval."""
    values = 100 * np.asarray(rates)
    return float(values.mean()), half_interval(values)


if __name__ == "__main__":
    main()
