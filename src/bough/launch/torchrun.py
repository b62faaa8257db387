"""The processes that torchrun started, of which this is one."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchrun:
    """What torchrun tells each process that it starts.

    Attributes:
        rank: Which process this is.
        count: How many there are.
        host: The machine of rank 0, as torchrun names it.
        attempt: How often torchrun has started all processes again.
    """

    rank: int
    count: int
    host: str
    attempt: int

    @staticmethod
    def found() -> "Torchrun | None":
        """The processes, if torchrun started this one."""
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return None
        return Torchrun(
            rank=int(os.environ["RANK"]),
            count=int(os.environ["WORLD_SIZE"]),
            host=os.environ["MASTER_ADDR"],
            attempt=int(os.environ["TORCHELASTIC_RESTART_COUNT"]),
        )
