"""Plans for 8, 64 and 512 devices from a short run of tool calls, and how an update gains from ranks.

    python bench/cluster_plans.py [--steps 3] [--write]      # writes the section of docs/plan.md, and its drawing

The run is GRPO on the world `ledger` with a small model. Turns, new tokens and sampled tokens are those of its trees;
the seconds of the rollout loop are fitted to its metrics. The plans are for Qwen3-1.7B, with the peak rates of NVIDIA's
data sheet of the H100 SXM, and an example price. The drawing has the speed of an update on 2 to 512 ranks, as a share
of that many times the speed of one rank, for several numbers of trees a rank.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from bough.explore import Chains
from bough.methods.grpo import grpo
from bough.plan import (
    Cluster,
    DeviceRates,
    Devices,
    Efficiency,
    Forecast,
    MeasuredRun,
    ModelSize,
    forecast,
    measure_stages,
    model_size,
)
from bough.train import Checkpointing, start
from bough.units import GIB
from bough.view.numbers import percent, short
from bough.worlds.ledger.preset import ledger
from curve import write_curves
from machine import machine
from page import DOCS, write

COUNTS = (8, 64, 512)
RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
TREES = (16, 8, 4, 2)
QWEN3_1_7B = {
    "model_type": "qwen3",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
}
DEVICES = {
    "kind": "H100 SXM",
    "count": 512,
    "memory_gib": 80.0,
    "peak_tflops": 989.0,
    "learner_tflops": 67.0,
    "bandwidth_gbs": 3350.0,
    "link_gbs": 50.0,
    "price_per_hour": 2.5,
}
REACHED = {"learner": 0.6}
"""Products in float32 are far from the limit of the memory; a guess until a run is measured there."""
MICRO_TOKENS = 8192
TABLES = {
    "One rollout loop, as Bough has": {"loops": 1},
    "32 rollout loops": {"loops": 32},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/plan.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        run = grpo(ledger()).replace(explorer=Chains(n=8), steps=arguments.steps, name="ledger")
        run = run.replace(checkpointing=Checkpointing(trees_every=1))
        measured = measure_stages(start(run, Path(folder), terminal=False))
    measured = replace(measured, micro_tokens=MICRO_TOKENS)
    size = model_size(QWEN3_1_7B, name="Qwen3-1.7B")
    lines: list[str] = []
    if arguments.write:
        shares = {f"{trees} a rank": [(each, 0.0) for each in scaling(measured, size, trees)] for trees in TREES}
        write_curves(DOCS / "plan_ranks.svg", RANKS, shares, unit="ranks (SIMULATED)", times="")
    for title, schedule in TABLES.items():
        cluster = Cluster.model_validate(
            {
                "devices": DEVICES,
                "layout": {"generation": 0.75},
                "efficiency": REACHED,
                "environment": {"workers_per_device": 16, "step_s": 0.25, "variation": 1.0},
                "schedule": {"staleness": 1, "batch_tasks_per_device": 8, **schedule},
            }
        )
        begin = time.perf_counter()
        found = forecast(measured, cluster, size, COUNTS)
        took_s = time.perf_counter() - begin
        lines += [f"**SIMULATED: {title}**, simulated in {took_s:.0f} s:", "", *table(found), ""]
    lines += [
        f"Qwen3-1.7B, {size.parameters / 1e9:.2f}G parameters, on {DEVICES['kind']}; updates in float32, "
        f"{REACHED['learner']} of {DEVICES['learner_tflops']:g} TFLOP/s, chunks of {MICRO_TOKENS} tokens; "
        "staleness 1; 16 environment "
        "workers and 8 trees of 8 episodes a device; environment steps of 0.25 s, log-normal with variation 1; "
        f"${DEVICES['price_per_hour']} a device and hour. Turns, tokens and the rollout loop are those of a run on "
        f"{machine(1)}.",
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.write:
        write("plan.md", "cluster-plans", text)


def scaling(run: MeasuredRun, model: ModelSize, trees: int) -> list[float]:
    """The speed of an update on each of `RANKS`, in percent of as many times the speed of one rank."""
    found = list[float]()
    for ranks in RANKS:
        batch = [run.trees[number % len(run.trees)] for number in range(trees * ranks)]
        one, several = (
            DeviceRates(
                devices=Devices(**DEVICES),
                efficiency=Efficiency(**REACHED),
                model=model,
                learner_model=model.in_dtype("float32"),
                run=run,
                devices_per_replica=1,
                ranks=count,
                sharded=False,
                in_turn=False,
            ).update_s(batch)
            for count in (1, ranks)
        )
        found.append(100 * one / (ranks * several))
    return found


def table(found: list[Forecast]) -> list[str]:
    rows: dict[str, list[str]] = {
        "replicas + ranks": [f"{each.division.replicas} + {each.division.ranks}" for each in found],
        "engine: weights, KV cache, GiB": [f"{gib(each.engine.weights)}, {gib(each.engine.cache)}" for each in found],
        "learner: weights, gradients, moments, activations, GiB": [
            ", ".join(
                map(
                    gib,
                    (each.learner.weights, each.learner.gradients, each.learner.optimizer, each.learner.activations),
                )
            )
            for each in found
        ],
        "new tokens/s": [short(each.new_tokens_per_s) for each in found],
        "sampled tokens/s": [short(each.sampled_tokens_per_s) for each in found],
        "learned tokens/s": [short(each.learned_tokens_per_s) for each in found],
        "bottleneck": [f"**{each.bottleneck}**" for each in found],
        "episodes/hour": [short(each.episodes_per_hour) for each in found],
        "cost of 1,000 episodes": [f"${each.cost:.3f}" for each in found],
    }
    for stage in ("engine", "environment", "loop", "learner"):
        rows[f"{stage} busy"] = [percent(each.busy[stage]) if each.busy else "-" for each in found]
    head = [
        f"| SIMULATED | {' | '.join(f'{each.devices} devices' for each in found)} |",
        "|---" * (len(found) + 1) + "|",
    ]
    return [*head, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())]


def gib(size: float) -> str:
    return short(size / GIB)


if __name__ == "__main__":
    main()
