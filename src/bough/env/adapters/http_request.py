"""One HTTP request with a deadline for all of it."""

import socket
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from typing import Any

Watch = Callable[[socket.socket], None]


def body_of(request: urllib.request.Request, deadline_s: float) -> tuple[int, bytes]:
    """Sends a request and reads the whole reply.

    Args:
        request: The request.
        deadline_s: Deadline of the request, from the connection to the last byte of the reply.

    Returns:
        The status and the body, of a reply with an error status too.

    Raises:
        OSError: when there is no connection, or the deadline is over.
        http.client.HTTPException: when the reply is not HTTP or ends early.
    """
    deadline = _Deadline()
    opener = urllib.request.build_opener(_Http(deadline.watch), _Https(deadline.watch), _AnyStatus())
    timer = threading.Timer(deadline_s, deadline.end)
    timer.daemon = True
    timer.start()
    try:
        with opener.open(request, timeout=deadline_s) as reply:
            body = reply.read()
            status = reply.status
    except Exception as error:
        if deadline.over:
            raise TimeoutError(f"timed out after {deadline_s} s") from error
        raise
    finally:
        timer.cancel()
    if deadline.over:  # a reply without a length ends where its socket ends
        raise TimeoutError(f"timed out after {deadline_s} s")
    return status, body


class _Deadline:
    """Ends the sockets of a request when its deadline is over."""

    def __init__(self) -> None:
        self.over = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    def watch(self, opened: socket.socket) -> None:
        with self._lock:
            self._sockets.append(opened)
            if self.over:
                _shut(opened)

    def end(self) -> None:
        with self._lock:
            self.over = True
            for opened in self._sockets:
                _shut(opened)


def _shut(opened: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)  # the method of an SSL socket is not for another thread


class _HttpConnection(HTTPConnection):
    def __init__(self, host: str, *, watch: Watch, **arguments: Any) -> None:
        super().__init__(host, **arguments)
        self._watch = watch

    def connect(self) -> None:
        super().connect()
        self._watch(self.sock)


class _HttpsConnection(_HttpConnection, HTTPSConnection):
    """The same over TLS: `super()` is `HTTPSConnection` here."""


class _Handler(urllib.request.AbstractHTTPHandler):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch


class _Http(_Handler, urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(partial(_HttpConnection, watch=self._watch), req)


class _Https(_Handler, urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(partial(_HttpsConnection, watch=self._watch), req)


class _AnyStatus(urllib.request.HTTPDefaultErrorHandler):
    """Returns a reply with an error status; the default raises."""

    def http_error_default(self, req: Any, fp: Any, code: int, msg: str, hdrs: Any) -> Any:
        del req, code, msg, hdrs
        return fp
