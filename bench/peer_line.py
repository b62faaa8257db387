"""How bench/peers.py speaks with a library in a process of its own: a line of JSON asks for a round, one answers."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path


class Line:
    """The library's end. What libraries print goes to the error stream, so that nothing gets between the answers."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def ask(self) -> int | None:
        """The number of the next round; None when there is none."""
        line = sys.stdin.readline()
        return int(line) if line.strip() else None

    def tell(self, answer: dict[str, float]) -> None:
        """Answer."""
        print(json.dumps(answer), file=self._out)

    def serve(self, rounds: Callable[[int], dict[str, float]]) -> None:
        """Say that all is set up, then answer until nothing more is asked."""
        self.tell({})
        while (seed := self.ask()) is not None:
            self.tell(rounds(seed))


def arguments() -> argparse.Namespace:
    """What every side is told: folder of the model, shape of the work, threads, paths to replay, to compile."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--shape", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--compiled", action="store_true")
    return parser.parse_args()
