"""The results of a run: settings, metrics, held-out results, report, trained policy."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bough.store import Checkpoints, RunDirectory, StoreError, read_metrics
from bough.store.atomic import explain_unwritable
from bough.store.heldout import read_heldout, read_heldout_results
from bough.store.lock import holder
from bough.train.run import Run
from bough.train.run_report import write_run_report
from bough.train.stored_settings import load_run
from bough.view import HtmlFile, MetricTable, headline, reward_table
from bough.viewer.run_results import panels

if TYPE_CHECKING:
    from bough.policy.policy import Policy


@dataclass(frozen=True, kw_only=True)
class Result:
    """The results of a run, read from its directory; the run may still be in progress in another process.

    Attributes:
        directory: The run's folder; see `bough.store.RunDirectory` for its content.
    """

    directory: Path

    @cached_property
    def run(self) -> Run:
        """Every setting of the run.

        Raises:
            ConfigError: when config.json names pieces or fields that do not exist.
        """
        return load_run(self._files)

    @property
    def metrics(self) -> MetricTable:
        """One row a step; empty before the first step."""
        path = self._files.metrics
        return MetricTable(read_metrics(path) if path.is_file() else ())

    def reward_table(self) -> str:
        """The reward channels as a table: means, the groups they divide, and whether they order paths as success does.

        Raises:
            StoreError: before the first step of reinforcement learning.
        """
        table = reward_table(self.metrics, self.run.health.reward_window)
        if not table:
            raise StoreError(f"{self.directory}: got no step with rewards; need a run after its warm-up")
        return table

    @property
    def heldout(self) -> dict[int, dict[str, bool]]:
        """By step of an evaluation and id of a held-out task, whether its path succeeded."""
        return read_heldout(self._files)

    @property
    def success(self) -> float | None:
        """Success rate of the last held-out evaluation, in [0, 1]; None before the first."""
        results = self.heldout
        last = results[max(results)] if results else {}
        return sum(last.values()) / len(last) if last else None

    @property
    def heldout_rewards(self) -> dict[int, dict[str, float]]:
        """By step of an evaluation and id of a held-out task, the reward of its path."""
        return {step: dict(each.rewards) for step, each in read_heldout_results(self._files).items()}

    @property
    def reward(self) -> float | None:
        """Mean reward of the last held-out evaluation; None before the first, and without rewards."""
        results = self.heldout_rewards
        last = results[max(results)] if results else {}
        return sum(last.values()) / len(last) if last else None

    @property
    def report(self) -> HtmlFile:
        """The report; a notebook displays it, `.open()` opens it in a browser.

        That of a run that trains or was killed is written now, from what is on disk.

        Raises:
            StoreError: when there is no run, its files are damaged, or the report cannot be written.
        """
        files = self._files
        if holder(files.lock) or not files.report.is_file():
            with explain_unwritable(files.report):
                write_run_report(files)
        return HtmlFile(files.report)

    @cached_property
    def policy(self) -> "Policy":
        """The policy of the newest complete checkpoint, loaded on first use. Warns when a newer one is damaged.

        Raises:
            StoreError: when there is no whole checkpoint.
        """
        latest = Checkpoints(directory=self._files.checkpoints).latest()
        if latest.checkpoint is None:
            raise StoreError(f"{self.directory}: got no whole checkpoint; need a run that has saved one")
        for path, problem in latest.skipped:
            warnings.warn(f"{path}: {problem}; the policy is that of step {latest.checkpoint.step}", stacklevel=2)
        policy = self.run.world.policy.build((), self._files.policy)
        policy.load_state(latest.checkpoint.tensors("policy"))
        return policy

    def __str__(self) -> str:
        return f"{self.directory}: {headline(panels(self._files))}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.metrics.to_html()}"

    @property
    def _files(self) -> RunDirectory:
        return RunDirectory(path=self.directory)
