"""Plans for 8, 64 and 512 devices from a short run of tool calls; writes the section of docs/plan.md.

    python bench/cluster_plans.py [--steps 3] [--write]

The run is GRPO on the world `ledger` with a small model. Turns, new tokens and sampled tokens are those of its trees;
the seconds of the rollout loop are fitted to its metrics. The plans are for Qwen3-1.7B, with the peak rates of NVIDIA's
data sheet of the H100 SXM, and an example price.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

from bough.explore import Chains
from bough.methods.grpo import grpo
from bough.plan import Cluster, Forecast, forecast, measure_stages, model_size
from bough.train import Checkpointing, start
from bough.units import GIB
from bough.view.numbers import percent, short
from bough.worlds.ledger import ledger
from machine import machine
from page import write

COUNTS = (8, 64, 512)
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
    "bandwidth_gbs": 3350.0,
    "link_gbs": 50.0,
    "price_per_hour": 2.5,
}
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
    size = model_size(QWEN3_1_7B, name="Qwen3-1.7B")
    lines: list[str] = []
    for title, schedule in TABLES.items():
        cluster = Cluster.model_validate(
            {
                "devices": DEVICES,
                "layout": {"generation": 0.75},
                "environment": {"workers_per_device": 16, "step_s": 0.25, "variation": 1.0},
                "schedule": {"staleness": 1, "batch_tasks_per_device": 8, **schedule},
            }
        )
        begin = time.perf_counter()
        found = forecast(measured, cluster, size, COUNTS)
        took_s = time.perf_counter() - begin
        lines += [f"**{title}**, simulated in {took_s:.0f} s:", "", *table(found), ""]
    lines += [
        f"Qwen3-1.7B, {size.parameters / 1e9:.2f}G parameters, on {DEVICES['kind']}; staleness 1; 16 environment "
        "workers and 8 trees of 8 episodes a device; environment steps of 0.25 s, log-normal with variation 1; "
        f"${DEVICES['price_per_hour']} a device and hour. Turns, tokens and the rollout loop are those of a run on "
        f"{machine(1)}.",
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.write:
        write("plan.md", "cluster-plans", text)


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
