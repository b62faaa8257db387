"""The recipe of Demystifying agentic RL: a warm-up on real trajectories, without an oracle, and what training has."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.small import world as small

from bough.env import Branching, State
from bough.methods.grpo_tcr import grpo_tcr
from bough.objective import Entropy, PpoClip
from bough.reward import Overlong
from bough.store import read_metrics
from bough.train import Warmup, start
from bough.tree import AgentAction, Outcome, action_text
from bough.worlds.frozenlake import FrozenLake

LAKE = FrozenLake(size=3, max_steps=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind(FrozenLake):
    """A lake whose oracle knows nothing."""

    branching = Branching.COPY

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        del state
        return None


def log(path: Path, count: int) -> Path:
    """Conversations of another agent that solves lakes; the last one is marked as failed and is all wrong."""
    rows: list[dict[str, object]] = []
    for task in LAKE.tasks("train", count, 0):
        state, messages = LAKE.start(task), [{"role": "system", "content": LAKE.instructions}]
        while plan := LAKE.plan(state):
            messages += [{"role": "user", "content": str(state.observation)}]
            messages += [{"role": "assistant", "content": action_text(plan[0])}]
            step = LAKE.step(state, plan[0])
            state = step.state
            if step.outcome is not Outcome.OPEN:
                break
        rows.append({"messages": messages, "task": task.id, "success": True})
    failed = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "sink"}]
    text = "\n".join(json.dumps(row) for row in [*rows, {"messages": failed, "success": False}])
    path.write_text(text + "\n")
    return path


def test_real_trajectories_are_imitated_before_the_recipe_trains(tmp_path: Path) -> None:
    world = small().replace(
        env=Blind(size=3, max_steps=6),
        warmup=Warmup(demonstrations=12, epochs=4, learning_rate=1e-2, batch_tokens=256),
        steps=1,
    )
    run = grpo_tcr(world, trajectories=str(log(tmp_path / "log.jsonl", 12)))
    rows = read_metrics(start(run, tmp_path, terminal=False).metrics)
    losses = [float(row["loss/total"]) for row in rows if row.get("phase") == "warmup"]
    assert len(losses) == 4
    assert losses[-1] < losses[0] / 2
    (learned,) = [row for row in rows if row.get("phase") == "rl"]
    assert "reward/overlong" in learned


def test_the_parts_of_the_recipe() -> None:
    world = small()
    run = grpo_tcr(world)
    assert run.world.warmup == world.warmup
    assert run.method.objective == PpoClip(low=0.2, high=0.28)
    assert run.world.regularizers == (Entropy(coefficient=0.001),)
    assert grpo_tcr(world, entropy=0.0).world.regularizers == ()
    assert run.world.rewards[-1] == Overlong(limit_tokens=12, buffer_tokens=2)
    assert run.method.normalizer.by == "path_tokens"
