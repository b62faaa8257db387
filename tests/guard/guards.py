import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from bough.guard import Allow, Decision, Deny
from bough.tree import AgentAction, Message, Tool, ToolCall, action_text


@dataclass(frozen=True, slots=True, kw_only=True)
class NoText:
    """Denies actions that contain a text."""

    text: str = "b"

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        del history, tools
        await asyncio.sleep(0)
        return Deny(reason=f"no {self.text}") if self.text in action_text(action) else Allow()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """Raises."""

    error: BaseException = field(default_factory=lambda: KeyError("rules"))

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        del action, history, tools
        raise self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Does not answer."""

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        del action, history, tools
        await asyncio.Event().wait()
        return Allow()


@dataclass(frozen=True, slots=True, kw_only=True)
class SaysYes:
    """Returns no decision."""

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        del action, history, tools
        return True  # type: ignore[return-value]


@dataclass(slots=True, kw_only=True, eq=False)
class Watches:
    """Allows everything, and keeps what it got."""

    seen: list[tuple[AgentAction, tuple[Message, ...]]]

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        del tools
        self.seen.append((action, tuple(history)))
        return Allow()


@dataclass(frozen=True, slots=True, kw_only=True)
class Denies:
    """Denies everything with this reason."""

    reason: str

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        del action, history, tools
        return Deny(reason=self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesArguments:
    """Writes into the arguments of calls, and allows them."""

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        del history, tools
        for call in () if isinstance(action, str) else action.calls:
            if isinstance(call, ToolCall) and isinstance(call.arguments, dict):
                call.arguments["amount"] = 0
        return Allow()
