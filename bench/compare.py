"""Credit rules, ways to grow trees, or rewards, compared on a task at equal numbers of sampled tokens, over some seeds.

    python bench/compare.py credit --seeds 5 --jobs 2
    python bench/compare.py growth --seeds 5 --jobs 2
    python bench/compare.py long --recipe grpo --on search_long --seeds 5 --jobs 2
    python bench/compare.py rewards --recipe grpo --on search_long env.evidence_reward=0 --seeds 5 --jobs 2
    python bench/compare.py staleness steps=60 --seeds 3 --jobs 2
    python bench/compare.py processes steps=60 policy.heads=2 --seeds 3

All methods of a seed start from the same weights: the policy after the base recipe's warm-up, or with `--start` that of
one folder for all seeds. Each then trains for the
same number of steps with the base recipe's settings and its own credit rule (and critic, or explorer, where it has
one). Trees grow as in the methods of the same names, each with the credit of its paper. With `rewards` GRPO on the
world's own reward is held against whole methods that pay more; a judge of steps is simulated. Methods sample
unlike numbers of tokens in a step, so each is read off where it had sampled as many as the run with the fewest in all,
between its two nearest evaluations. With `staleness` every batch is as old as its bound allows: an update waits until
the batches of all later steps that may grow are complete. With `processes` GRPO runs in one process, with ranks,
workers and engines on Ray, and with vLLM, by the Python that VLLM_PYTHON names. Prints the tables of `bough compare`;
runs that are there already are read, not repeated.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bough.cli.find import find_run
from bough.compare import Contestant, Reading, compare_runs
from bough.config import override
from bough.credit import Archer, Empg, Gae, Gigpo, Grpo, Hgpo, Salt, StepGrpo, TreePs, TurnPpo, rloo
from bough.critics import UtteranceCritic, ValueHead
from bough.engine import Local, Replicas, Vllm
from bough.explore import Forks
from bough.launch import Ray
from bough.objective import Reinforce, Tis, ValueClip, add
from bough.policy import Pretrained
from bough.rollout import Rollouts
from bough.store import RunDirectory, run_status
from bough.train import Run, Warmup, load_run, start
from bough.train.growing import GrowingBatches
from bough.worlds.search import SearchQa
from machine import machine
from simulated_judge import SimulatedJudge


def _critic(run: Run) -> Run:
    return run.replace(critic=ValueHead(), objective=add(run.method.objective, [ValueClip()]))


def _grpo(run: Run) -> Run:
    return run.replace(credit=Grpo())


def _rloo(run: Run) -> Run:
    return run.replace(credit=rloo())


def _gae(run: Run) -> Run:
    return _critic(run).replace(credit=Gae())


def _turn_ppo(run: Run) -> Run:
    return _critic(run).replace(credit=TurnPpo())


def _archer(run: Run) -> Run:
    critic = UtteranceCritic(layers=2, steps=2, batch_turns=32, capacity_turns=20_000)
    return run.replace(hooks=(critic,), credit=Archer(), objective=Reinforce())


def _gigpo(run: Run) -> Run:
    return run.replace(credit=Gigpo())


def _hgpo(run: Run) -> Run:
    return run.replace(credit=Hgpo())


def _salt(run: Run) -> Run:
    return run.replace(credit=Salt())


def _empg(run: Run) -> Run:
    return run.replace(credit=Empg(), sampling=replace(run.world.sampling, entropies=True))


def _tree_ps(run: Run) -> Run:
    return run.replace(credit=TreePs(), explorer=Forks(chains=2, draws=3))


def _like(method: str) -> Callable[[Run], Run]:
    """The explorer and the credit of a method."""

    def change(run: Run) -> Run:
        theirs = find_run(method, run.world).method
        return run.replace(explorer=theirs.explorer, credit=theirs.credit)

    return change


def _whole(method: str) -> Callable[[Run], Run]:
    """A method as it is, on the same policy."""
    return lambda run: find_run(method, run.world).replace(seed=run.seed, name=run.name)


def _judged(accuracy: float) -> Callable[[Run], Run]:
    """CAPO with a judge of steps whose verdicts are true with this probability."""

    def change(run: Run) -> Run:
        return _whole("capo")(run).replace(appraisers=(SimulatedJudge(accuracy=accuracy),))

    return change


def _paid_evidence(run: Run) -> Run:
    """GRPO with the search environment's reward for documents found."""
    env = run.world.env
    assert isinstance(env, SearchQa)
    return _grpo(run).replace(env=replace(env, evidence_reward=1.0))


def _stale(staleness: int, *, corrected: bool) -> Callable[[Run], Run]:
    """GRPO on batches of earlier weights, with or without truncated importance sampling."""

    def change(run: Run) -> Run:
        grpo = _grpo(run).replace(staleness=staleness)
        return grpo.replace(objective=Tis(objective=grpo.method.objective)) if corrected else grpo

    return change


def _on_ray(run: Run) -> Run:
    """GRPO with two environment workers and two engines on a Ray cluster of this machine, and two ranks."""
    place, engine = Ray(cpus=0.2), run.world.execution.engine
    assert isinstance(engine, Local)
    several = Replicas(engine=engine, placement=place)
    return _grpo(run).replace(workers=2, worker_placement=place, engine=several, ranks=2)


def _on_vllm(run: Run) -> Run:
    """GRPO with completions of a vLLM server; vLLM needs heads of 32 elements or more on a CPU."""
    return _grpo(run).replace(engine=Vllm(python=os.environ.get("VLLM_PYTHON"), cache_gib=1, entropies=True))


METHODS: dict[str, dict[str, Callable[[Run], Run]]] = {
    "credit": {
        "GRPO": _grpo,
        "RLOO": _rloo,
        "GAE": _gae,
        "Turn-PPO": _turn_ppo,
        "GiGPO": _gigpo,
        "HGPO": _hgpo,
        "SALT": _salt,
        "EMPG": _empg,
        "TreePS": _tree_ps,
    },
    "growth": {
        "GRPO": _grpo,
        "Tree-GRPO": _like("tree_grpo"),
        "TreePO": _like("treepo"),
        "TreeRL": _like("treerl"),
        "TreeRPO": _like("tree_rpo"),
        "TreePS": _like("tree_ps"),
        "ARPO": _like("arpo"),
        "LATR": _like("latr"),
    },
    "long": {
        "GRPO": _grpo,
        "GiGPO": _gigpo,
        "HGPO": _hgpo,
        "SALT": _salt,
        "Turn-PPO": _turn_ppo,
        "ArCHer": _archer,
        "Tree-GRPO": _like("tree_grpo"),
        "TreeRL": _like("treerl"),
        "ARPO": _like("arpo"),
        "TreePS": _like("tree_ps"),
    },
    "rewards": {
        "GRPO": _grpo,
        "documents found": _paid_evidence,
        "StepGrpo": lambda run: run.replace(credit=StepGrpo(discount=0.99, std="batch")),
        "Robo-Dopamine, plans": _whole("robo_dopamine(oracle=true)"),
        "ExploRS": _whole("explors"),
        "CAPO, judge 60 %": _judged(0.6),
        "CAPO, judge 80 %": _judged(0.8),
        "iStar": _whole("istar"),
        "IGPO": _whole("igpo(field=answers)"),
        "InfoPO": _whole("info_po"),
    },
    "staleness": {
        "GRPO": _grpo,
        **{
            f"staleness {staleness}{', Tis' if corrected else ''}": _stale(staleness, corrected=corrected)
            for staleness in (1, 2, 4, 8)
            for corrected in (True, False)
        },
    },
    "processes": {"GRPO": _grpo, "Ray": _on_ray, "vLLM": _on_vllm},
}
"""The first of each is what the others are held against."""


def main() -> None:
    arguments = _arguments()
    if arguments.one:
        _train(arguments, *arguments.one)
        return
    seeds = range(arguments.seeds)
    methods = {name: change for name, change in METHODS[arguments.what].items() if name in arguments.methods}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        if not arguments.start:
            list(pool.map(lambda seed: _process(arguments, "warmup", seed), seeds))
            todo = [(method, seed) for seed in seeds for method in methods]
        list(pool.map(lambda each: _process(arguments, *each), todo))
    base = f"{arguments.recipe} --on {arguments.on}" if arguments.on else arguments.recipe
    print(f"`{' '.join([base, *arguments.changes])}`\n")
    runs = [
        Contestant(method=method, world=base, seed=seed, directory=_directory(arguments, method, seed).path)
        for method, seed in todo
    ]
    print(compare_runs(runs, Reading(against=next(iter(methods)))))
    threads = load_run(_directory(arguments, "GRPO", 0)).world.execution.threads
    print(f"\n{arguments.seeds} seeds, {arguments.jobs} runs at a time; {machine(threads)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=METHODS, help="what differs")
    parser.add_argument("changes", nargs="*", help="fields of the base recipe to change, as for `bough train`")
    parser.add_argument("--recipe", default="grpo_sokoban", help="the base recipe, or a method with --on")
    parser.add_argument("--on", help="a world")
    parser.add_argument("--start", type=Path, help="the folder of the policy that all runs start from")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="all, or some; GRPO is always among them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--out", type=Path, default=Path("runs/compare"))
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "SEED"), help=argparse.SUPPRESS)
    arguments = parser.parse_intermixed_args()
    known = METHODS[arguments.what]
    arguments.methods = ["GRPO", *(arguments.methods or known)]
    if unknown := {*arguments.methods} - {*known}:
        parser.error(f"--methods: got {sorted(unknown)}; need some of {list(known)}")
    return arguments


def _directory(arguments: argparse.Namespace, method: str, seed: int | str) -> RunDirectory:
    return RunDirectory(path=arguments.out / f"{method.lower()}_seed{seed}")


def _process(arguments: argparse.Namespace, method: str, seed: int) -> None:
    """Train one method on one seed, unless that is done, as a process of its own."""
    directory = _directory(arguments, method, seed)
    if directory.config.is_file() and run_status(directory.path).state == "done":
        return
    command = [
        sys.executable,
        __file__,
        arguments.what,
        *arguments.changes,
        f"--recipe={arguments.recipe}",
        f"--out={arguments.out}",
        *([f"--on={arguments.on}"] if arguments.on else []),
        *([f"--start={arguments.start}"] if arguments.start else []),
    ]
    # One thread each: two processes that share two cores must not have four.
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--one", method, str(seed)], check=True, stdout=sys.stderr, env=alone)


def _train(arguments: argparse.Namespace, method: str, seed: str) -> None:
    name = _directory(arguments, method, seed).path.name
    run = override(find_run(arguments.recipe, arguments.on), [*arguments.changes, f"seed={seed}", f"name={name}"])
    if method == "warmup":
        run = run.replace(steps=0)
    else:
        warm = arguments.start or _directory(arguments, "warmup", seed).final
        run = METHODS[arguments.what][method](run.replace(policy=Pretrained(path=str(warm)), warmup=Warmup()))
    if arguments.what == "staleness":
        GrowingBatches.take = _take_oldest
    start(run, arguments.out)


async def _take_oldest(self: GrowingBatches, step: int) -> Rollouts:
    """The trees of a step once all batches that were started are complete."""
    for each in self.steps:
        await self.complete(each)
    return self.pop(step)


if __name__ == "__main__":
    main()
