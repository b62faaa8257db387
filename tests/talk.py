"""Talking to `bough` as a person does: words in; an exit status and words out."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SMALL = Path(__file__).with_name("small.py")
PLACES = (str(SMALL.parents[1]), os.environ.get("PYTHONPATH", ""))
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, PLACES)),
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}
"""Recipes of tests import from `tests`; no test asks a hub of others."""

ONE_STEP = ("steps=1", "warmup.epochs=1", "evaluation.tasks.count=2", "evaluation.every=100")
"""As little as a run of `SMALL` can do and still do everything."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What came of a command."""

    status: int
    out: str
    err: str

    def error(self, status: int) -> str:
        """The message of a command that must have failed in an orderly way."""
        assert self.status == status, (self.status, self.out, self.err)
        assert "Traceback" not in self.err, self.err
        assert self.err.count("error: ") == 1, self.err
        return self.err

    def fine(self) -> str:
        """What a command printed that must have succeeded."""
        assert self.status == 0, (self.status, self.out, self.err)
        return self.out


class Bough:
    """The commands, in one process of their own."""

    def __init__(self, package: Path | None = None) -> None:
        """Start it; `package` is a folder with a package `bough` other than the one under test."""
        server = Path(__file__).with_name("server.py")
        places = {} if package is None else {"PYTHONPATH": os.pathsep.join([str(package), ENVIRONMENT["PYTHONPATH"]])}
        self._process = subprocess.Popen(
            [sys.executable, str(server)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT | places,
        )
        self._modules: list[str] = []

    def __call__(
        self, *arguments: object, folder: Path, missing: Sequence[str] = (), largest_file: int | None = None
    ) -> Said:
        assert self._process.stdin
        assert self._process.stdout
        request = {"arguments": [str(argument) for argument in arguments], "folder": str(folder)}
        request |= {"missing": list(missing), "largest_file": largest_file}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        self._modules = answer.pop("modules")
        return Said(**answer)

    def imported(self, package: str) -> bool:
        """Whether the process had imported a package at the end of the last command."""
        return package in self._modules

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=30)
