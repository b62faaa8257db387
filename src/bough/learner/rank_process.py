"""The process of a rank that rank 0 launches."""

from contextlib import suppress
from datetime import timedelta

from bough.launch import receive_setup
from bough.learner.commands import JoinGroup
from bough.learner.follow import follow
from bough.learner.ranks import RankFault
from bough.learner.rendezvous import connected_store


def serve_rank(channel: int) -> None:
    """Receive the rank, a `JoinGroup` and the port of the store, send None, and follow rank 0 until it ends.

    Args:
        channel: The number of the open file that is the channel.
    """
    # A fault of the exchange ends this process without a traceback: rank 0 raises it, or has died.
    with suppress(EOFError, ConnectionError, RankFault):
        connection, (rank, join, port) = receive_setup(channel)
        assert isinstance(join, JoinGroup)
        connection.send(None)
        follow(rank, join, connected_store(join.host, port, timedelta(seconds=join.update_s)))
