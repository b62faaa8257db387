"""Where a server listens, and which names of its machine a request may have."""

import ipaddress
import socket
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"

BACKLOG = 2048
"""Connections that wait for the event loop."""

MOST_PORT = 2**16 - 1


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_loopback(header: str) -> bool:
    """Whether the Host header of a request, with or without a port, names this machine's loopback.

    A page of another site that resolves its own name to loopback (DNS rebinding) sends that name.
    """
    try:
        return is_loopback(urlsplit(f"//{header}").hostname or "")
    except ValueError:
        return False


def check_address(host: str, key: str) -> None:
    """Refuse an address that other machines reach without a key, and a key that no header has.

    Raises:
        ValueError: when there is no key, or it has blanks at its ends or characters that can't be shown.
    """
    if key != key.strip() or not key.isprintable():
        raise ValueError(f"serve: got the key {key!r}; need one without line breaks and without blanks at its ends")
    if not key and not is_loopback(host):
        raise ValueError(
            f"serve: got the address {host}, which other machines reach, without a key; need a key (--key KEY or the "
            f"environment variable BOUGH_SERVE_KEY), or the address {LOOPBACK}"
        )


def listen(host: str = LOOPBACK, port: int = 0, key: str = "") -> socket.socket:
    """A socket that listens at an address; the caller closes it.

    Args:
        host: The address.
        port: 0 takes a free one.
        key: The server's key, "" without one; only its presence counts here.

    Raises:
        ValueError: as `check_address`; when the port is taken or none, or the address is not this machine's.
    """
    check_address(host, key)
    if not 0 <= port <= MOST_PORT:
        raise ValueError(f"serve: got the port {port}; need 1 to {MOST_PORT}, or 0 for a free one")
    # Without the protocol asyncio sets no TCP_NODELAY, and each answer on a kept connection comes 40 ms late.
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ValueError(
            f"serve: got {host}, port {port}: {error.strerror or error}; need an "
            "address of this machine and a free port: take another --port, or 0 for a free one"
        ) from error
    return listener
