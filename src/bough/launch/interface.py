"""The network interface that reaches another process."""

import fcntl
import socket
import struct

SIOCGIFADDR = 0x8915
"""Linux's request for the address of an interface."""

ANY_PORT = 9


def interface_to(host: str) -> str | None:
    """The name of this machine's interface that reaches a host; None if it cannot be determined.

    Args:
        host: A name or an IPv4 address; an address of this machine is reached by the interface that has it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing.
            probe.connect((host, ANY_PORT))
        except OSError:
            return None
        address = probe.getsockname()[0]
        return next((name for _, name in socket.if_nameindex() if _address(probe, name) == address), None)


def _address(probe: socket.socket, name: str) -> str | None:
    """The IPv4 address of an interface; None without one."""
    try:
        found = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()))
    except OSError:
        return None
    return socket.inet_ntoa(found[20:24])
