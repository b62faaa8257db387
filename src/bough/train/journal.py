"""What a run writes down: metrics, trees, held-out results, checkpoints, and the report at the end."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, cast, runtime_checkable

from torch import Tensor

from bough.policy.policy import Policy
from bough.store import Checkpoints, Metrics, RunDirectory, Shelf, write_json, write_trees
from bough.store.atomic import explain_full_disk
from bough.train.deadrun import Pulse
from bough.train.heldout import Score
from bough.train.learner import Learner
from bough.train.reference import Reference
from bough.train.run import Run
from bough.tree import Credited
from bough.view import Live, wilson
from bough.view import Progress as ViewProgress


@dataclass(slots=True)
class Progress:
    """Where a run stands; with the weights and the optimizer, all that a checkpoint needs.

    Attributes:
        step: Steps done, over all phases.
        drawn: Training tasks drawn so far.
        pulse: Signs of life.
        entropies: By turn, over the steps of reinforcement so far: the sum of the tokens' entropies, nats, and their
            number.
    """

    step: int = 0
    drawn: int = 0
    pulse: Pulse = field(default_factory=Pulse)
    entropies: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])


@runtime_checkable
class Memory(Protocol):
    """Something that learns beside the policy, or remembers."""

    def state(self) -> Mapping[str, Tensor]:
        """Everything, on the CPU."""
        ...

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave, bit for bit."""
        ...


_Pairs: TypeAlias = Iterable[tuple[float, int]]


class Journal:
    """The pen of a run."""

    def __init__(self, run: Run, directory: RunDirectory, live: Live) -> None:
        self.directory = directory
        self._run = run
        self._live = live
        self._metrics = Metrics(directory.metrics, directory.tensorboard)
        self._checkpoints = Checkpoints(directory=directory.checkpoints, keep=run.saving.keep)
        self._row: dict[str, float | str] = {}

    def restore(
        self, learner: Learner, progress: Progress, reference: Reference, memories: Mapping[str, Memory]
    ) -> bool:
        """Go on from the newest whole checkpoint; False when there is none, and the run begins anew."""
        found = self._checkpoints.latest()
        for path, reason in found.skipped:
            self._live.say(f"skipped the damaged checkpoint {path.name}: {reason}")
        if found.checkpoint is None:
            self._metrics.resume_at(-1)
            return False
        checkpoint = found.checkpoint
        state = checkpoint.state()
        reference.restore(checkpoint.tensors("reference"))
        learner.policy.load_state(checkpoint.tensors("policy"))
        learner.load_state(checkpoint.tensors("optimizer"), updates=int(str(state["updates"])))
        for name, memory in memories.items():
            memory.load_state(checkpoint.tensors(name))
        progress.step, progress.pulse = checkpoint.step, Pulse(flat=int(str(state["flat"])))
        progress.drawn = int(str(state["drawn"]))
        progress.entropies = [(float(total), int(count)) for total, count in cast("_Pairs", state["entropies"])]
        self._metrics.resume_at(checkpoint.step)
        self._live.say(f"resumed after step {checkpoint.step}")
        return True

    def note(self, metrics: Mapping[str, float | str]) -> None:
        """Add to the row of the present step."""
        self._row |= metrics

    def note_score(self, step: int, score: Score) -> None:
        """Write down a held-out result, task by task."""
        low, high = wilson(sum(score.successes.values()), len(score.successes))
        self.note(
            {
                "heldout/success": score.rate,
                "heldout/low": low,
                "heldout/high": high,
                "heldout/turns": score.turns,
                "heldout/failed": float(score.failed),
                "heldout/truncated_context": float(score.truncated_context),
            }
        )
        path = heldout_file(self.directory, step)
        path.parent.mkdir(exist_ok=True)
        write_json(path, {"step": step, "temperature": self._run.heldout.temperature, "tasks": score.successes})

    def write_step(self, step: int, credited: Sequence[Credited] = (), *, last: bool = False) -> None:
        """Close the row of a step, and write its trees when it is their turn."""
        self._row.setdefault("phase", "rl")
        self._metrics.write(step, self._row)
        self._tell(step)
        self._row = {}
        every = self._run.saving.trees_every
        if credited and (last or (every and step % every == 0)):
            write_trees(self.directory.trees_of(step), list(credited))

    def shelf(self, step: int, round_number: int) -> Shelf:
        """Where the trees of a round of a step are kept until the next checkpoint."""
        return Shelf(directory=self.directory.growing / f"step_{step:06d}_{round_number}")

    def save(self, learner: Learner, progress: Progress, reference: Reference, memories: Mapping[str, Memory]) -> None:
        """Make a checkpoint."""
        tensors = {"policy": learner.policy.state(), "optimizer": learner.state(), "reference": reference.state}
        tensors |= {name: memory.state() for name, memory in memories.items()}
        numbers = {"drawn": progress.drawn, "entropies": progress.entropies, **asdict(progress.pulse)}
        self._checkpoints.save(progress.step, tensors, {"updates": learner.updates, **numbers})
        # Whoever goes on from here has learned from all trees so far.
        Shelf(directory=self.directory.growing).clear()

    def save_policy(self, policy: Policy) -> None:
        """Write the trained policy as a checkpoint that transformers, and `Pretrained`, load; all of it or nothing.

        Raises:
            StoreError: when the disk is full.
        """
        final = self.directory.final
        temporary = final.with_name(f"{final.name}.tmp-{os.getpid()}")
        needed_bytes = sum(weight.nbytes for weight in policy.weights().values())
        with explain_full_disk(final, needed_bytes):
            try:
                policy.save(temporary)
                shutil.rmtree(final, ignore_errors=True)
                temporary.rename(final)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)

    def _tell(self, step: int) -> None:
        run, phase = self._run, str(self._row["phase"])
        before = run.warmup_steps
        done, steps = (step, before) if phase == "warmup" else (step - before, run.steps)
        numbers = {name: value for name, value in self._row.items() if isinstance(value, float)}
        self._live.update(ViewProgress(step=done, steps=steps, phase=phase, metrics=numbers))


def heldout_file(directory: RunDirectory, step: int) -> Path:
    """Where the held-out result of a step lies."""
    return directory.path / "heldout" / f"step_{step:06d}.json"


def read_heldout(directory: RunDirectory) -> dict[int, dict[str, bool]]:
    """Every held-out result of a run: by step, success by task id."""
    found: dict[int, dict[str, bool]] = {}
    for path in sorted((directory.path / "heldout").glob("step_*.json")):
        data = json.loads(path.read_text())
        found[int(data["step"])] = data["tasks"]
    return found
