"""The sockets at which a run listens: their address and ports, and who may use them."""

import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from bough.launch import LaunchError, listener, reached_at, signed, verified
from bough.launch.ray_connect import translated
from bough.launch.ray_process import RayProcess, Starter


def taken() -> socket.socket:
    """A socket that listens at a port below which another one is free, with some luck."""
    return socket.create_server(("127.0.0.1", 0))


def test_a_socket_takes_the_first_free_port_of_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    with taken() as first, taken() as second:
        ports = sorted(each.getsockname()[1] for each in (first, second))
        monkeypatch.setenv("BOUGH_PORTS", f"{ports[0]}-{ports[1]}")
        if ports[1] - ports[0] > 1:
            with listener("127.0.0.1") as found:
                assert ports[0] < found.getsockname()[1] < ports[1]
        monkeypatch.setenv("BOUGH_PORTS", f"{ports[0]}")
        with pytest.raises(LaunchError, match=rf"got BOUGH_PORTS={ports[0]}, whose 1 ports are all taken at 127.0.0.1"):
            listener("127.0.0.1")


@pytest.mark.parametrize("wrong", ["x", "0", "20-10", "1-70000", "1,2"])
def test_a_wrong_range_or_address_is_named(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUGH_PORTS", wrong)
    with pytest.raises(LaunchError, match=f"got BOUGH_PORTS='{wrong}'; need a range of ports from 1 to 65535"):
        listener("127.0.0.1")
    monkeypatch.delenv("BOUGH_PORTS")
    monkeypatch.setenv("BOUGH_BIND", "203.0.113.7")
    with pytest.raises(LaunchError, match=r"got BOUGH_BIND='203.0.113.7', port 0 .*need an address of this machine"):
        listener("198.51.100.1")


def test_the_address_is_that_of_the_run_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with listener("127.0.0.1") as found:
        assert found.getsockname()[0] == "127.0.0.1"
    monkeypatch.setenv("BOUGH_BIND", "127.0.0.2")
    with listener("198.51.100.1") as found:
        assert found.getsockname()[0] == reached_at("198.51.100.1") == "127.0.0.2"
    with listener("127.0.0.1") as found:
        assert found.getsockname()[0] == "127.0.0.1", "processes of this machine"
    monkeypatch.setenv("BOUGH_BIND", "0.0.0.0")
    assert reached_at("198.51.100.1") == "198.51.100.1"


def test_a_message_is_read_with_the_secret_only() -> None:
    message = signed(b"secret", b"content")
    assert verified(b"secret", message) == b"content"
    for secret, wrong in ((b"other", message), (b"", message), (b"secret", message[:-1]), (b"secret", b"")):
        with pytest.raises(PermissionError, match="got a message without the run's secret"):
            verified(secret, wrong)


class Actors:
    """What `RayProcess` uses of Ray: the actor is in a thread of this process."""

    def __init__(self, *, wrong: str = "") -> None:
        self.wrong, self.result, self.starter = wrong, dict[str, Any](), Starter()
        self.ray: Any = SimpleNamespace(
            wait=lambda each, **_: (each, []) if self.result else ([], each), get=self.get, kill=lambda _: None
        )

    def get(self, _: object, timeout: float) -> int:
        self.thread.join(timeout or None)
        if "error" in self.result:
            raise self.result["error"]
        return self.result["pid"]

    def start(self, host: str, port: int, token: bytes, answer: bytes, *given: str) -> object:
        def run() -> None:
            try:
                with socket.create_connection((host, port)) as neighbour:
                    neighbour.sendall(b"x" * len(token))
                wrong = bytes(len(answer)) if self.wrong else answer
                self.result["pid"] = self.starter.start(host, port, token, wrong, *given)
            except Exception as error:
                self.result["error"] = error

        self.thread = threading.Thread(target=run)
        self.thread.start()
        return self

    def process(self, entry: str = "os:close") -> RayProcess:
        actor = SimpleNamespace(start=SimpleNamespace(remote=self.start))
        return RayProcess(self.ray, lambda: actor, "127.0.0.1", entry, "engine 0")


def test_a_process_and_the_run_prove_themselves_to_each_other() -> None:
    actors = Actors()
    process = actors.process()
    channel = process.connect(60)
    assert process.pid == actors.starter._child.pid
    assert channel.recv(1) == b"", "the neighbour that connected first is not the process, which has ended"
    assert actors.starter._child.wait(60) == 0
    wrong = Actors(wrong="answer")
    with pytest.raises(LaunchError, match=r"got no proof from 127.0.0.1:.* that it is the run"):
        wrong.process().connect(60)
    assert not hasattr(wrong.starter, "_child"), "nothing was started, so nothing is unpickled"
    channel.close()


class OfTask(LaunchError):
    """As Ray raises the error of a task: of its cause's class, with a traceback of the other process as its text."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("a traceback")
        self.cause = cause


def test_a_port_that_a_firewall_closes_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = f"machine {socket.gethostname()}: got no connection to the run at 127.0.0.1:{port} .*; need that port"
    with pytest.raises(LaunchError, match=said) as refused:
        Starter().start("127.0.0.1", port, b"", b"", "os:close", "[]", ".")
    with pytest.raises(LaunchError, match=f"^a start: {said}.*reaches$"), translated("a start"):
        raise OfTask(refused.value)
