"""A small run with a judge that is trained beside the policy; its engine records requests, and can kill the run."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

from tests.methods.small import small
from tests.small import world

from bough.engine import Local
from bough.engine.engine import Completion, Engine, Request
from bough.engine.gated import GatedEngine
from bough.engine.model import ServedPolicy
from bough.methods.step_orlm import step_orlm
from bough.roles import JudgeWeights
from bough.train import Checkpointing, Run, Tasks

KILL_AT = "JUDGE_KILL_AT"
"""The variable with the number of the request at which the process kills itself."""


class Recorder(GatedEngine):
    """Appends the version of the weights and the seed of each request to a file, when it begins and when it ends."""

    def __init__(self, engine: Engine, path: Path) -> None:
        super().__init__(engine)
        self._path = path
        self._begun = 0

    async def generate(self, request: Request) -> Completion:
        self._begun += 1
        self._record("begin", request)
        if self._begun == int(os.environ.get(KILL_AT, "0")):
            os.kill(os.getpid(), signal.SIGKILL)
        completion = await super().generate(request)
        self._record("end", request)
        return completion

    def _record(self, what: str, request: Request) -> None:
        with self._path.open("a") as file:
            file.write(f"{what} {self.policy_version} {request.seed}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A local engine whose requests are recorded.

    Attributes:
        path: The file of the records.
    """

    path: str = "requests.txt"

    def build(self, policy: ServedPolicy) -> Recorder:
        return Recorder(Local(slots=8, deterministic=True).build(policy), Path(self.path))


def run() -> Run:
    """StepORLM: each step the judge verifies the paths, and learns from those verifications that are right."""
    made = small(step_orlm(world()))
    return made.replace(
        name="verified",
        hooks=tuple(replace(each, learning_rate=1e-2) for each in made.method.hooks),  # type: ignore[call-arg]
        models={"judge": JudgeWeights(engine=Recorded())},
        engine=Local(slots=8, deterministic=True),
        warmup=replace(made.world.warmup, epochs=1),
        evaluation=replace(made.world.evaluation, tasks=Tasks(split="test", count=1)),
        steps=3,
        batch_tasks=2,
        checkpointing=Checkpointing(every=1, keep=10),
    )
