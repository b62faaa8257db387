"""Where credit rules part: a quiz of many small decisions, with few paths a batch.

    python bench/where_methods_part.py curves --seeds 5 --write
    python bench/where_methods_part.py sweep --seeds 2 --questions 5 20 80 --paths 4 16 64 --write

`curves` trains each rule on the world `quiz`, 60 questions and 8 paths a step, and draws held-out success against
sampled tokens. `sweep` varies both numbers, with as many steps, and draws the accuracy of answers at the end. A rule is
what differs: all else, the warm-up included, is the world's. A seed is that of the run and of the quiz's answers: it
draws answers, demonstrations and weights. The rules of a seed start from the same weights.

Runs are made one after the other, in this process. What a run measured goes to a small file, and is read, not repeated,
when the script starts again; a run that was interrupted is resumed. `--write` puts tables and drawings into the docs.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bough.cli.find import find_run
from bough.config import override
from bough.credit import Archer, Gae, Gigpo, Grpo, Hgpo, ReinforcePlusPlus, Salt, TreeGrpo, TurnPpo
from bough.critics import UtteranceCritic, ValueHead
from bough.explore import Chains, Forks
from bough.objective import Reinforce, ValueClip, add
from bough.store import RunDirectory, read_metrics
from bough.train import Run, read_heldout, resume, start
from interval import half_interval, interval
from machine import machine
from page import DOCS, write
from panels import Axis, Panel, Point, write_panels
from recurring_prompts import RecurringPrompts

Change = Callable[[Run], Run]
SHORT = 0.5
"""Discount of a turn: the answer itself and about two that follow."""
WARM_ANSWERS = 240
"""Questions of the demonstrations, whatever the length of a path."""
GROUP = 4
"""Paths of a task."""


def _critic(credit: Gae | TurnPpo) -> Change:
    return lambda run: run.replace(
        credit=credit, critic=ValueHead(), objective=add(run.method.objective, [ValueClip()])
    )


def _archer(run: Run) -> Run:
    critic = UtteranceCritic(discount=SHORT, layers=2, steps=8, batch_turns=128, capacity_turns=20_000)
    return run.replace(hooks=(critic,), credit=Archer(), objective=Reinforce())


RULES: Mapping[str, Change] = {
    "GRPO": lambda run: run.replace(credit=Grpo()),
    "GiGPO": lambda run: run.replace(credit=Gigpo(discount=SHORT)),
    "Turn-PPO": _critic(TurnPpo(discount=SHORT, lam=0.9)),
    "token GAE": _critic(Gae(discount=0.9, lam=0.9)),
    "Tree-GRPO": lambda run: run.replace(credit=TreeGrpo(), explorer=Forks(chains=2, draws=1)),
    "HGPO": lambda run: run.replace(credit=Hgpo(discount=SHORT)),
    "SALT": lambda run: run.replace(credit=Salt()),
    "REINFORCE++": lambda run: run.replace(credit=ReinforcePlusPlus(kl=0.0)),
    "ArCHer": _archer,
}
"""The first is what the others are compared with."""
SWEPT = ("GRPO", "GiGPO", "Turn-PPO")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Questions of a path, and paths of a step."""

    questions: int = 60
    paths: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run measured.

    Attributes:
        tokens: Sampled tokens in all, at each evaluation.
        success: Held-out success at each evaluation, from 0 to 1.
        accuracy: Share of right answers in training, by step.
        seconds: Wall time of the run.
    """

    tokens: Sequence[float]
    success: Sequence[float]
    accuracy: Sequence[float]
    seconds: float

    @property
    def at_end(self) -> float:
        """Mean accuracy of the last five steps."""
        return float(np.mean(self.accuracy[-5:]))


def main() -> None:
    arguments = _arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    {"curves": _curves, "sweep": _sweep}[arguments.what](arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("curves", "sweep"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rules", nargs="+", choices=RULES, help="all, or three in the sweep")
    parser.add_argument("--questions", type=int, nargs="+", default=[5, 10, 20, 40, 80])
    parser.add_argument("--paths", type=int, nargs="+", default=[4, 8, 16, 64])
    parser.add_argument("--out", type=Path, default=Path("runs/where_methods_part"))
    parser.add_argument("--write", action="store_true", help="write the tables and drawings of the docs")
    return parser.parse_args()


def measure(out: Path, cell: Cell, rule: str, seed: int) -> Measured:
    """Train one rule on one seed, unless that is done."""
    name = f"{cell.questions}x{cell.paths}_{rule.lower().replace(' ', '_')}_seed{seed}"
    file = out / f"{name}.json"
    if not file.is_file():
        begin = time.perf_counter()
        with (out / f"{name}.log").open("a") as log, redirect_stdout(log), redirect_stderr(log):
            made = out / name
            directory = resume(made) if made.is_dir() else start(RULES[rule](_base(cell, seed, name)), out)
        found = _read(directory, time.perf_counter() - begin)
        file.write_text(json.dumps(asdict(found)))
        shutil.rmtree(directory.path)
        print(
            f"{name}: accuracy {found.accuracy[0]:.2f} to {found.at_end:.2f}, success {found.success[-1]:.0%}, "
            f"{found.tokens[-1]:,.0f} tokens, {found.seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    return Measured(**json.loads(file.read_text()))


def _base(cell: Cell, seed: int, name: str) -> Run:
    changes = [
        f"name={name}",
        f"seed={seed}",
        f"env.questions={cell.questions}",
        f"env.table={seed}",
        f"limits.turns={cell.questions}",
        f"batch_tasks={cell.paths // GROUP}",
        f"warmup.demonstrations={round(WARM_ANSWERS / cell.questions)}",
        "checkpointing.every=20",
        "checkpointing.keep=1",
        "checkpointing.trees_every=0",
    ]
    return override(find_run("grpo", "quiz"), changes).replace(explorer=Chains(n=GROUP), engine=RecurringPrompts())


def _read(directory: RunDirectory, seconds: float) -> Measured:
    rows = read_metrics(directory.metrics)
    sampled = np.cumsum([float(row.get("speed/sampled_tokens") or 0.0) for row in rows])
    so_far = {int(float(row["step"])): float(tokens) for row, tokens in zip(rows, sampled, strict=True)}
    results = {step: float(np.mean(list(tasks.values()))) for step, tasks in sorted(read_heldout(directory).items())}
    return Measured(
        tokens=[so_far[step] for step in results],
        success=list(results.values()),
        accuracy=[float(row["reward/mean"]) for row in rows if row["phase"] == "rl"],
        seconds=seconds,
    )


def _curves(arguments: argparse.Namespace) -> None:
    rules, seeds, cell = arguments.rules or list(RULES), range(arguments.seeds), Cell()
    # Seed by seed, so that an early stop leaves all rules of the first seeds.
    runs = {(rule, seed): measure(arguments.out, cell, rule, seed) for seed in seeds for rule in rules}
    budget = min(run.tokens[-1] for run in runs.values())
    equal = {
        rule: _percent([np.interp(budget, runs[rule, s].tokens, runs[rule, s].success) for s in seeds])
        for rule in rules
    }
    lines = [
        f"| rule | success by seed, % | success, % | after {budget:,.0f} tokens, % | against {rules[0]} there | "
        "accuracy, first step to last five, % | tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    for rule in rules:
        own = [runs[rule, seed] for seed in seeds]
        final = _percent([run.success[-1] for run in own])
        against = "" if rule == rules[0] else interval(equal[rule] - equal[rules[0]], sign=True)
        before, after = (_percent([run.accuracy[0] for run in own]), _percent([run.at_end for run in own]))
        lines.append(
            f"| {rule} | {', '.join(f'{each:.0f}' for each in final)} | {interval(final)} | {interval(equal[rule])} | "
            f"{against} | {before.mean():.0f} to {interval(after)} | {np.mean([run.tokens[-1] for run in own]):,.0f} |"
        )
    seconds = np.mean([run.seconds for run in runs.values()])
    lines.append(f"\n{len(seeds)} seeds, {seconds:.0f} seconds a run; {machine(1)}")
    print("\n".join(lines))
    if arguments.write:
        write("which_method.md", "curves", "\n".join(lines))
        _draw_curves(runs, rules, seeds)


def _draw_curves(runs: Mapping[tuple[str, int], Measured], rules: Sequence[str], seeds: range) -> None:
    points: dict[str, list[Point]] = {}
    for rule in rules:
        own = [runs[rule, seed] for seed in seeds]
        points[rule] = [
            _point(float(np.mean([run.tokens[at] for run in own])) / 1000, [run.success[at] for run in own])
            for at in range(len(own[0].tokens))
        ]
    ticks = {float(each): f"{each},000" if each else "0" for each in range(0, 61, 10)}
    write_panels(
        DOCS / "quiz_curves.svg",
        [Panel(title="60 questions a path, 8 paths a step", lines=points)],
        Axis(ticks=ticks, title="sampled tokens"),
        title="held-out success",
    )


def _sweep(arguments: argparse.Namespace) -> None:
    rules, seeds = arguments.rules or list(SWEPT), range(arguments.seeds)
    cells = [Cell(questions=questions, paths=paths) for paths in arguments.paths for questions in arguments.questions]
    runs = {
        (cell, rule, seed): measure(arguments.out, cell, rule, seed)
        for seed in seeds
        for cell in cells
        for rule in rules
    }
    lines = [f"| paths a step | questions a path | {' | '.join(rules)} |", f"|---|---|{'---|' * len(rules)}"]
    for cell in cells:
        cells_of = [_percent([runs[cell, rule, seed].at_end for seed in seeds]) for rule in rules]
        lines.append(f"| {cell.paths} | {cell.questions} | {' | '.join(map(interval, cells_of))} |")
    lines.append(f"\n{len(seeds)} seeds; {machine(1)}")
    print("\n".join(lines))
    if arguments.write:
        write("which_method.md", "sweep", "\n".join(lines))
        panels = [
            Panel(
                title=f"{paths} paths a step",
                lines={
                    rule: [
                        _point(cell.questions, [runs[cell, rule, seed].at_end for seed in seeds])
                        for cell in cells
                        if cell.paths == paths
                    ]
                    for rule in rules
                },
            )
            for paths in arguments.paths
        ]
        axis = Axis(ticks={float(each): str(each) for each in arguments.questions}, title="questions a path", log=True)
        write_panels(DOCS / "quiz_sweep.svg", panels, axis, title="right answers, last five steps")


def _percent(shares: Sequence[float]) -> np.ndarray:
    return 100 * np.asarray(shares, dtype=np.float64)


def _point(x: float, shares: Sequence[float]) -> Point:
    values = _percent(shares)
    return Point(x=float(x), mean=float(values.mean()), half=half_interval(values))


if __name__ == "__main__":
    main()
