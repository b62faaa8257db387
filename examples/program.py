"""Train the model of an agent that was written for OpenAI's API: `bough train examples/program.py`."""

from pathlib import Path

from bough.engine import Sampling
from bough.env import ProgramTasks
from bough.explore import Program
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Run, Schedule, Tasks, World

HERE = Path(__file__).parent
AGENT = HERE / "sums_agent.py"


def run() -> Run:
    """GRPO on the agent's episodes."""
    world = World(
        name="sums",
        env=ProgramTasks(file=str(HERE / "sums.jsonl")),
        policy=Tiny(layers=1, width=64, heads=4, vocab_tokens=300, context_tokens=512),
        limits=Limits(turns=2),
        sampling=Sampling(max_tokens=3),
        optimizer=Optimizer(learning_rate=2e-3),
        schedule=Schedule(steps=20, batch_tasks=8),
        tasks=Tasks(split="train", count=64),
        evaluation=Evaluation(tasks=Tasks(split="test", count=6), every=10),
    )
    return world.run(explorer=Program(agent=f"{AGENT}:agent", reward=f"{AGENT}:reward", n=8))
