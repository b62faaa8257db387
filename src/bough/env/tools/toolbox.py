"""The running objects behind an environment of tools."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import islice
from typing import Any

from bough.env.check_call import check_call, check_tools
from bough.env.hub_dataset import HubDataset
from bough.env.reward_number import reward_number
from bough.env.rows import Lines, Row, RowTasks
from bough.env.tools.function_tool import FunctionTool, ToolError, function_tool
from bough.env.tools.mcp import McpServer
from bough.env.tools.mcp_session import McpSession, McpSessions
from bough.tree import BadCall, Task, ToolCall, copied_fields
from bough.usercode.address import find_function
from bough.usercode.loop import synchronous
from bough.usercode.origin import describe

MOST_PLANNED = 10_000
"""Most actions of an oracle's plan."""


@dataclass(slots=True, kw_only=True)
class EpisodeResources:
    """The mutable objects of an episode: the user's state and the sessions with servers.

    Attributes:
        state: The user's state; None without a factory.
        sessions: The sessions with the episode's own servers, by the number of the server.
        actions: Number of executed actions.
    """

    state: object
    sessions: dict[int, McpSession] = field(default_factory=dict[int, McpSession])
    actions: int = 0

    def close(self) -> None:
        """Ends the episode's servers."""
        for session in self.sessions.values():
            session.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of a call.

    Attributes:
        text: For the model.
        valid: Whether the call was executed.
        raised: Class, text and place of a LookupError or ArithmeticError, which may be a mistake of the tool; else "".
    """

    text: str
    valid: bool = True
    raised: str = ""


class Toolbox:
    """The running objects of an environment of tools: functions, tasks and sessions.

    Args:
        name: Name of the environment.
        tools: Addresses of functions. The arguments below are addresses too, "" for none, but `servers` and `rows`.
        servers: MCP servers.
        rows: The source of tasks, as `place_of` returns it, or a data set.
        reward: The reward function.
        state: The state factory.
        oracle: The oracle.
        key: The function that names states.
        copier: The function that copies states.
    """

    def __init__(
        self,
        *,
        name: str,
        tools: Sequence[str],
        servers: Sequence[McpServer],
        rows: Lines | HubDataset,
        reward: str,
        state: str,
        oracle: str,
        key: str,
        copier: str,
    ) -> None:
        found = [function_tool(find_function(each), takes_state=bool(state)) for each in tools]
        self.functions: dict[str, FunctionTool] = {each.tool.name: each for each in found}
        self.factory = _found(state)
        self.oracle = _found(oracle)
        self.key = _found(key)
        self.copier = _found(copier) or copy.deepcopy
        self.sessions = McpSessions(servers)
        self.listed = tuple(each.tool for each in found)
        self._complete = False
        self._tasks: RowTasks | None = None
        self._place = (name, rows)
        self._reward = synchronous(find_function(reward))
        self._takes_answer = len(signature(self._reward).parameters) > 2

    @property
    def tasks(self) -> RowTasks:
        """The tasks, read at the first use."""
        if self._tasks is None:
            self._tasks = RowTasks(*self._place)
        return self._tasks

    def plan(self, state: Any, task: Task) -> list[object]:
        """The steps that the oracle plans from a state; none without a plan.

        Raises:
            ValueError: when they do not end.
        """
        assert self.oracle is not None
        found: Iterable[object] | None = self.oracle(state, copied_fields(task.data))
        steps = list(islice(() if found is None else found, MOST_PLANNED + 1))
        if len(steps) > MOST_PLANNED:
            raise ValueError(f"plan: got more than {MOST_PLANNED:,} actions; need a plan that ends")
        return steps

    def list_tools(self, live: EpisodeResources, task: Task) -> None:
        """Lists the tools of the servers, once."""
        if self._complete:
            return
        self.listed += self.sessions.tools(live.sessions, _values(live, task))
        check_tools(self.listed)
        self._complete = True
        names = [tool.name for tool in self.listed]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"tools: got two tools with the name {twice[0]!r}; need different names")

    def reward(self, state: object, row: Row, answer: str) -> bool | float:
        """The reward of a final state.

        Raises:
            EnvFault: when the function returns no finite number.
        """
        given = (state, row, answer) if self._takes_answer else (state, row)
        return reward_number(self._reward(*given), self._reward)

    def result(self, live: EpisodeResources, task: Task, call: ToolCall | BadCall) -> CallResult:
        """Executes a call."""
        self.list_tools(live, task)  # The state may be one of another process.
        problem = check_call(call, self.listed)
        if problem or isinstance(call, BadCall):
            return CallResult(text=f"error: {problem}", valid=False)
        tool = self.functions.get(call.name)
        if tool is None:
            text, failed = self.sessions.call(live.sessions, _values(live, task), call.name, call.arguments)
            return CallResult(text=f"error: {text}" if failed else text)
        try:
            arguments = tool.convert(call.arguments)
        except ToolError as error:
            return CallResult(text=f"error: {error}", valid=False)
        try:
            return CallResult(text=tool(live.state, arguments))
        except (ToolError, ValueError) as error:
            return CallResult(text=f"error: {error}")
        except (LookupError, ArithmeticError) as error:
            return CallResult(text=f"error: {type(error).__name__}: {error}", raised=describe(error))


def _found(address: str) -> Callable[..., Any] | None:
    """The function of an address, which may be async; None for ""."""
    return synchronous(find_function(address)) if address else None


def _values(live: EpisodeResources, task: Task) -> Mapping[str, object]:
    """The values of placeholders in the settings of servers."""
    return {**task.data, "state": live.state}
