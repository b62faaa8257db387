"""Where this process listens for other machines: an address and a range of ports, from two environment variables."""

import errno
import os
import re
import socket

from bough.launch.placement import LaunchError

BIND = "BOUGH_BIND"
"""The variable with the address of this machine at which Bough listens; "0.0.0.0" is all of them."""

PORTS = "BOUGH_PORTS"
"""The variable with the ports that Bough may take: "21000-21099". Without it the system chooses free ones."""

MOST_PORT = 2**16 - 1

EVERY_ADDRESS = ("0.0.0.0", "::")


def listener(host: str) -> socket.socket:
    """A socket that listens for other processes of the run; the caller closes it.

    Args:
        host: The address at which they reach this machine. It listens there, unless other machines reach the address
            and `BOUGH_BIND` names another one.

    Raises:
        LaunchError: when all ports of `BOUGH_PORTS` are taken, or one of the variables has no address or range.
    """
    bind, ports = host if _is_loopback(host) else os.environ.get(BIND) or host, _ports()
    for port in ports:
        try:
            return socket.create_server((bind, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not port:
                raise LaunchError(
                    f"got {BIND}={os.environ.get(BIND, '')!r}, port {port} ({error}); need an address of this machine "
                    f"and ports that it may take; correct {BIND} (unset it for {host}) or {PORTS}"
                ) from error
    raise LaunchError(
        f"got {PORTS}={os.environ[PORTS]}, whose {len(ports)} ports are all taken at {bind}; need one for each process "
        "that starts, and one for the ranks; set a larger range, or end what has them (`ss -ltnp`)"
    )


def reached_at(host: str) -> str:
    """The address at which other machines reach this process: `BOUGH_BIND`, where it is one address, else `host`."""
    bind = os.environ.get(BIND, "")
    return host if not bind or bind in EVERY_ADDRESS else bind


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in ("localhost", "::1")


def _ports() -> range:
    """The ports to try, in order; only 0, a free one, without a range."""
    text = os.environ.get(PORTS, "")
    if not text:
        return range(1)
    found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 0 < first <= last <= MOST_PORT:
        raise LaunchError(
            f"got {PORTS}={text!r}; need a range of ports from 1 to {MOST_PORT}, such as 21000-21099; correct it"
        )
    return range(first, last + 1)
