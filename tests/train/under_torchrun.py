"""A script that torchrun starts: a run and its resumption, whose metrics rank 0 prints at its end."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.train.test_rank_runs import rows

from bough.objective import Loss, LossInputs, Need, PpoClip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """An objective of the user."""

    needs = frozenset[Need]()

    def __call__(self, columns: LossInputs) -> Loss:
        return PpoClip()(columns)


if __name__ == "__main__":
    print(json.dumps(rows(Path(sys.argv[1]), 1, objective=Mine())))
