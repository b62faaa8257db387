"""Fork servers: processes of this machine are forks of a process that has imported their module.

An import of PyTorch and transformers takes seconds, a fork milliseconds. There is one server for each module, from the
first start of such a process on; it ends with this process.

    this process                    fork server                     a fork
    ForkServer(module)   ----->     imports the module
    fork(entry, channel) ----->     forks               ----->      begins a session
    ForkedProcess.pid    <---------------------------------------   calls the entry
    ForkedProcess.wait   ----->     waits for its end
                         <-----     exit status
"""

import gc
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

NUMBER = struct.Struct("!q")
SERVER_S = 120.0
"""Longest wait for an answer of a server: the first comes after its imports."""

POLL_S = 0.005
"""Seconds between two checks of a process whose end is awaited."""

# The server must find the same modules as this process, so it gets the path before any import.
START = """
import json, sys
sys.path[:] = json.loads(sys.argv[3])
from bough.launch.fork_server import serve
serve(int(sys.argv[1]), sys.argv[2])()
"""


class ForkedProcess:
    """A process of a fork server, like a `subprocess.Popen`.

    It stays a zombie until `wait`, so that no other process gets its id.
    """

    def __init__(self, server: "subprocess.Popen[bytes]", status: socket.socket, stdin: int) -> None:
        """For a requested process.

        Args:
            server: The fork server.
            status: The stream of its id and its exit status.
            stdin: The descriptor of a pipe to its standard input.
        """
        self._server, self._status, self._pid = server, status, 0
        self.stdin = os.fdopen(stdin, "wb", buffering=0)
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        """Its process id, also that of its session; waits until it has begun. 0 when the server has ended."""
        if not self._pid:
            self._pid = self._receive() or 0
        return self._pid

    def wait(self) -> int:
        """Wait for its end, which must be near: after `SERVER_S` seconds the server is killed.

        Returns:
            Its exit status, minus the signal that ended it; -9 when the server has ended, and the status is unknown.
        """
        if self.returncode is None and self.pid:
            with suppress(OSError):
                self._status.sendall(b"w")
            self.returncode = self._receive()
        if self.returncode is None:
            self.returncode = -9
        self._status.close()
        return self.returncode

    def _receive(self) -> int | None:
        """The next number from the server; None when it has ended, or does not answer and is killed."""
        self._status.settimeout(SERVER_S)
        try:
            return _receive_number(self._status)
        except TimeoutError:
            self._server.kill()
            self._server.wait()
            return None


class ForkServer:
    """A process that has imported a module, and forks on request."""

    def __init__(self, module: str) -> None:
        """Start it; returns at once."""
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, str(theirs.fileno()), module, json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def fork(self, entry: str, channel: socket.socket) -> ForkedProcess:
        """Fork: see `fork`. The process has the working directory and the environment of this process."""
        ours, theirs = socket.socketpair()
        reads, writes = os.pipe()
        folder = None
        with suppress(FileNotFoundError):
            folder = os.getcwd()
        request = json.dumps({"entry": entry, "path": sys.path, "folder": folder, "environ": dict(os.environ)}).encode()
        try:
            socket.send_fds(self._control, [NUMBER.pack(len(request))], [channel.fileno(), reads, 2, theirs.fileno()])
            self._control.sendall(request)
        except OSError:
            # The server has ended: `ForkedProcess.pid` is 0.
            pass
        finally:
            os.close(reads)
            theirs.close()
        return ForkedProcess(self._process, ours, writes)


_servers: dict[str, ForkServer] = {}
_lock = threading.Lock()
os.register_at_fork(after_in_child=_servers.clear)


def fork(entry: str, channel: socket.socket) -> ForkedProcess:
    """Start a process from the fork server of the module of `entry`.

    Args:
        entry: "module:function".
        channel: The stream whose descriptor is the argument of the function.
    """
    module = entry.partition(":")[0]
    with _lock:
        server = _servers.get(module)
        if server is None or not server.alive:
            server = _servers[module] = ForkServer(module)
        return server.fork(entry, channel)


def serve(control: int, module: str) -> Callable[[], None]:
    """Fork on request until the run has ended.

    Args:
        control: The descriptor of the stream of requests.
        module: The module to import.

    Returns:
        In a fork, the function that calls its entry; in the server, one that ends it.
    """
    import_module(module)
    gc.freeze()
    requests, awaited = socket.socket(fileno=control), set[socket.socket]()
    running: dict[socket.socket, int] = {}
    while True:
        streams = [requests, *(each for each in running if each not in awaited)]
        ready = select.select(streams, [], [], POLL_S if awaited else None)[0]
        for each in ready:
            if each is not requests:
                # Its end is awaited, or its pipes are closed, which ends it too.
                with suppress(ConnectionError):
                    each.recv(1)
                awaited.add(each)
                continue
            request, numbers = _request(requests)
            if request is None:
                return partial(os._exit, 0)
            pid = os.fork()
            if not pid:
                return partial(_run_entry, request, numbers, [requests, *running])
            for number in numbers[:-1]:
                os.close(number)
            running[socket.socket(fileno=numbers[-1])] = pid
        for each in [*awaited]:
            pid, status = os.waitpid(running[each], os.WNOHANG)
            if pid:
                awaited.remove(each)
                del running[each]
                _send_number(each, os.waitstatus_to_exitcode(status))
                each.close()


def _run_entry(request: dict[str, Any], numbers: list[int], inherited: Iterable[socket.socket]) -> None:
    """In a fork: close the streams of the server, then call the entry."""
    for each in inherited:
        each.close()
    channel, reads, output, status = numbers
    os.setsid()
    with socket.socket(fileno=status) as stream:
        _send_number(stream, os.getpid())
    for number, standard in ((reads, 0), (output, 1), (output, 2)):
        os.dup2(number, standard)
    os.close(reads)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.path[:] = request["path"]
    if request["folder"] is not None:
        os.chdir(request["folder"])
    if "numpy" in sys.modules:
        # Forks of one process have equal random states.
        sys.modules["numpy"].random.seed()
    module, function = request["entry"].split(":")
    getattr(import_module(module), function)(channel)


def _request(stream: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """A request with its open files; None at the end."""
    head, numbers, _, _ = socket.recv_fds(stream, NUMBER.size, 4)
    if len(head) < NUMBER.size:
        return None, []
    body, size = bytearray(), NUMBER.unpack(head)[0]
    while len(body) < size:
        part = stream.recv(size - len(body))
        if not part:
            return None, []
        body += part
    return json.loads(body), numbers


def _send_number(stream: socket.socket, number: int) -> None:
    with suppress(OSError):
        stream.sendall(NUMBER.pack(number))


def _receive_number(stream: socket.socket) -> int | None:
    """The next number of a stream; None at its end."""
    try:
        got = stream.recv(NUMBER.size, socket.MSG_WAITALL)
    except ConnectionError:
        return None
    return NUMBER.unpack(got)[0] if len(got) == NUMBER.size else None
