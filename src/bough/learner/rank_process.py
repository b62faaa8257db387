"""The process of a rank that rank 0 launches."""

from contextlib import suppress
from datetime import timedelta

from bough.launch import receive_setup
from bough.learner.commands import JoinGroup
from bough.learner.follow import follow
from bough.learner.process_group import RankFault
from bough.learner.rendezvous import connected_store


def serve_rank(channel: int) -> None:
    """Send None when ready; then follow rank 0 in each group of ranks that it names, until it sends None or ends.

    A group is named by this process' rank, a `JoinGroup` and the port of the store.

    Args:
        channel: The number of the open file that is the channel.
    """
    with suppress(EOFError, ConnectionError):
        connection, _ = receive_setup(channel)
        connection.send(None)
        while (named := connection.recv()) is not None:
            rank, join, port = named
            assert isinstance(join, JoinGroup)
            # A fault of the exchange ends the group without a traceback: rank 0 raises it, or has died.
            with suppress(RankFault):
                follow(rank, join, connected_store(join.host, port, timedelta(seconds=join.update_s)))
