"""Best of n by learned rewards, compared with majority vote and an outcome verifier, on held-out tasks.

    python bench/best_of_n.py warmup.demonstrations=160 warmup.epochs=10 --worlds linear_programs --seeds 5
    python bench/best_of_n.py --worlds sokoban --seeds 1 --trees 60 --tasks 40
    python bench/best_of_n.py env.questions=8 env.threshold=0.75 env.words=5 context=Full limits.turns=8 \
        warmup.demonstrations=100 warmup.epochs=12 --worlds quiz --trees 600 --width 3 --completions 3 --epochs 4 16 4

The policy of a seed is that of the method after its warm-up. It grows trees of training tasks by look-ahead completions
(`tree_plv`), and three reward models of one size learn from the same trees: a process reward model from the share of
successful completions below a step, a ranker from pairs of siblings, and an outcome verifier from ended paths. Then n
paths of each held-out task are sampled once, and every rule selects one of the same n:

    one sample          the first path
    majority vote       the most frequent answer: the last action where a task has one, else the list of all actions
    fewest steps        the shortest path, which a product of probabilities prefers, too
    outcome verifier    the highest score of the last step
    reward of steps     the highest mean, minimum or product of the steps' probabilities, or the last one
    pairs of steps      the highest mean score of the ranker
    any of n            whether one of the paths succeeds, the upper bound

Prints a Markdown table; a seed whose result is stored is not repeated.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from bough.cli.find import find_run
from bough.config import override
from bough.critics import RewardModel
from bough.critics.reward_model.folder import TrainedRewardModel, load_reward_model
from bough.critics.reward_model.labels import turn_texts
from bough.evaluate import search
from bough.store import RunDirectory
from bough.train import start
from bough.train.train_reward import train_reward
from bough.tree import PathScore, Rewarded, Ternary, Tree, path_score, path_view, text_in
from interval import interval
from machine import machine

WORLDS = ("linear_programs",)
"""The default worlds: those whose last state does not show whether the path succeeded."""

ANSWERS = {"search", "ledger", "reasoning"}
"""The worlds whose last action is the answer."""

MODELS: Mapping[str, RewardModel] = {
    "soft": RewardModel(labels="soft"),
    "pairs": RewardModel(labels="pairs", gap=0.2),
    "outcome": RewardModel(labels="outcome"),
}
EPOCHS = (12, 6, 12)
"""The default passes over the labels, one for each reward model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A sampled path: the texts of its steps, its answer, and whether it succeeds."""

    texts: tuple[np.ndarray, ...]
    answer: str
    success: bool


Rule = Callable[[Sequence[Candidate]], bool]
"""Whether the selected one of the candidates of a task succeeds."""


def main() -> None:
    arguments = _arguments()
    if arguments.one is not None:
        _measure(arguments, arguments.worlds[0], arguments.one)
        return
    parts = [(world, seed) for world in arguments.worlds for seed in range(arguments.seeds)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda part: _process(arguments, *part), parts))
    for world in arguments.worlds:
        found = [json.loads(_result(arguments, world, seed).read_text()) for seed in range(arguments.seeds)]
        print(f"\n`{world}`, success of best of {arguments.n}, %, of {arguments.tasks} held-out tasks\n")
        print("| rule | success | over majority vote |\n|---|---|---|")
        majority = _column(found, "success", "majority vote")
        for name in found[0]["success"]:
            rates = _column(found, "success", name)
            print(f"| {name} | {interval(100 * rates)} | {interval(100 * (rates - majority), sign=True)} |")
        print("\n| reward model | expected calibration error, % | pair accuracy, % | AUC, % |\n|---|---|---|---|")
        for name in MODELS:
            error, pairs, auc = (_column(found, name, key) for key in ("error", "pair_accuracy", "auc"))
            cells = [interval(100 * error), interval(100 * pairs), interval(100 * auc)]
            print(f"| {name} | {' | '.join(cells)} |")
    print(f"\n{arguments.seeds} seeds, {arguments.trees} trees each; {machine(1)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("changes", nargs="*", help="fields of the run to change, as for `bough train`")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS))
    parser.add_argument("--method", default="grpo")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="seeds at the same time")
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--trees", type=int, default=400, help="training tasks with a tree")
    parser.add_argument("--width", type=int, default=4, help="sampled steps at a node of a tree")
    parser.add_argument("--completions", type=int, default=4, help="look-ahead completions of a step")
    parser.add_argument(
        "--epochs", type=int, nargs=len(MODELS), default=list(EPOCHS), metavar=tuple(map(str.upper, MODELS))
    )
    parser.add_argument("--tasks", type=int, default=200, help="held-out tasks")
    parser.add_argument("--out", type=Path, default=Path("runs/best_of_n"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    return parser.parse_intermixed_args()


def _column(found: Sequence[Mapping[str, Mapping[str, float]]], part: str, name: str) -> np.ndarray:
    return np.asarray([np.nan if each[part][name] is None else each[part][name] for each in found])


def _result(arguments: argparse.Namespace, world: str, seed: int) -> Path:
    return arguments.out / f"{world}_{seed}.json"


def _process(arguments: argparse.Namespace, world: str, seed: int) -> None:
    """Measure a seed of a world, unless that is done, as a process of its own."""
    if _result(arguments, world, seed).is_file():
        return
    command = [sys.executable, __file__, *arguments.changes, "--worlds", world, "--one", str(seed)]
    names = ("method", "n", "trees", "width", "completions", "tasks", "out")
    command += [f"--{name}={getattr(arguments, name)}" for name in names]
    command += ["--epochs", *map(str, arguments.epochs)]
    subprocess.run(command, check=True, stdout=sys.stderr, env=os.environ | {"OMP_NUM_THREADS": "1"})


def _measure(arguments: argparse.Namespace, world: str, seed: int) -> None:
    run = override(find_run(arguments.method, world), [*arguments.changes, f"seed={seed}"])
    warm = RunDirectory(path=arguments.out / f"{world}_warm_{seed}")
    if not warm.final.is_dir():
        start(run.replace(name=warm.path.name, steps=0), arguments.out)
    grown = arguments.out / f"{world}_trees_{seed}"
    explorer = f"explorer=tree_plv(width={arguments.width},completions={arguments.completions})"
    search(warm.path, [explorer, f"evaluation.tasks=Tasks(split=train,count={arguments.trees})"], out=grown)
    result: dict[str, dict[str, Any]] = {"success": {}}
    models: dict[str, TrainedRewardModel] = {}
    for (name, model), epochs in zip(MODELS.items(), arguments.epochs, strict=True):
        settings = replace(model, epochs=epochs)
        folder = arguments.out / f"{world}_{name}_{seed}"
        report = train_reward([grown], settings, out=folder, run=warm.path, device="cpu").report.record()
        models[name] = load_reward_model(folder)
        auc = report["auc"]
        assert isinstance(auc, dict)
        result[name] = {"error": report["error"], "pair_accuracy": report["pair_accuracy"], "auc": auc["mean"]}
    chains = [f"explorer=Chains(n={arguments.n})", f"evaluation.tasks.count={arguments.tasks}"]
    groups = [_candidates(tree, world) for tree in search(warm.path, chains).trees]
    for name, rule in _rules(models).items():
        result["success"][name] = float(np.mean([rule(group) for group in groups if group]))
        print(f"seed {seed}, {world}, {name}: {result['success'][name]:.1%}", flush=True)
    _result(arguments, world, seed).write_text(json.dumps(result))


def _candidates(tree: Tree, world: str) -> list[Candidate]:
    """The paths of a task."""
    view = path_view([Rewarded(tree=tree, channels={})])
    texts = turn_texts(tree, view)
    found: list[Candidate] = []
    for path in range(view.paths):
        nodes = view.node[view.start[path] : view.start[path + 1]].tolist()
        actions = [text_in(tree.info[node]) or "" for node in nodes]
        answer = actions[-1] if world in ANSWERS and actions else "\n".join(actions)
        success = bool(tree.success[view.leaf[path]] == Ternary.YES)
        found.append(Candidate(texts=tuple(texts[node][0] for node in nodes), answer=answer, success=success))
    return [each for each in found if each.texts]


def _rules(models: Mapping[str, TrainedRewardModel]) -> dict[str, Rule]:
    """The rules by name."""
    rules: dict[str, Rule] = {
        "one sample": lambda group: group[0].success,
        "majority vote": _majority,
        "fewest steps": lambda group: min(group, key=lambda each: len(each.texts)).success,
        "outcome verifier": lambda group: _best(group, models["outcome"], "last"),
    }
    for by in get_args(PathScore):
        rules[f"reward of steps, {by}"] = lambda group, by=by: _best(group, models["soft"], by)
    rules["pairs of steps, mean"] = lambda group: _best(group, models["pairs"], "mean")
    rules["any of n"] = lambda group: any(each.success for each in group)
    return rules


def _majority(group: Sequence[Candidate]) -> bool:
    """The first path with the most frequent answer; ties go to the answer that was first."""
    answer = Counter(each.answer for each in group).most_common(1)[0][0]
    return next(each.success for each in group if each.answer == answer)


def _best(group: Sequence[Candidate], model: TrainedRewardModel, by: PathScore) -> bool:
    """The path of the highest score; ties go to the first."""
    scores = iter(model.probabilities([text for each in group for text in each.texts]).tolist())
    ranked = [path_score([next(scores) for _ in each.texts], by) for each in group]
    return group[int(np.argmax(ranked))].success


if __name__ == "__main__":
    main()
