"""A host whose steps are spans."""

from typing import Any

from bough.env import Branching, Host, State, Step
from bough.tracing.traced_engine import MakesSpan
from bough.tree import Action, AgentAction, Task, ToolCall


class TracedHost:
    """Makes a span of each step; everything else is the host's."""

    def __init__(self, host: Host, span: MakesSpan, env: str) -> None:
        """Send calls to `host`; the name of the environment stands for the tool of an action without calls."""
        self._host, self._span, self._env = host, span, env

    @property
    def branching(self) -> Branching:
        """See `Host`."""
        return self._host.branching

    async def start(self, task: Task) -> State:
        """See `Host.start`."""
        return await self._host.start(task)

    async def step(self, state: State, action: AgentAction) -> Step:
        """See `Host.step`."""
        calls = [each for each in action.calls if isinstance(each, ToolCall)] if isinstance(action, Action) else []
        tool = ", ".join(dict.fromkeys(call.name for call in calls)) or self._env
        attributes: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        if calls:
            attributes["gen_ai.tool.type"] = "function"
        with self._span(f"execute_tool {tool}", attributes) as span:
            step = await self._host.step(state, action)
            span.set_attribute("bough.outcome", step.outcome.name.lower())
            span.set_attribute("bough.success", bool(step.success))
            span.set_attribute("bough.valid", bool(step.valid))
            return step

    async def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """See `Host.plan`."""
        return await self._host.plan(state)

    async def close(self) -> None:
        """See `Host.close`."""
        await self._host.close()
