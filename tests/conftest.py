"""Shapes are checked at run time, in tests only, where a function or a dataclass states any."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from tests.hub_server import Hub, running_hub
from tests.shapes import calls, check_shapes
from tests.talk import Bough


def _stating() -> Iterator[str]:
    """Modules that state shapes. All others would only be slower: what they state is checked by pyright."""
    package = find_spec("bough")
    assert package is not None
    assert package.origin is not None
    root = Path(package.origin).parent
    for file in root.rglob("*.py"):
        if "from jaxtyping import" in file.read_text():
            parts = file.relative_to(root.parent).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__")


# Before anything imports bough: only modules that are imported under the hook are checked.
check_shapes(list(_stating()))

# No test asks a hub of others; those with the fixture `hub` ask their own. The hub's client reads it at its import.
os.environ["HF_HUB_OFFLINE"] = "1"

# How long an example takes says more about what else the machine does than about the code; benchmarks measure speed.
# The same examples everywhere, unless more are asked for.
settings.register_profile("bough", deadline=None, derandomize="BOUGH_FUZZ" not in os.environ)
settings.load_profile("bough")

# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# `asyncio.run` sets a handler of Ctrl-C that holds its task. Python 3.11 looks handlers up among the constants of
# `signal`, and the error of each lookup has the task's result as text: for trees that is half of a test's time.
_find_constant = vars(signal)["_int_to_enum"]
vars(signal)["_int_to_enum"] = lambda value, kind: _find_constant(value, kind) if isinstance(value, int) else value

# These tensors are small, and threads that wait for each other cost more than they save.
torch.set_num_threads(1)


# What is imported stays: searches of it for cycles would be a tenth of the collection.
gc.disable()


def pytest_runtest_setup() -> None:
    """The shapes in the first calls of a test are checked."""
    calls.clear()


def pytest_collection_finish() -> None:
    """The tests themselves are no garbage: a collection need not search them, nor all that they import.

    Searches are rarer than Python's default, at which they would be a tenth of the tests.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Counts what was skipped, by reason; most reasons end with the command that installs what is missing."""
    skipped = Counter(
        (str(each.longrepr[2]).removeprefix("Skipped: "), "file" if isinstance(each, pytest.CollectReport) else "test")
        for each in terminalreporter.stats.get("skipped", [])
    )
    if skipped:
        terminalreporter.section("skipped")
    for (reason, what), count in skipped.most_common():
        terminalreporter.write_line(f"{count:5} {what}{'s'[: count > 1]}: {reason}")


@pytest.fixture(scope="session")
def sandbox() -> None:
    """This machine can run a sandbox."""
    # The hook above comes first: this imports bough.
    from tests.missing import need

    need("sandbox")


@pytest.fixture(scope="session")
def bough() -> Iterator[Bough]:
    """`bough("train", "grpo_frozenlake", folder=tmp_path)` runs a command and returns what it said."""
    process = Bough()
    yield process
    process.close()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub on this machine, whose cache is empty; its address is in the environment."""
    with running_hub(monkeypatch, tmp_path / "cache") as running:
        yield running


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a C++ compiler: attention runs on PyTorch's operations."""
    _clear_kernels()
    monkeypatch.setenv("CXX", "no-such-compiler")
    yield
    _clear_kernels()


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`bough.kernels` switched off: everything runs on PyTorch's operations."""
    _clear_kernels()
    monkeypatch.setenv("BOUGH_KERNELS", "off")
    yield
    _clear_kernels()


def _clear_kernels() -> None:
    """Have the next call load the kernels again."""
    from bough.kernels.build import load_library
    from bough.kernels.linear import prefers_onednn
    from bough.kernels.paged_attention import paged_kernel
    from bough.kernels.tree_attention import tree_kernel

    for loaded in (load_library, prefers_onednn, paged_kernel, tree_kernel):
        loaded.cache_clear()
