"""Memory that is asked for: step by step by tensors, and the most by a process."""

import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from bough.learner.process_memory import process_bytes
from bough.tree import Floats

MMAP_THRESHOLD, LARGE_BYTES = -3, 128 * 1024
"""mallopt's name for the size from which memory is asked of the system by itself, and that size."""


def return_freed() -> None:
    """Give large tensors on a CPU back to the system as soon as they are freed, where the C library is glibc.

    Otherwise it keeps what is freed, and the holes between tensors of an update are a third of all its memory. It costs
    time, as memory from the system is cleared: half as much again for tensors of a megabyte.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BYTES)


class Gauge:
    """The most memory that was taken: on CUDA by tensors, elsewhere by this process since the gauge was made."""

    def __init__(self, device: torch.device, counted: int) -> None:
        """Begin.

        Args:
            device: The policy's.
            counted: Bytes of tensors that are there already, and are to be counted.
        """
        self._device = device
        # What is free already must not hide what is taken later.
        gc.collect()
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the kernel counts the peak from now
        self._before, self._begin = process_bytes("VmHWM"), process_bytes("VmRSS") - counted

    def peak(self) -> int | None:
        """Bytes; None when the system does not tell."""
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        now = process_bytes("VmHWM")
        return now - self._begin if now > self._before else None


def allocations(do: Callable[[], object], device: torch.device, *, mark: str = "") -> tuple[Floats, int]:
    """Watch what tensors ask for.

    Args:
        do: What is watched.
        device: Whose memory is counted.
        mark: Name of a `record_function` in it.

    Returns:
        [E], bytes held after each time that memory was asked for or given back, from 0; at which of them the last part
        began that is called `mark`.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or it tells of every start and stop
    gc.collect()  # what others left behind must not be given back meanwhile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        do()
    seen: Any = profiler
    steps, marked = list[int](), 0
    for event in sorted(seen.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if mark and event.name() == mark:
            marked = len(steps) - 1
        elif event.name() == "[memory]" and event.device_type().name.lower() == device.type:
            steps.append(event.nbytes())
    return np.cumsum(steps, dtype=np.float64), marked
