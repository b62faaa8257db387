"""What a figure was measured on, in a line: goes below every table."""

import os

import torch

from bough.store import describe


def machine(threads: int | None = None) -> str:
    """Processor, accelerator, cores, threads (those of this process, unless given), versions."""
    found = describe()
    packages = found["packages"]
    assert isinstance(packages, dict)
    accelerators = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join(
        [
            str(found["processor"]),
            *accelerators,
            f"{os.cpu_count()} cores",
            f"{threads or torch.get_num_threads()} threads",
            f"Python {found['python']}",
            *(f"{name} {packages[name]}" for name in ("torch", "transformers")),
        ]
    )
