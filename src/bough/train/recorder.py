"""Records a run: metrics, trees, held-out results, checkpoints, and the final report."""

import math
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from bough.config.config import EARLIER, ConfigError
from bough.hooks.hook_state import StateMismatch
from bough.learner.process_memory import process_bytes
from bough.loggers import RunLoggers
from bough.store import (
    Checkpoints,
    Copies,
    Endpoint,
    Metrics,
    PartialTrees,
    RunDirectory,
    StepLines,
    StoreError,
    read_metrics,
    write_json,
    write_trees,
)
from bough.store.atomic import explain_full_disk
from bough.store.heldout import heldout_file
from bough.train.checkpointable import Checkpointable
from bough.train.checks import with_checks
from bough.train.evaluation import HeldoutResult, mean_of
from bough.train.health import HealthState
from bough.train.run import Run
from bough.train.spent import Spent
from bough.train.summary import reward_functions
from bough.tree import Credited
from bough.units import GIB
from bough.usercode.origin import shorten
from bough.view import CUT_REMEDY, Alarm, Live, cut_share, failed_note, mean_interval, reward_findings, wilson
from bough.view import Progress as ViewProgress

if TYPE_CHECKING:
    from bough.policy.policy import Policy
    from bough.train.trained import TrainedPolicy


@dataclass(slots=True)
class TrainState:
    """The progress of a run; with weights and optimizer state, the content of a checkpoint.

    Attributes:
        step: Steps done, over all phases.
        drawn: Training tasks drawn so far.
        health: Counters of the health checks.
        spent: What the steps of reinforcement have cost.
    """

    step: int = 0
    drawn: int = 0
    health: HealthState = field(default_factory=HealthState)
    spent: Spent = field(default_factory=Spent)


MOST_FAULT = 300
"""Characters of a fault that are kept."""

MANY_CUT = 0.05
"""Fraction of cut actions from which the first evaluation with as many prints a warning line."""


class RunRecorder:
    """Records a run in its directory."""

    def __init__(
        self,
        run: Run,
        directory: RunDirectory,
        live: Live,
        endpoint: Endpoint | None = None,
        copies: Copies | None = None,
        loggers: RunLoggers | None = None,
    ) -> None:
        self._endpoint, self._copies, self._loggers = endpoint, copies, loggers
        self.directory = directory
        self._run = run
        self._live = live
        self._metrics = Metrics(directory.metrics)
        self._checkpoints = Checkpoints(directory=directory.checkpoints, keep=run.checkpointing.keep)
        self._row: dict[str, float | str] = {}
        self._trees = list[Credited]()
        self._faults: Counter[str] = Counter()
        self._alarms, self._fault_lines = StepLines(directory.alarms), StepLines(directory.faults)
        self._cuts_reported = False

    def restore(
        self, policies: Sequence["TrainedPolicy"], progress: TrainState, memories: Mapping[str, Checkpointable]
    ) -> bool:
        """Restore the newest complete checkpoint; False when the run has none and starts at its first step.

        Raises:
            StoreError: when all checkpoints are damaged; names each.
            ConfigError: when the state of a hook is that of another version.
        """
        found = self._checkpoints.latest()
        if found.checkpoint is None and found.skipped:
            damaged = "".join(f"\n  {path}: {reason}" for path, reason in found.skipped)
            raise StoreError(
                f"got no checkpoint that is whole; need one to go on from:{damaged}\n"
                "Restore one from a copy, or train from the first step under another name (name=...)"
            )
        for path, reason in found.skipped:
            self._live.say(f"skipped the damaged checkpoint {path.name}: {reason}")
        if found.checkpoint is None:
            self._drop_after(-1)
            return False
        checkpoint = found.checkpoint
        state = checkpoint.state()
        for each in policies:
            each.restore(checkpoint, state)
        for name, memory in memories.items():
            try:
                memory.load_state(checkpoint.tensors(name))
            except StateMismatch as error:
                raise ConfigError(f"{checkpoint.path.name}: {error}{EARLIER}") from error
        counters = {each.name: int(str(state.get(each.name, 0))) for each in fields(HealthState)}
        progress.step, progress.health = checkpoint.step, HealthState(**counters)
        progress.drawn = int(str(state["drawn"]))
        progress.spent = Spent(
            **{each.name: float(str(state.get(f"spent_{each.name}", 0.0))) for each in fields(Spent)}
        )
        self._drop_after(checkpoint.step)
        if missing := self._metrics.missing(checkpoint.step):
            self._live.say(
                f"metrics.jsonl has no rows of steps {missing}: they were lost; curves and the report lack them"
            )
        self._live.say(f"resumed after {self._run.named_step(checkpoint.step)}")
        return True

    def log(self, metrics: Mapping[str, float | str]) -> None:
        """Add to the row of the present step."""
        self._row |= metrics

    def alarm(self, alarm: Alarm, step: int | None = None) -> None:
        """Show an alarm, and keep it for the viewer.

        Args:
            alarm: The alarm.
            step: Its step; the one after the last written one by default.
        """
        self._live.say(f"warning: {alarm}")
        self._alarms.append(self._metrics.step + 1 if step is None else step, alarm.record())

    def log_faults(self, faults: Sequence[str]) -> None:
        """Add faults that ended episodes of the present step, one an episode."""
        self._faults.update(shorten(fault, MOST_FAULT) for fault in faults)

    def log_trees(self, credited: Sequence[Credited]) -> None:
        """Keep the trees of the step so far, for `write_step`; they replace those of the last call."""
        self._trees = [*credited]

    def log_evaluation(self, step: int, score: HeldoutResult) -> None:
        """Write a held-out result, task by task."""
        self.log({"heldout/failed": float(len(score.failures))})
        if score.failures:
            self.alarm(
                Alarm(
                    kind="held-out failed",
                    found=f"held-out: {failed_note(score.failures)}",
                    meaning="The held-out success is that of the other tasks",
                    action="Mend the cause where there are many",
                ),
                step,
            )
        path = heldout_file(self.directory, step)
        path.parent.mkdir(exist_ok=True)
        about = {"step": step, "temperature": self._run.world.evaluation.temperature}
        result = {"tasks": score.successes, "rewards": dict(score.rewards), "failures": dict(score.failures)}
        checks = {"checks": {name: dict(values) for name, values in score.checks.items()}} if score.checks else {}
        write_json(path, {**about, **result, **checks, "graded": score.graded})
        if not score.successes:
            return
        low, high = wilson(sum(score.successes.values()), len(score.successes))
        results = {"success": score.rate, "low": low, "high": high, "turns": score.turns, **score.actions.shares}
        results["truncated_context"] = float(score.truncated_context)
        if score.rewards:
            low, high = mean_interval([*score.rewards.values()])
            results |= {"reward": score.reward, "reward_low": low, "reward_high": high}
            results |= {f"reward_channel/{name}": mean for name, mean in score.channels.items()}
        for name, values in score.checks.items():
            low, high = mean_interval([*values.values()])
            results |= {f"check/{name}": mean_of(values), f"check_low/{name}": low, f"check_high/{name}": high}
        results |= reward_functions(score.trees)
        self.log({f"heldout/{name}": value for name, value in results.items()})
        many = score.actions.cut >= MANY_CUT * score.actions.actions
        if score.actions.cut and many and not self._cuts_reported:
            self._cuts_reported = True
            self.alarm(
                Alarm(
                    kind="held-out cut actions",
                    found=f"held-out: {cut_share(score.actions)}",
                    meaning="The environment gets beginnings of actions",
                    action=CUT_REMEDY,
                ),
                step,
            )

    def evaluated(self, step: int) -> bool:
        """Whether a step has a held-out result."""
        return heldout_file(self.directory, step).is_file()

    def write_step(self, step: int, *, last: bool = False) -> None:
        """Write the trees of a step when they are due, then its row: no row lacks its trees.

        If the step was stopped before its evaluation, its row exists, and the new values are added to it.
        """
        every = self._run.checkpointing.trees_every
        if self._trees and (last or (every and step % every == 0)):
            checks = self._run.world.evaluation.checks
            write_trees(self.directory.trees_of(step), with_checks(self._trees, checks) if checks else self._trees)
        amends = self._metrics.step == step
        if amends:
            self._metrics.amend(self._row)
            self._log_row(step, more=True)
        self._row.setdefault("phase", "rl" if step > self._run.warmup_steps else "start")
        if resident := process_bytes("VmRSS"):
            self._row["memory/process_gib"] = resident / GIB
        if not amends:
            self._metrics.write(step, self._row)
            self._log_row(step)
        if self._endpoint is not None:
            self._endpoint.update(step, self._row)
        self._tell(step)
        self._report_rewards(step)
        if self._faults:
            self._fault_lines.append(step, {"faults": dict(self._faults)})
        self._row, self._trees, self._faults = {}, [], Counter()

    def _log_row(self, step: int, *, more: bool = False) -> None:
        if self._loggers is not None:
            self._loggers.log(step, self._row, more=more)

    def partial_trees(self, step: int, round_number: int) -> PartialTrees:
        """The folder of a round's trees until the next checkpoint."""
        return PartialTrees(directory=self.directory.growing / f"step_{step:06d}_{round_number}")

    def save(
        self, policies: Sequence["TrainedPolicy"], progress: TrainState, memories: Mapping[str, Checkpointable]
    ) -> None:
        """Save a checkpoint."""
        self._save(policies, progress, memories)
        # A run resumed from this checkpoint needs none of the trees before it.
        PartialTrees(directory=self.directory.growing).clear()

    def stop(
        self,
        policies: Sequence["TrainedPolicy"],
        progress: TrainState,
        memories: Mapping[str, Checkpointable],
        *,
        last: bool,
        final: bool,
    ) -> None:
        """Write the step and a checkpoint of a run that is stopped; with `final` also the folder `final/`.

        When the weights are not finite, there is no checkpoint, and `final/` gets those of the newest one. With `last`
        the step is the last one.
        """
        try:
            if self._metrics.step < progress.step:
                self.write_step(progress.step, last=last)
            step = progress.step
            if not all(each.learner.state.finite() for each in policies):
                step = self._load_newest(policies)
            else:
                self._save(policies, progress, memories)
            if final:
                self.save_policies(policies)
            written = f"checkpoint and {self.directory.final} exist" if final else "checkpoint exists"
            self._live.say(f"stopped after {self._run.named_step(step)}; its {written}")
        except StoreError as error:
            # The caller raises the reason for the stop; this error is only reported.
            self._live.say(f"stopped; the weights could not be written: {error}")

    def _save(
        self, policies: Sequence["TrainedPolicy"], progress: TrainState, memories: Mapping[str, Checkpointable]
    ) -> None:
        tensors = {name: group for each in policies for name, group in each.tensors.items()}
        tensors |= {name: memory.state() for name, memory in memories.items()}
        numbers: dict[str, object] = {"drawn": progress.drawn, **asdict(progress.health)}
        numbers |= {f"spent_{name}": value for name, value in asdict(progress.spent).items()}
        numbers |= {name: number for each in policies for name, number in each.numbers.items()}
        # A copy has the checkpoints that this one replaces.
        self._finish_copy()
        self._checkpoints.save(progress.step, tensors, numbers)
        if self._copies is not None:
            self._copies.start()

    def copy_rest(self) -> None:
        """Copy the files since the last checkpoint, and wait for the copy."""
        self._finish_copy()
        if self._copies is not None:
            self._copies.start()
            self._finish_copy()

    def _finish_copy(self) -> None:
        """Wait for the copy of the last checkpoint, and report its fault."""
        if self._copies is None:
            return
        if fault := self._copies.finish():
            self._live.say(f"warning: {fault}")
        self.log({"checkpoint/failed_copies": float(self._copies.failures)})

    def _load_newest(self, policies: Sequence["TrainedPolicy"]) -> int:
        """Load the weights of the newest checkpoint into the policies; returns its step.

        Raises:
            StoreError: when there is none.
        """
        newest = self._checkpoints.latest().checkpoint
        if newest is None:
            raise StoreError("got weights that are not finite, and no checkpoint")
        for each in policies:
            each.load(newest)
        return newest.step

    def _drop_after(self, step: int) -> None:
        """Remove rows, held-out results and trees of later steps, which will be computed again."""
        self._metrics.resume_at(step)
        for lines in (self._alarms, self._fault_lines):
            lines.drop_after(step)
        if self._loggers is not None:
            self._loggers.begin(step)
        for path in (*heldout_file(self.directory, 0).parent.glob("step_*"), *self.directory.trees.glob("step_*")):
            found = re.match(r"step_(\d+)\.", path.name)
            if found and int(found[1]) > step:
                path.unlink()

    def save_policies(self, policies: Sequence["TrainedPolicy"]) -> None:
        """Write the trained policies as checkpoints that transformers and `Pretrained` load.

        Raises:
            StoreError: when the disk is full; a policy is written with all its files or not at all.
        """
        for each in policies:
            self._save_policy(each.policy, self.directory.final_of(each.role.name))

    def _save_policy(self, policy: "Policy", final: Path) -> None:
        temporary = final.with_name(f"{final.name}.tmp-{os.getpid()}")
        needed_bytes = sum(weight.nbytes for weight in policy.weights().values())
        with explain_full_disk(final, needed_bytes):
            try:
                policy.save(temporary)
                shutil.rmtree(final, ignore_errors=True)
                temporary.rename(final)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)

    def _report_rewards(self, step: int) -> None:
        """Report the channels that rose without success, and the checks that fell, over the window that ends here.

        Each is reported once a run.
        """
        window, done = self._run.health.reward_window, step - self._run.warmup_steps
        if self._row["phase"] != "rl" or not window or done % window:
            return
        for found in reward_findings(read_metrics(self.directory.metrics), window):
            if found.step == step:
                self.alarm(found.alarm, step)

    def _tell(self, step: int) -> None:
        run, phase = self._run, str(self._row["phase"])
        ends = run.warmup_steps if phase == "warmup" else run.last_step
        shown = {name: value for name, value in self._row.items() if isinstance(value, float)}
        numbers = {name: value for name, value in shown.items() if not math.isnan(value)}
        self._live.update(ViewProgress(step=step, steps=run.last_step, ends=ends, phase=phase, metrics=numbers))
