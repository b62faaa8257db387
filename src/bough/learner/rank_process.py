"""The process of a rank that rank 0 launches."""

import threading
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection

from bough.launch.placement import end_with_parent
from bough.learner.commands import JoinGroup
from bough.learner.follow import follow
from bough.learner.ranks import RankFault
from bough.learner.rendezvous import connected_store


def serve_rank(channel: int) -> None:
    """Receive the rank, a `JoinGroup` and the port of the store, send None, and follow rank 0 until it ends.

    Args:
        channel: The number of the open file that is the channel.
    """
    threading.Thread(target=end_with_parent, daemon=True).start()
    connection = Connection(channel)
    # A fault of the exchange ends this process without a traceback: rank 0 raises it, or has died.
    with suppress(EOFError, ConnectionError, RankFault):
        rank, join, port = connection.recv()
        assert isinstance(join, JoinGroup)
        connection.send(None)
        follow(rank, join, connected_store(join.host, port, timedelta(seconds=join.update_s)))
