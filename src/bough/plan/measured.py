"""The measured distributions of a run: the work of its trees, and the seconds of each stage.

    turns, new and sampled tokens        from the run's stored trees, as they are
    environment step                     the mean, from time/grow/env_s and the number of actions
    token in a pass of the engine        a third of its seconds on a thread in an update, which has two more products
    pass of the engine                   the rest of the engine's seconds, over time/grow/engine_passes
    rollout loop                         fitted, see `fit_loop_s`
    engine, update, publication, rest    from the metrics; medians over the steps of reinforcement learning

Metrics have the sum of an environment's step times, not each of them. So steps have the mean time, and the shape of
their distribution is a setting of the cluster (`Environment.variation`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

from bough.plan.workload import TreeWork, tree_work
from bough.store import RunDirectory, StoreError, read_metrics, stored_trees

MAX_TREES = 256
"""Maximum number of stored trees that a plan draws from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """What a plan takes from a run.

    Attributes:
        name: The run's name.
        trees: The work of stored trees; simulated trees are drawn from them.
        batch_tasks: Trees of a batch.
        optimizer_steps: Optimizer steps of an update.
        passes: Passes over a batch in an update.
        micro_tokens: Tokens of a chunk.
        recompute: Whether the backward pass recomputes activations.
        reference: Whether a reference policy runs over each batch.
        workers: Processes of the environment; 0 if steps ran in the rollout loop.
        engines: Processes of the engine; 0 if it ran in the rollout loop.
        ranks: Processes of the learner.
        staleness: The run's staleness.
        update_share: Update tokens over those of the trees; less than 1 where the packing shares more prefixes.
        step_s: Median wall seconds of a step.
        grow_s: Median seconds of growth.
        slots: Turns that each process of the engine decodes at a time.
        pass_s: Constant seconds of a pass of the engine.
        token_s: Seconds of each token of a pass.
        env_step_s: Seconds of an environment step.
        learn_s: Seconds of an update for each unique token of its trees, on all ranks together.
        sync_s: Seconds of a publication of weights.
        other_s: Seconds of a step besides growth, update and publication.
    """

    name: str
    trees: tuple[TreeWork, ...]
    batch_tasks: int
    optimizer_steps: int
    passes: int
    micro_tokens: int
    recompute: bool
    reference: bool
    workers: int
    engines: int
    ranks: int
    staleness: int
    update_share: float
    step_s: float
    grow_s: float
    slots: int
    pass_s: float
    token_s: float
    env_step_s: float
    learn_s: float
    sync_s: float
    other_s: float


def find_directory(target: str) -> RunDirectory:
    """The run directory at a path, or of that name in `runs/`.

    Raises:
        StoreError: when there is none.
    """
    place = Path(target)
    named = Path("runs") / target
    return RunDirectory.open(named if not place.exists() and named.exists() else place)


def model_folder(directory: RunDirectory) -> Path:
    """The folder with the configuration of a run's model.

    Raises:
        StoreError: when the run has none yet.
    """
    for folder in (directory.policy, directory.final):
        if (folder / "config.json").is_file():
            return folder
    raise StoreError(
        f"{directory.path}: got no config.json in policy/ or final/; need that of the model; name it with --model, or "
        "let the run end"
    )


def measure_stages(directory: RunDirectory) -> MeasuredRun:
    """Read the metrics and the trees of a run.

    Raises:
        StoreError: when the run has no step of reinforcement learning, no stored trees, or a staleness above 1.
    """
    config = cast("Mapping[str, Any]", directory.read_config())
    if (staleness := int(config["world"]["execution"]["staleness"])) > 1:
        raise StoreError(
            f"{directory.path}: got a run with staleness={staleness}, whose time/grow_s is a wait for trees that grow "
            "in the background; need staleness 0 or 1; measure a run with staleness=0"
        )
    if not directory.metrics.is_file():
        raise StoreError(f"{directory.path}: got no metrics.jsonl; need a run with steps; train it first")
    rows = [row for row in read_metrics(directory.metrics) if row.get("phase") == "rl" and "time/grow_s" in row]
    rows = [row for row in rows if "time/learn_s" in row]
    if not rows:
        raise StoreError(
            f"{directory.path}: got metrics without a step that samples and learns; need at least one; train with "
            "steps=4 or more"
        )
    # Processes start and caches fill in the first step.
    rows = rows[1:] if len(rows) > 2 else rows
    stored = stored_trees(directory.trees)[-MAX_TREES:]
    return _measured(config, rows, [work for work in map(tree_work, stored) if work.turns])


def _measured(config: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], trees: list[TreeWork]) -> MeasuredRun:
    if not any(tree.episodes for tree in trees):
        raise StoreError("got stored trees without a path that ended; need one; train more steps")
    world = config["world"]
    execution, optimizer = world["execution"], world["optimizer"]
    batch, workers = int(world["schedule"]["batch_tasks"]), int(execution["workers"])
    repeats = int(optimizer["minibatches"]) * int(optimizer["epochs"])
    unique = _mean(trees, "unique_tokens")

    def of(key: str, row: Mapping[str, Any]) -> float:
        value = float(cast("float", row.get(key, 0.0)))
        return value if math.isfinite(value) else 0.0

    def each(key: str) -> float:
        return median(of(key, row) for row in rows)

    acted = [max(of("speed/actions", row), 1.0) for row in rows]
    walls = [of("speed/sampled_tokens", row) / max(of("speed/tokens_per_s", row), 1e-9) for row in rows]
    overlap = int(execution["staleness"])
    spans = [(of("time/grow_s", row), of("time/learn_s", row), of("time/sync_s", row)) for row in rows]
    busy = [(max(grow, learn) if overlap else grow + learn) + sync for grow, learn, sync in spans]
    # The threads of a rank share its part of an update, but not the passes of an engine.
    threads = max(1, sum(name.startswith("time/learn/") for name in rows[-1]) // int(execution["ranks"]))
    learn_s = each("time/learn_s") * int(execution["ranks"]) / (unique * batch)
    computed = _mean(trees, "computed_tokens") / _mean(trees, "steps") * median(acted)
    passes = each("time/grow/engine_passes")
    engine = execution["engine"]
    # Only `Local` can run in the rollout loop. `Replicas` has the settings of its engines inside its own.
    engines = int(engine.get("count", engine.get("processes", 1)))
    slots = int(engine.get("engine", engine).get("slots", 256))
    engine_s = each("time/grow/engine_s") * max(1, engines)
    # An engine of other software counts no passes: all its time is that of tokens.
    token_s = min(learn_s * threads / 3, engine_s / computed) if passes else engine_s / computed
    return MeasuredRun(
        name=str(config["name"]),
        trees=tuple(trees),
        batch_tasks=batch,
        optimizer_steps=repeats,
        passes=int(optimizer["epochs"]),
        micro_tokens=int(optimizer["micro_tokens"]),
        recompute=bool(optimizer["recompute"]),
        reference=any("policy/kl_reference" in row for row in rows),
        workers=workers,
        engines=engines,
        ranks=int(execution["ranks"]),
        staleness=overlap,
        update_share=min(1.0, each("update/tokens") * int(optimizer["minibatches"]) / (unique * batch)),
        step_s=median(walls),
        grow_s=each("time/grow_s"),
        # The slots of `Local` are divided among its processes.
        slots=slots if "count" in engine else -(-slots // max(1, engines)),
        pass_s=max(0.0, engine_s - token_s * computed) / passes if passes else 0.0,
        token_s=token_s,
        env_step_s=median(
            of("time/grow/env_s", row) * max(1, workers) / count for row, count in zip(rows, acted, strict=True)
        ),
        learn_s=learn_s,
        sync_s=each("time/sync_s"),
        other_s=max(0.0, median(wall - used for wall, used in zip(walls, busy, strict=True))),
    )


def _mean(trees: Sequence[TreeWork], name: str) -> float:
    return max(sum(getattr(tree, name) for tree in trees) / len(trees), 1.0)
