"""Addresses at which no Ray cluster answers."""

import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.missing import need

from bough.launch import ClusterGone, LaunchError, Ray
from bough.launch.ray_connect import check_cluster, clusters_elsewhere
from bough.launch.ray_process import RayProcess

need("ray")

STARTS = "from bough.launch import Ray; Ray(address={!r}).reserve('engine', 1)"


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nothing_listens_is_named_at_once(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"{scheme}127.0.0.1:{closed.getsockname()[1]}"
    begin = time.monotonic()
    with pytest.raises(LaunchError, match=f"Ray.address: got '{address}', where nothing listens .*ray start --head"):
        Ray(address=address).reserve("engine", 1)
    assert time.monotonic() - begin < 100, "most of it imports Ray"


def test_the_address_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, why in (("banana", "need 'auto'"), ("127.0.0.1:1", "where nothing listens")):
        monkeypatch.setenv("RAY_ADDRESS", value)
        with pytest.raises(LaunchError, match=f"Ray.address: got None, with RAY_ADDRESS='{value}'.*{why}"):
            Ray().reserve("engine", 1)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_a_listener_that_never_answers(kind: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        program = STARTS.format(f"127.0.0.1:{silent.getsockname()[1]}")
        process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, env=os.environ)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("connecting to the Ray cluster at 127.0.0.1:")
        time.sleep(2)
        begin = time.monotonic()
        process.send_signal(kind)
        assert process.wait(timeout=30) != 0
        assert time.monotonic() - begin < 50
        process.stderr.close()


def test_a_cluster_that_is_gone_is_named_before_ray_is_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"127.0.0.1:{there.getsockname()[1]}"
        ray: Any = SimpleNamespace(get_runtime_context=lambda: SimpleNamespace(gcs_address=address))
        check_cluster(ray)
    with pytest.raises(ClusterGone, match=f"got no answer from the Ray cluster at {address}.*bough resume"):
        check_cluster(ray)
    process = RayProcess(ray, lambda: pytest.fail("no actor can start"), "127.0.0.1", "os:nothing", "engine 0")
    with pytest.raises(ClusterGone):
        process.connect(1)
    process.kill()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a cluster with a folder of its own, short as sockets need it."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with tempfile.TemporaryDirectory(prefix="r") as folder, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        ray = [sys.executable, "-m", "ray.scripts.scripts"]
        head = [*ray, "start", "--head", f"--port={port}", "--num-cpus=1", f"--temp-dir={folder}"]
        subprocess.run([*head, "--include-dashboard=false"], check=True, capture_output=True, timeout=200)
        try:
            (address,) = [each for each in clusters_elsewhere() if each.endswith(f":{port}")]
            yield address
        finally:
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if folder.encode() in (process / "cmdline").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)


WATCH = """
import json, os, sys
from bough.launch import ClusterGone, Ray, check_connected, places
launcher = Ray(address=sys.argv[1], cpus=0.1).reserve("engine", 1)
check_connected()
print(json.dumps(places()), flush=True)
print("there", flush=True)
sys.stdin.readline()
try:
    check_connected()
except ClusterGone as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(1)  # Ray would wait for the head
"""


def test_a_cluster_with_its_own_folder_is_named_and_its_head_is_watched(elsewhere: str) -> None:
    """Ray would start a second one beside it, and end the process a minute after the head's death."""
    begun = subprocess.run(
        [sys.executable, "-c", STARTS.format(None)], check=False, capture_output=True, text=True, timeout=200
    )
    assert f", and {elsewhere} on this machine has a folder of its own (`ray start --temp-dir`)" in begun.stderr, begun
    assert "need its address, as this would start a second cluster beside it" in begun.stderr
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    watching = subprocess.Popen([sys.executable, "-c", WATCH, elsewhere], text=True, **pipes)
    assert watching.stdout is not None
    found: dict[str, Any] = json.loads(watching.stdout.readline())
    (node,) = found["cluster"]["nodes"]
    assert (found["host"], node["host"], node["resources"]) == (platform.node(), socket.gethostname(), {"CPU": 1})
    assert found["cluster"]["address"] == elsewhere
    assert found["cluster"]["processes"] == {"engine": [node["address"]]}
    assert watching.stdout.readline() == "there\n"
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"/gcs_server\0" in command and f"gcs_server_port={elsewhere.rpartition(':')[2]}\0".encode() in command:
                os.kill(int(process.name), signal.SIGKILL)
    time.sleep(1)
    _, err = watching.communicate("go on\n", timeout=200)
    assert f"on the Ray cluster at {elsewhere}" in err
    assert f"got no answer from the Ray cluster at {elsewhere}" in err
    assert "continue the run with `bough resume`" in err
