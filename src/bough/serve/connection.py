"""A connection whose client sends each request, and takes each answer, within a deadline."""

import asyncio
import resource

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bough.units import MIB

CLIENT_S = 30.0
"""How long a client may take to send a request, to take an answer, or to use a kept connection."""

UNREAD_BYTES = 4 * MIB
"""Most bytes of a request that are dropped after its answer; beyond, the connection ends."""

LINGER_S = 1.0
"""How long a connection that ends stays for its client to read the answer: a reset may discard it."""


def most_connections() -> int:
    """Most connections of a server: half of the descriptors that the process may have."""
    return max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 1)


class Connection(H11Protocol):
    """A connection that is closed when its client is late.

    Beyond `most_connections` the one is closed whose client is late first; the newest where all clients await answers.
    """

    _late: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            others = (each for each in self.connections if isinstance(each, Connection))
            late = [(each._late.when(), each) for each in others if each._late]
            min(late, key=lambda each: each[0], default=(0, self))[1].abort()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`; the client may still send a request that has its answer."""
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
            self._unread += len(data)
            if self._unread > UNREAD_BYTES:
                self._end()
                return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """The next request has a deadline of its own; it may have come already."""
        self._stop_watching()
        self._unread = 0
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: the client does not take its answer."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        super().resume_writing()
        self._watch()

    def abort(self) -> None:
        """Close the connection at once."""
        self._stop_watching()
        self.transport.abort()

    def _end(self) -> None:
        """Take no more bytes, and close the connection when the client has had time to read its answer."""
        self._stop_watching()
        self.flow.pause_reading()
        self.transport.write_eof()
        self._late = self.loop.call_later(LINGER_S, self.abort)

    def _watch(self) -> None:
        """Begin the deadline, unless it runs; end it while the client awaits an answer.

        It also runs for a connection that closes, which stays until its answer is taken.
        """
        asked = self.cycle and not self.cycle.more_body and not self.cycle.response_complete
        if asked and not self.flow.write_paused:
            self._stop_watching()
        elif not self._late:
            self._late = self.loop.call_later(CLIENT_S, self.abort)

    def _stop_watching(self) -> None:
        if self._late:
            self._late.cancel()
            self._late = None
