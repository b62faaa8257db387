"""The toolsets of a task of verifiers, run in this process."""

import contextvars
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from bough.env.check_call import check_call
from bough.tree import BadCall, Tool, ToolCall

STATE: contextvars.ContextVar[Any] = contextvars.ContextVar("verifiers_state")
"""The state of the episode whose tool runs."""


class Toolsets:
    """The tools of an episode. A state that toolsets share is the one of its trace.

    Args:
        servers: The toolsets.
        state: The trace's state.
    """

    def __init__(self, servers: "list[Any]", state: Any) -> None:
        self._servers = servers
        self._state = state
        self._owners: dict[str, tuple[Any, str]] = {}
        self.tools: tuple[Tool, ...] = ()

    async def open(self, data: Any, shared: int) -> None:
        """Starts the toolsets and lists their tools.

        Args:
            data: The task's data.
            shared: Number of toolsets, the first ones, that serve all tasks; these get no task.

        Raises:
            ValueError: when two tools have one name.
        """
        from mcp.server.mcpserver import MCPServer

        for number, server in enumerate(self._servers):
            server._pull_state, server._push_state = _pull, _push
            await server.setup()
            if number >= shared:
                await server.setup_task(data)
            host: Any = MCPServer(server.server_name or type(server).__name__)
            server.register(host)
            for each in await host.list_tools():
                name = f"{server.server_name}_{each.name}" if server.server_name else str(each.name)
                if name in self._owners:
                    raise ValueError(f"Verifiers: got two tools with the name {name!r}; need different names")
                self._owners[name] = (host, str(each.name))
                schema = cast("Mapping[str, object]", each.input_schema)
                self.tools += (Tool(name=name, description=each.description or "", schema=schema),)

    async def result(self, call: ToolCall | BadCall) -> tuple[str, bool]:
        """The text of a call's result, and whether the call was valid. A tool's exception is a result."""
        problem = check_call(call, self.tools)
        if problem or isinstance(call, BadCall):
            return f"error: {problem}", False
        errors = import_module("mcp.server.mcpserver.exceptions")
        host, name = self._owners[call.name]
        token = STATE.set(self._state)
        try:
            found: Any = await host.call_tool(name, dict(call.arguments))
        except errors.ToolError as error:
            return f"error: {error}", True
        finally:
            STATE.reset(token)
        parts = [each.text if each.type == "text" else f"[{each.type}]" for each in found.content]
        return "\n".join(parts), True

    async def close(self) -> None:
        """Ends the toolsets."""
        for server in self._servers:
            await server._exit_stack.aclose()


async def _pull() -> Any:
    return STATE.get()


async def _push(before: bytes) -> None:
    """Nothing to do: a tool changes the trace's state in place."""
    del before
