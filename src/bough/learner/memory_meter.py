"""Measures memory: every allocation of tensors, and the peak of a process."""

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
"""mallopt's parameter for the size from which memory is mapped separately, and that size."""


def return_freed() -> None:
    """Return large CPU tensors to the system as soon as they are freed, where the C library is glibc.

    Otherwise glibc keeps freed memory, and holes between the tensors of an update are a third of all its memory. It
    costs time, because the system clears new memory: half as much again for tensors of a megabyte.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BYTES)


class MemoryMeter:
    """Peak memory since the meter was created: on CUDA of all tensors, elsewhere of this process."""

    def __init__(self, device: torch.device, counted: int) -> None:
        """Start measuring.

        Args:
            device: The policy's.
            counted: Bytes of existing tensors that are included in the peak.
        """
        self._device = device
        # Memory that is already free must not hide later allocations.
        gc.collect()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the kernel counts the peak from now
        self._before, self._begin = process_bytes("VmHWM"), process_bytes("VmRSS") - counted

    def peak(self) -> int | None:
        """Bytes; None when the system does not provide the peak."""
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        now = process_bytes("VmHWM")
        return now - self._begin if now > self._before else None


def allocations(do: Callable[[], object], device: torch.device, *, mark: str = "") -> tuple[Floats, int]:
    """Record the memory allocations of tensors.

    Args:
        do: The measured function.
        device: Device whose memory is counted.
        mark: Name of a `record_function` in it.

    Returns:
        [E], bytes held after each allocation and release, from 0; index of the event where the last `record_function`
        named `mark` began.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise it logs every start and stop
    gc.collect()  # garbage from earlier code must not be freed during the measurement
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
