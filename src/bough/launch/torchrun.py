"""The processes that torchrun started, of which this is one."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchrun:
    """The environment variables that torchrun sets in each process.

    Attributes:
        rank: Which process this is.
        world_size: How many there are.
        host: The machine of rank 0, as torchrun names it.
        port: The port of its store there.
    """

    rank: int
    world_size: int
    host: str
    port: int

    @staticmethod
    def found() -> "Torchrun | None":
        """The processes, if torchrun started this one."""
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return None
        return Torchrun(
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
            host=os.environ["MASTER_ADDR"],
            port=int(os.environ["MASTER_PORT"]),
        )
