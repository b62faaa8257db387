"""A warm-up on a chat template whose prompt opens thinking teaches calls that the parser finds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bough.context import ToolCalls
from bough.engine import Local, Sampling
from bough.env import call, tools_env
from bough.learner import Optimizer
from bough.policy import Pretrained, Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World, read_heldout, start

ROWS = [{"prompt": "ring", "number": number, "split": "train" if number < 4 else "test"} for number in range(20)]


class Tower:
    """How often its bell was rung."""

    def __init__(self) -> None:
        self.rung = 0


def tower(row: Mapping[str, Any]) -> Tower:
    del row
    return Tower()


def ring(state: Tower) -> str:
    """Ring the bell."""
    state.rung += 1
    return "ok"


def rung(state: Tower, row: Mapping[str, Any]) -> bool:
    del row
    return state.rung == 1


def plan(state: Tower, row: Mapping[str, Any]) -> list[Any] | None:
    del row
    return None if state.rung else [call(ring), "done"]


def test_sixteen_of_sixteen_after_a_warm_up(tmp_path: Path) -> None:
    env = tools_env(tools=[ring], state=tower, tasks=ROWS, reward=rung, plan=plan)
    texts = ["ring() [ring()] Tools: Ring the bell. A call: TOOL(ARGUMENT='VALUE') result: ok done </think> <think>"]
    made = Tiny(layers=1, width=32, heads=2, vocab_tokens=400, context_tokens=256).build(texts * 4)
    made.save(tmp_path / "model")
    (template,) = (tmp_path / "model").glob("*.jinja")
    written = template.read_text()
    assert written.count("'<|assistant|>'") == 1
    template.write_text(written.replace("'<|assistant|>'", "'<|assistant|><think>'"))
    policy = Pretrained(path=str(tmp_path / "model"))
    world = World(
        name="bells",
        env=env,
        policy=policy,
        parser=ToolCalls(),
        limits=Limits(turns=3),
        sampling=Sampling(max_tokens=16),
        optimizer=Optimizer(learning_rate=1e-3),
        warmup=Warmup(demonstrations=4, epochs=10, learning_rate=3e-2, batch_tokens=1024),
        schedule=Schedule(steps=0, batch_tasks=2),
        execution=Execution(engine=Local(slots=16), threads=1),
        tasks=Tasks(split="train", count=4),
        evaluation=Evaluation(tasks=Tasks(split="test", count=16), temperature=0),
    )
    directory = start(world.run(), tmp_path / "run", terminal=False)
    (found,) = read_heldout(directory).values()
    assert sum(found.values()) == len(found) == 16
