"""A process on a Ray cluster: an actor starts it, and it connects to the run."""

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bough.launch.listen import BIND, PORTS, listener
from bough.launch.placement import LaunchError, start_child
from bough.launch.ray_connect import check_cluster, translated
from bough.launch.remote_logs import keep_log

TOKEN_BYTES = 32
POLL_S = 0.2

CONNECT_S = 20.0
"""Longest wait of a process for a connection to the run, seconds: a firewall may drop it without an answer."""

ANSWER_S = 60.0
"""Longest wait for the run's proof, seconds."""


class RayProcess:
    """A process that an actor starts."""

    def __init__(
        self, ray: Any, make_actor: Callable[[], Any], host: str, entry: str, name: str, wait_s: float = 60.0
    ) -> None:
        """Have an actor start it; an error is raised by `connect`.

        Args:
            ray: The module, connected.
            make_actor: Starts the actor, a `Starter`.
            host: The address at which the process reaches this one.
            entry: As of `Launcher.launch`.
            name: Of the process, for its log.
            wait_s: Longest wait for it to start, seconds: its machine may be lost.
        """
        self._name, self._wait_s = name, wait_s
        self._ray, self._actor, self._started = ray, None, None
        self._channel: socket.socket | None = None
        self._pid: int | None = None
        self._token, self._answer = secrets.token_bytes(TOKEN_BYTES), secrets.token_bytes(TOKEN_BYTES)
        self._listener: socket.socket | None = None
        self._address = host
        self._fault: LaunchError | None = None
        try:
            check_cluster(ray)
            self._listener = listener(host)
            self._listener.settimeout(POLL_S)
            port = self._listener.getsockname()[1]
            self._address = f"{host}:{port}"
            with translated("an actor did not start"):
                self._actor = make_actor()
                self._started = self._actor.start.remote(
                    host, port, self._token, self._answer, entry, json.dumps(sys.path), os.getcwd()
                )
        except LaunchError as error:
            self._fault = error

    @property
    def pid(self) -> int | None:
        """The process id on its machine, once it has connected."""
        return self._pid

    def connect(self, timeout_s: float) -> socket.socket:
        """See `Launched.connect`."""
        if self._channel is None:
            try:
                self._channel = self._connected(time.monotonic() + min(timeout_s, self._wait_s))
            except TimeoutError as error:
                if timeout_s < self._wait_s:
                    raise
                raise LaunchError(
                    f"no machine of the Ray cluster started it within {self._wait_s:g} s (Ray.wait_s); need its "
                    f"resources free again, and {self._address} open to the cluster's machines: check `ray status`, or "
                    "add a machine, or open the port"
                ) from error
            finally:
                self._stop_listening()
        return self._channel

    def kill(self) -> None:
        """See `Launched.kill`. The child of an actor ends with it."""
        self._stop_listening()
        if self._actor is not None:
            with suppress(Exception):  # the cluster may be gone
                check_cluster(self._ray)
                self._ray.kill(self._actor)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()

    def _connected(self, end: float) -> socket.socket:
        """Wait for its two connections until a time of the monotonic clock, then for the process id."""
        channel = self._next(end)
        try:
            keep_log(self._next(end), self._name)
            self._pid = self._result(max(end - time.monotonic(), POLL_S))
        except BaseException:
            channel.close()
            raise
        return channel

    def _next(self, end: float) -> socket.socket:
        """The next connection with the secret."""
        while True:
            self._check()
            with suppress(TimeoutError):
                if (channel := self._accept()) is not None:
                    return channel
            if time.monotonic() > end:
                raise TimeoutError

    def _check(self) -> None:
        """Raise the error of an actor that failed to start the process."""
        if self._fault is not None:
            raise self._fault
        with translated("a process did not start"):
            done, _ = self._ray.wait([self._started], timeout=0)
        if done:
            self._result(0)

    def _result(self, timeout_s: float) -> int:
        """The process id."""
        with translated("a process did not start"):
            return self._ray.get(self._started, timeout=timeout_s)

    def _accept(self) -> socket.socket | None:
        """The channel, if the next connection has the secret."""
        assert self._listener is not None  # else there is a fault
        channel, _ = self._listener.accept()
        channel.settimeout(POLL_S * 10)
        with suppress(OSError):
            if secrets.compare_digest(channel.recv(TOKEN_BYTES, socket.MSG_WAITALL), self._token):
                channel.sendall(self._answer)
                channel.settimeout(None)
                channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return channel
        channel.close()
        return None


class Starter:
    """The actor on the process' machine: starts the process, which ends when the actor ends."""

    def start(self, host: str, port: int, token: bytes, answer: bytes, entry: str, path: str, folder: str) -> int:
        """Connect to the run, and give the connection and one for what it prints to a child; returns its process id.

        Both ends prove that they have a secret, which Ray has brought here: the child unpickles what it receives.

        Raises:
            FileNotFoundError: when the machine lacks the working directory of the run.
            LaunchError: when it cannot connect to the address.
            ConnectionRefusedError: when another process than the run listens at the address.
        """
        if not os.path.isdir(folder):
            raise FileNotFoundError(
                f"machine {socket.gethostname()}: got no folder {folder}; need the run's working directory at the same "
                "path on every machine; create or mount it there"
            )
        os.chdir(folder)
        with _connection(host, port) as channel, _connection(host, port) as output:
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for each in (channel, output):
                each.sendall(token)
                each.settimeout(ANSWER_S)
                if not secrets.compare_digest(each.recv(TOKEN_BYTES, socket.MSG_WAITALL), answer):
                    raise ConnectionRefusedError(
                        f"got no proof from {host}:{port} that it is the run; need the run itself there; look for "
                        "another program that took its port"
                    )
                each.settimeout(None)
            # Kept: the child ends when the pipe to its standard input closes.
            self._child = start_child(channel, entry, path, output)
        return self._child.pid


def _connection(host: str, port: int) -> socket.socket:
    """A connection to the run.

    Raises:
        LaunchError: when there is none within `CONNECT_S`.
    """
    try:
        return socket.create_connection((host, port), timeout=CONNECT_S)
    except OSError as error:
        raise LaunchError(
            f"machine {socket.gethostname()}: got no connection to the run at {host}:{port} ({error}); need that port "
            f"of the run's machine open to this one: open it in the firewall, or set {PORTS} and {BIND} to ports and "
            "an address that this machine reaches"
        ) from error
