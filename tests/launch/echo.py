"""A process that sends back what arrives."""

import os
import socket
import threading

from bough.launch.placement import end_with_parent


def echo(channel: int) -> None:
    """Send back what arrives, with the number of this process."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    with socket.socket(fileno=channel) as stream:
        while got := stream.recv(100):
            stream.sendall(got + f" {os.getpid()}".encode())
