"""Checks of the machine's processors and memory, and of vLLM."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bough.cli.finding import Finding
from bough.units import GIB
from bough.version import install

SHARED_MEMORY = Path("/dev/shm")

SMALL_GIB = 1.0
"""Containers often have 64 MiB of shared memory, which is less than the weights of most models."""

VLLM_PYTHON = "VLLM_PYTHON"
"""The environment variable that names the Python of an environment with vLLM."""

LIMIT_S = 30.0
"""Longest time of another Python to look for vLLM, seconds."""


def devices() -> Iterator[Finding]:
    """The CPU, GPUs, compiler and ranks."""
    import torch

    from bough.kernels.build import compiler
    from bough.learner.cpu_workers import MOST_WORKERS, SMALL_WEIGHTS

    threads = torch.get_num_threads()
    text = (
        f"{threads} threads (threads=N changes it); up to {SMALL_WEIGHTS // 10**6}M weights "
        f"{min(threads, MOST_WORKERS)} share each batch, one thread an operation, since small products gain nothing "
        "from a second; above, all are inside operations (optimizer.cpu_workers=N changes it)"
    )
    yield Finding(about="cpu", text=text)
    yield from _gpus()
    try:
        yield Finding(about="compiler", text=f"{compiler()}; attention on a CPU runs compiled kernels")
    except OSError as error:
        yield Finding(about="compiler", text=f"{error}; attention on a CPU is slower; install g++ or clang++")
    yield _ranks()


def shared_memory() -> Finding:
    """The space for weights on their way to a vLLM server and to worker processes."""
    if not SHARED_MEMORY.is_dir():
        return Finding(
            about="shared memory", text="none; weights go to other processes by files in the temporary folder"
        )
    free_gib = shutil.disk_usage(SHARED_MEMORY).free / GIB
    text = f"{free_gib:.1f} GiB free in {SHARED_MEMORY}"
    if free_gib < SMALL_GIB:
        text += (
            "; Local(processes=N) needs room for the weights there (docker run --shm-size), vLLM takes other folders"
        )
    return Finding(about="shared memory", text=text)


def vllm() -> Finding:
    """Where vLLM is, if anywhere."""
    if find_spec("vllm") is not None:
        return Finding(about="vllm", text="in this Python: engine=Vllm")
    python = os.environ.get(VLLM_PYTHON)
    if not python:
        remedy = f"{install('vllm')}, or set VLLM_PYTHON to the Python of another environment"
        return Finding(about="vllm", text=f"not installed; do: {remedy}")
    probe = "import importlib.util as u; import sys; sys.exit(u.find_spec('vllm') is None)"
    try:
        done = subprocess.run([python, "-c", probe], timeout=LIMIT_S, check=False, capture_output=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(about="vllm", text=f"VLLM_PYTHON={python} does not run ({error}); correct it", good=False)
    if done.returncode:
        return Finding(about="vllm", text=f"VLLM_PYTHON={python} has no vLLM; correct it", good=False)
    return Finding(about="vllm", text=f"in another Python: engine='Vllm(python={python})'")


def _gpus() -> Iterator[Finding]:
    import torch

    from bough.batch.flex_attention import flex_fault

    count = torch.cuda.device_count()
    if not count:
        built = torch.version.cuda
        why = f"PyTorch is built for CUDA {built} and finds no GPU" if built else "PyTorch is built without CUDA"
        yield Finding(about="gpu", text=f"none ({why}); everything runs on the CPU")
        return
    for index in range(count):
        device = torch.device("cuda", index)
        cuda: Any = torch.cuda
        found = cuda.get_device_properties(device)
        bfloat16 = "bfloat16" if found.major >= 8 else "bfloat16 only emulated: take float32"
        fault = flex_fault(device)
        attention = "FlexAttention" if fault is None else f"no FlexAttention ({fault}), so updates make dense masks"
        size = f"{found.total_memory / GIB:.1f} GiB, compute capability {found.major}.{found.minor}"
        yield Finding(about=f"gpu {index}", text=f"{found.name}, {size}; {bfloat16}; {attention}")


def _ranks() -> Finding:
    import torch

    gpus = torch.cuda.device_count()
    if not gpus:
        return Finding(about="ranks", text="share the CPU's threads, by gloo")
    if gpus == 1:
        return Finding(about="ranks", text="1 has a GPU of its own")
    distributed: Any = torch.distributed
    if not (distributed.is_available() and distributed.is_nccl_available()):
        return Finding(about="ranks", text=f"{gpus} GPUs, but PyTorch has no NCCL; leave ranks=1", good=False)
    return Finding(about="ranks", text=f"up to {gpus} have a GPU of their own (ranks=N), by NCCL")
