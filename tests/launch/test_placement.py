"""Where processes start: on this machine; on a cluster without the extra; what a cluster file may say."""

import importlib
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.toys import Toy

from bough.cli.cluster import execution_changes
from bough.config import ConfigError
from bough.engine import Local, Replicas
from bough.env import Workers
from bough.launch import LaunchError, Ray, ThisMachine, fork_server
from bough.learner.rank_processes import LaunchedRanks
from bough.worlds.frozenlake import FrozenLake

ENTRY = "tests.launch.echo:echo"
"""In a file of its own: a fork server imports all of its module."""


def test_a_process_answers_and_ends_when_it_is_killed() -> None:
    launcher = ThisMachine().reserve("test", 1)
    process = launcher.launch(ENTRY, 0)
    channel = process.connect(120)
    channel.settimeout(120)
    channel.sendall(b"hello")
    assert channel.recv(100) == f"hello {process.pid}".encode()
    assert process.kill() == -9
    assert channel.recv(100) == b""
    channel.close()
    launcher.close()


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forks on Linux alone")
def test_a_fork_server_that_ends_or_hangs_is_replaced(kind: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = ThisMachine().reserve("test", 1)
    first = launcher.launch(ENTRY, 0)
    assert first.pid, "the server has answered"
    server = fork_server._servers[ENTRY.partition(":")[0]]._process
    os.kill(server.pid, kind)
    monkeypatch.setattr(fork_server, "SERVER_S", 0.2)
    with first.connect(120) as channel:
        assert first.kill() == -9, "its status is unknown"
        assert channel.recv(100) == b""
    server.wait()
    monkeypatch.undo()
    second = launcher.launch(ENTRY, 0)
    with second.connect(120) as channel:
        channel.settimeout(120)
        channel.sendall(b"hello")
        assert channel.recv(100) == f"hello {second.pid}".encode()
    second.kill()


def test_a_process_ends_when_its_input_closes() -> None:
    process: Any = ThisMachine().reserve("test", 1).launch(ENTRY, 0)
    channel = process.connect(120)
    channel.settimeout(120)
    channel.sendall(b"hello")
    channel.recv(100)
    process._child.stdin.close()
    assert process._child.wait() == -9
    channel.close()


def test_ray_without_the_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str, package: str | None = None) -> Any:
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ImportError, match=r"pip install 'bough-rl\[ray\]'"):
        Ray().reserve("environment worker", 2)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"strategy": "pack"}, "Ray.strategy: got 'pack'; need one of 'PACK', 'SPREAD'"),
        ({"cpus": -1.0}, "Ray.cpus: got -1.0; need 0 to 1"),
        ({"gpus": 1.5}, "Ray.gpus: got 1.5; need 0 to 1, or a whole number"),
        ({"cpus": 0.0}, "Ray: got cpus=0 and gpus=0; need one of them above 0"),
        ({"wait_s": 0.0}, "Ray.wait_s: got 0.0; need"),
        ({"wait_s": math.nan}, "Ray.wait_s: got nan; need"),
        ({"address": "banana"}, "Ray.address: got 'banana'; need 'auto'"),
        ({"address": "http://a:1"}, "Ray.address: got 'http://a:1'; need 'auto'"),
    ],
)
def test_settings_of_ray_are_checked(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Ray(**fields)


def test_a_launch_error_is_an_error_of_the_run() -> None:
    from bough.cli.failure import FAILURES

    assert LaunchError.__name__ in FAILURES


def test_a_cluster_file_changes_the_execution(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text('[devices]\ncount = 8\n[execution]\nworkers = 2\nworker_placement = "Ray(cpus=0.5)"\nranks = 4\n')
    assert execution_changes(path) == [
        "execution.workers=2",
        "execution.worker_placement=Ray(cpus=0.5)",
        "execution.ranks=4",
    ]
    assert execution_changes(None) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("workers = 2\n", r"got no table \[execution\]"),
        ("[execution]\n", r"got no table \[execution\]"),
        ("[execution\n", "got no TOML"),
        ("[execution]\nworkers = [1]\n", r"execution.workers: got \[1\]; need a number"),
        ("[execution]\nranks = 2.0\n", r"execution.ranks: got 2.0; need a whole number; correct the file"),
        ("[execution]\nranks = true\n", r"execution.ranks: got true; need a whole number"),
        ('[execution]\nshard = "yes"\n', r'execution.shard: got "yes"; need true or false'),
        ('[execution]\nrank_deadline_s = "9"\n', r'execution.rank_deadline_s: got "9"; need a number'),
    ],
)
def test_a_cluster_file_that_is_wrong_says_why(text: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=error):
        execution_changes(path)


def test_importing_bough_imports_no_ray() -> None:
    """Nor does the settings' package."""
    import subprocess
    import sys

    program = "import sys, bough.launch, bough.cli.app, bough.train; print('ray' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (lambda: Workers(env=FrozenLake(), count=1_000_000), "environment workers: got 1,000,000 processes on this"),
        (lambda: Replicas(count=1_000_000).build(Toy()), "engines: got 1,000,000 processes on this machine with"),
        (lambda: LaunchedRanks(1_000_001), "learner ranks: got 1,000,000 processes .* a core; set a lower number, or"),
        (lambda: Local(processes=10**6, slots=10**6).build(Toy()), "Local.processes: got 1,000,000 processes"),
    ],
)
def test_more_processes_than_the_machine_can_run_are_refused(start: Callable[[], object], text: str) -> None:
    with pytest.raises(LaunchError, match=text):
        start()
