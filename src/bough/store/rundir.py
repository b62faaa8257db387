"""The run directory: paths and contents of the files of a run."""

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bough.store.atomic import StoreError, explain_unwritable, read_stored, write_json
from bough.store.checkpoint import Checkpoints
from bough.store.lock import holder
from bough.store.long_lists import move_lists, restore_lists

CONFIG = "config"
"""The key of the checksums of config.json in manifest.json."""

OWN_NAMES = re.compile(
    r"(config|manifest|status|loggers)\.json|(metrics|answers|alarms|faults|traces)\.jsonl|run\.lock|report\.html"
    r"|final(-.*)?|data|loggers|trees|logs|growing|checkpoints|policy|heldout"
)
"""What a run writes into its folder, see `RunDirectory`."""


def check_output(out: Path) -> None:
    """Refuse an output in place of a run's own file.

    Raises:
        StoreError: when it is one, or in one of a run's folders.
    """
    place = out.expanduser().resolve()
    for folder in place.parents:
        run = RunDirectory(path=folder)
        name = place.relative_to(folder).parts[0]
        if run.config.is_file() and run.manifest.is_file() and OWN_NAMES.fullmatch(name):
            raise StoreError(f"{out}: got a place of the run {folder} itself ({name}); need another file or folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """A run's folder. `create` makes a new one, `open` finds an existing one.

        config.json      every setting of the run, resolved; a run can be started again from it
        data/            long lists of config.json, such as rows of tasks
        manifest.json    versions, machine, checksums of files, data and config.json, changes
        run.lock         the process that writes here; see `owned`
        status.json      how the run ended; see `RunStatus`
        metrics.jsonl    one line a step
        alarms.jsonl     what the run reported: the step, what was found, what it means, what to do
        faults.jsonl     the faults of a step, with the number of episodes that each ended
        loggers.json     by logger, the id of its run and its newest step
        loggers/         files of loggers, such as those for TensorBoard
        trees/           the trees of each step: step_000012.safetensors and .jsonl
        answers.jsonl    the answers of models to the questions of appraisers, by the hash of the question
        logs/            what each process on a cluster printed
        traces.jsonl     spans, where tracing writes a file
        growing/         the finished trees of the present step, if the run stores them as they grow
        checkpoints/     for `bough resume`
        policy/          the policy without its weights: configuration, tokenizer
        final/           the trained policy; final-SEAT/ is that of a seat with weights of its own
        report.html      the report

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def create(cls, path: Path) -> "RunDirectory":
        """Make the folder of a new run.

        Raises:
            StoreError: when the directory is not empty, or cannot be created.
        """
        run = cls(path=path)
        with explain_unwritable(path):
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise StoreError(run._occupied())
            run.make_folders()
        return run

    @classmethod
    def open(cls, path: Path) -> "RunDirectory":
        """The folder of an existing run.

        Raises:
            StoreError: when there is none.
        """
        run = cls(path=path)
        if not run.config.is_file():
            raise StoreError(
                f"{path}: got {'no run directory' if path.exists() else 'a folder that does not exist'}; need one that "
                "`bough train` made, with a config.json in it"
            )
        return run

    def make_folders(self) -> None:
        """Make the folders that are missing: a copy from an object store has no empty ones.

        Raises:
            OSError: when the run's folder can't be written to.
        """
        for folder in (self.trees, self.checkpoints, self.policy):
            folder.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Remove the run and all its files; for a symbolic link, the files in its target."""
        folder = self.path.resolve()
        shutil.rmtree(folder, ignore_errors=True)
        if self.path.is_symlink():
            folder.mkdir(exist_ok=True)

    @property
    def config(self) -> Path:
        """Every setting of the run."""
        return self.path / "config.json"

    @property
    def data(self) -> Path:
        """The long lists of config.json; see `move_lists`."""
        return self.path / "data"

    @property
    def manifest(self) -> Path:
        """Versions, machine, and checksums of the data and of config.json."""
        return self.path / "manifest.json"

    @property
    def lock(self) -> Path:
        """The lock file; see `owned`."""
        return self.path / "run.lock"

    @property
    def metrics(self) -> Path:
        """The metrics, one line a step."""
        return self.path / "metrics.jsonl"

    @property
    def alarms(self) -> Path:
        """What the run reported; see `StepLines`."""
        return self.path / "alarms.jsonl"

    @property
    def faults(self) -> Path:
        """Why episodes failed; see `StepLines`."""
        return self.path / "faults.jsonl"

    @property
    def loggers(self) -> Path:
        """The folders of loggers, by name."""
        return self.path / "loggers"

    @property
    def logger_records(self) -> Path:
        """By logger, the id of its run and its newest step; see `RunLoggers`."""
        return self.path / "loggers.json"

    @property
    def trees(self) -> Path:
        """The trees of all steps; see `trees_of`."""
        return self.path / "trees"

    @property
    def logs(self) -> Path:
        """What each process on a cluster printed."""
        return self.path / "logs"

    @property
    def traces(self) -> Path:
        """The spans, a line each; see `bough.tracing`."""
        return self.path / "traces.jsonl"

    @property
    def growing(self) -> Path:
        """The trees of steps since the last checkpoint."""
        return self.path / "growing"

    @property
    def answers(self) -> Path:
        """The answers of models to appraisers; see `Answers`."""
        return self.path / "answers.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder for `Checkpoints`."""
        return self.path / "checkpoints"

    @property
    def policy(self) -> Path:
        """The policy without its weights: configuration, tokenizer."""
        return self.path / "policy"

    @property
    def final(self) -> Path:
        """The trained policy; exists once the run ends or a health check stops it."""
        return self.path / "final"

    def policy_of(self, seat: str) -> Path:
        """The configuration and tokenizer of a seat with weights of its own; `policy` for ""."""
        return self.policy / seat if seat else self.policy

    def final_of(self, seat: str) -> Path:
        """The trained policy of a seat with weights of its own; `final` for ""."""
        return self.path / f"final-{seat}" if seat else self.final

    @property
    def report(self) -> Path:
        """The report as HTML."""
        return self.path / "report.html"

    def trees_of(self, step: int) -> Path:
        """The file of a step's trees, for `write_trees`."""
        return self.trees / f"step_{step:06d}.safetensors"

    def write_config(self, config: Mapping[str, object]) -> None:
        """Write config.json atomically, and its checksums if there is a manifest."""
        config = cast("dict[str, object]", move_lists(config, self.data))
        manifest = self.read_manifest()
        if manifest:
            # The process may end between the two writes, so the manifest first holds both checksums.
            before = _checksums(read_stored(self.config))
            write_json(self.manifest, {**manifest, CONFIG: [before, _checksums(config)]})
        write_json(self.config, config)
        if manifest:
            self.write_manifest(manifest)

    def read_config(self) -> dict[str, object]:
        """The configuration from config.json.

        Raises:
            StoreError: when it is no JSON object, or was edited; names the edited fields. When a list of `data` is
                missing or was edited.
        """
        config = read_stored(self.config)
        now, known = _checksums(config), cast("list[dict[str, str]]", self.read_manifest().get(CONFIG, []))
        if known and now not in known:
            wrote = known[-1]
            changed = sorted(name for name in {*wrote, *now} if wrote.get(name) != now.get(name))
            raise StoreError(
                f"{self.config}: got a file whose {', '.join(changed)} changed after the run wrote it; need it as "
                f"written. Restore it; `bough resume {self.path} FIELD=VALUE` changes what a run may change"
            )
        return cast("dict[str, object]", restore_lists(config, self.data))

    def write_manifest(self, manifest: Mapping[str, object]) -> None:
        """Write manifest.json with the checksums of config.json, atomically."""
        write_json(self.manifest, {**manifest, CONFIG: [_checksums(read_stored(self.config))]})

    def read_manifest(self) -> dict[str, object]:
        """The content of manifest.json, see `describe`; {} without a manifest.

        Raises:
            StoreError: when it is no JSON object.
        """
        return read_stored(self.manifest) if self.manifest.is_file() else {}

    @contextlib.contextmanager
    def in_its_folder(self) -> Generator["RunDirectory"]:
        """Change to the directory in which the run started, so that relative paths in its settings resolve as before.

        Without a manifest, or when that directory no longer exists, the working directory does not change. It is
        process-wide, and is restored at the end.

        Yields:
            The run directory, with a path that is valid there.
        """
        began = Path(str(self.read_manifest().get("folder", ".")))
        if not began.is_dir() or began.resolve() == Path.cwd():
            yield self
            return
        here = RunDirectory(path=self.path.absolute())
        with contextlib.chdir(began):
            yield here

    def _occupied(self) -> str:
        if not self.config.is_file():
            return f"{self.path} exists and holds something else than a run; choose another name=..."
        if owner := holder(self.lock):
            return f"run directory {self.path} is in use by {owner}; choose another name=..., or wait for it"
        steps = Checkpoints(directory=self.checkpoints).steps()
        if not steps:
            return (
                f"run directory {self.path} exists and holds a run without a checkpoint; choose another name=..., "
                f"remove it, or start it again with `bough resume {self.path}`"
            )
        return (
            f"run directory {self.path} exists and holds a run at step {steps[-1]}; choose another name=..., or "
            f"continue it with `bough resume {self.path}`"
        )


def _checksums(config: Mapping[str, object]) -> dict[str, str]:
    """The checksum of each field of a configuration, independent of spaces and key order."""
    return {
        name: hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()
        for name, value in config.items()
    }
