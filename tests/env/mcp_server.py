"""A real MCP server: a counter. Over standard input and output, or over HTTP with a port as argument."""

import os
import sys
import time

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("counter", log_level="ERROR")
total = [int(os.environ.get("BEGIN", "0"))]


@server.tool()
def add(amount: int) -> int:
    """Add to the counter."""
    total.append(amount)
    return sum(total)


@server.tool()
def refuse() -> str:
    """Refuses."""
    raise ToolError("not today")


@server.tool()
def hang() -> str:
    """Never answers."""
    time.sleep(100)
    return ""


@server.tool()
def die() -> str:
    """Ends the server."""
    os._exit(3)


@server.tool()
def process() -> str:
    """The number of the process, and its first argument."""
    return f"{os.getpid()} {sys.argv[1:]}"


if __name__ == "__main__":
    port = os.environ.get("PORT")
    if port:
        server.run(transport="streamable-http", port=int(port))
    else:
        time.sleep(float(os.environ.get("SLEEP", "0")))
        server.run(transport="stdio")
