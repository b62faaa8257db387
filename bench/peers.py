"""Bough beside TRL's GRPOTrainer, transformers' `generate` and vLLM's CPU build: the same work, in turn.

    python bench/peers.py --trl-python TRL/bin/python --vllm-python VLLM/bin/python [--only step] [--rounds 5] [--write]

constraints/peers.txt says how to make the two environments; a library whose Python is not named is left out. All have
the same model of 2.0M parameters in float32, the same prompts and observations and as long actions, and pay paths by
the same function of their tokens. Before the steps are timed, TRL is given the paths of one round, and must find the
loss and the gradient that Bough finds on their trees.

Each side is a process of its own. Imports, start-up and a first round are not timed; then the sides run in turn, so
that other work on the machine hits all of them. What counts is the median over rounds of the ratios. Every round is
kept in a file at once, and rounds that it has are not run again. A side from whose round the machine's host took more
than 5 % of the processors' time runs another. `--write` puts the tables into docs/performance.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
from safetensors.torch import load_file

from machine import machine
from page import write
from peer_bough import replay
from peer_model import write_model
from peer_shapes import SHAPES, Shape
from stolen import BOUND, Stolen

HERE = Path(__file__).parent
TOLERANCE = 1e-4
"""Largest relative difference of two gradients."""

TRIES = 50
"""How often a side runs a round at most until it is undisturbed."""

MOST_ROUNDS = 1000
"""From one such try's seed to the next."""

Round: TypeAlias = Mapping[str, Mapping[str, float]]
"""What each side said of one round: "seconds" of all, and of its parts; "stolen": see `Stolen`."""


class Side:
    """A library in a process of its own, `vllm-compiled` is `vllm --compiled`; `first` is what it said when ready."""

    def __init__(self, python: str, name: str, *given: str, threads: int, log: Path) -> None:
        self.name = name
        self._log = log
        script, *flags = name.split("-")
        command = [python, str(HERE / f"peer_{script}.py"), *given, *(f"--{flag}" for flag in flags)]
        command += ["--threads", str(threads)]
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            )
        self.first = self.read()

    def ask(self, seed: int) -> dict[str, float]:
        """Run a round."""
        stolen = Stolen()
        print(seed, file=self._process.stdin, flush=True)
        return self.read() | {"stolen": stolen.share()}

    def read(self) -> dict[str, float]:
        """The next answer.

        Raises:
            RuntimeError: when the process ended instead; says its last words.
        """
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: ended without an answer\n{self._log.read_text()[-2000:]}")
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trl-python")
    parser.add_argument("--vllm-python")
    parser.add_argument("--only", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("runs/peers.json"))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    for name in given.only:
        measure(SHAPES[name], given, results)
    text = page(results, given.threads)
    print(text)
    if given.write:
        write("performance.md", "peers", text, script=HERE / "peer_bough.py")


def measure(shape: Shape, given: argparse.Namespace, results: dict[str, list[Round]]) -> None:
    """The rounds that are still missing."""
    rounds = results.setdefault(f"{shape.name} x{given.threads}", [])
    if len(rounds) >= given.rounds:
        return
    pythons = {"bough": sys.executable}
    if shape.trains:
        pythons["trl"] = given.trl_python
    else:
        pythons |= {"generate": sys.executable}
        pythons |= {"vllm": given.vllm_python, "vllm-compiled": given.vllm_python}
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        write_model(folder / "model")
        options = ("--folder", str(folder / "model"), "--shape", shape.name)
        if shape.trains and given.trl_python:
            check(shape, given, folder, options)
        sides = [
            Side(python, name, *options, threads=given.threads, log=folder / f"{name}.log")
            for name, python in pythons.items()
            if python
        ]
        # TRL has made its first step before it says anything.
        warm = [side.ask(0) for side in sides if side.name != "trl"]
        assert warm
        given.results.parent.mkdir(parents=True, exist_ok=True)
        for seed in range(1, given.rounds - len(rounds) + 1):
            # Who goes first changes.
            order = sides if seed % 2 else sides[::-1]
            rounds.append({side.name: undisturbed(side, seed) for side in order})
            given.results.write_text(json.dumps(results, indent=1))
            print(shape.name, {name: round(said["seconds"], 2) for name, said in rounds[-1].items()}, file=sys.stderr)
        for side in sides:
            side.close()


def undisturbed(side: Side, seed: int) -> dict[str, float]:
    """What a side says of a round, or of another as long, until the machine's host left it its processors.

    Raises:
        RuntimeError: when it never did.
    """
    for again in range(TRIES):
        said = side.ask(seed + again * MOST_ROUNDS)
        if said["stolen"] <= BOUND:
            return said
        print(f"{side.name}: {said['stolen']:.0%} of a round was stolen; it is run again", file=sys.stderr)
    raise RuntimeError(
        f"{side.name}: got {TRIES} rounds of which the machine's host took more than {BOUND:.0%}; need one that it "
        "leaves alone; run this again when there is less else to do, rounds that were kept are not run again"
    )


def check(shape: Shape, given: argparse.Namespace, folder: Path, options: Sequence[str]) -> None:
    """Give TRL the paths of a round.

    Raises:
        AssertionError: when it finds another loss or another gradient.
    """
    paths, loss, slopes = replay(folder / "model", shape)
    file = folder / "paths.json"
    file.write_text(json.dumps(paths))
    trl = Side(
        given.trl_python, "trl", *options, "--replay", str(file), threads=given.threads, log=folder / "replay.log"
    )
    trl.close()
    theirs = trl.first["loss"]
    assert abs(loss - theirs) < TOLERANCE, f"{shape.name}: got losses of {loss} and {theirs}"
    found = load_file(folder / "gradient.safetensors")
    assert set(found) == set(slopes), f"{shape.name}: got gradients of {sorted(set(found) ^ set(slopes))} on one side"
    apart = sum(float((found[name] - slope).square().sum()) for name, slope in slopes.items()) ** 0.5
    length = sum(float(slope.square().sum()) for slope in slopes.values()) ** 0.5
    assert apart < TOLERANCE * length, f"{shape.name}: got gradients {apart / length:.1e} of their length apart"


def page(results: Mapping[str, Sequence[Round]], threads: int) -> str:
    """The tables of what has been measured with so many threads."""
    found = {name: results.get(f"{name} x{threads}", []) for name in SHAPES}
    lines = [
        "| optimizer step | tokens: unique / by path | TRL, s | Bough, s (generation, update) | TRL / Bough "
        "| share of the arithmetic limit |",
        "|---" * 6 + "|",
        *(step_line(SHAPES[name], rounds) for name, rounds in found.items() if rounds and SHAPES[name].trains),
        "",
        "| generation | Bough, tokens/s | `generate` | vLLM | Bough / `generate` | Bough / vLLM "
        "| vLLM compiled | Bough / vLLM compiled |",
        "|---" * 8 + "|",
        *(
            generation_line(SHAPES[name], rounds)
            for name, rounds in found.items()
            if rounds and not SHAPES[name].trains
        ),
        "",
        machine(threads),
    ]
    return "\n".join(lines)


def step_line(shape: Shape, rounds: Sequence[Round]) -> str:
    """One line of the first table."""
    tokens = f"{shape.tokens():,} / {shape.tokens(by_path=True):,}"
    seconds, generation, update = (
        show(median(rounds, "bough", part), ".2f") for part in ("seconds", "generation", "update")
    )
    shares = [each["bough"]["limit"] / each["bough"]["update"] for each in rounds if "bough" in each]
    share = show(statistics.median(shares) if shares else None, ".2f")
    times = f"**{show(ratio(rounds, 'trl'), '.2f')}**"
    trl = show(median(rounds, "trl"), ".2f")
    return f"| `{shape.name}` | {tokens} | {trl} | {seconds} ({generation}, {update}) | {times} | {share} |"


def generation_line(shape: Shape, rounds: Sequence[Round]) -> str:
    """One line of the second table."""
    rates = [show(median(rounds, side, "rate"), ",.0f") for side in ("bough", "generate", "vllm")]
    bold = [f"**{show(ratio(rounds, side), '.2f')}**" for side in ("generate", "vllm", "vllm-compiled")]
    compiled = show(median(rounds, "vllm-compiled", "rate"), ",.0f")
    return f"| `{shape.name}` | {' | '.join([*rates, *bold[:2], compiled, bold[2]])} |"


def median(rounds: Sequence[Round], side: str, part: str = "seconds") -> float | None:
    """The median of what a side said; "rate" is sampled tokens per second. None when it was never there."""
    said = [each[side] for each in rounds if side in each]
    values = [each["tokens"] / each["seconds"] if part == "rate" else each[part] for each in said]
    return statistics.median(values) if values else None


def ratio(rounds: Sequence[Round], side: str) -> float | None:
    """The median over rounds of how many times as long as ours a side took; None when it was never there."""
    ratios = [each[side]["seconds"] / each["bough"]["seconds"] for each in rounds if {side, "bough"} <= set(each)]
    return statistics.median(ratios) if ratios else None


def show(value: float | None, form: str) -> str:
    """A number, or a dash for one that was not measured."""
    return "-" if value is None else format(value, form)


if __name__ == "__main__":
    main()
