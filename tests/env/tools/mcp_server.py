"""A real MCP server, with version 1 or 2 of the SDK: a counter. Over standard input and output, or HTTP at `PORT`."""

import os
import sys
import time

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    VERSION = 2
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError

    VERSION = 1

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
    """The number of the process, its arguments, and the version of the SDK."""
    return f"{os.getpid()} {sys.argv[1:]} SDK {VERSION}"


if __name__ == "__main__":
    port = os.environ.get("PORT")
    if port and VERSION == 1:
        server.settings.port = int(port)
        server.run(transport="streamable-http")
    elif port:
        server.run(transport="streamable-http", port=int(port))
    else:
        server.run(transport="stdio")
