"""Addresses at which no Ray cluster answers."""

import os
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.missing import need

from bough.launch import ClusterGone, LaunchError, Ray
from bough.launch.ray_connect import check_cluster
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
    process = RayProcess(ray, lambda: pytest.fail("no actor can start"), "127.0.0.1", "os:nothing")
    with pytest.raises(ClusterGone):
        process.connect(1)
    process.kill()
