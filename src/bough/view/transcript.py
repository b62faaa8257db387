"""Renders an episode in a terminal: instructions, observations, actions, calls and results."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bough.tree import Action, AgentAction, BadCall, Message, Observation, Outcome, Tool, ToolCall, messages
from bough.view.calls import call_line, tool_line
from bough.visible import visible

if TYPE_CHECKING:
    from rich.text import Text

STYLES = {"system": "magenta", "user": "green", "assistant": "cyan", "tool": "yellow"}
"""The colour of a role's label."""

LABELS = {"assistant": "agent", "tool": "result"}
"""The labels of roles that are not shown under their own name."""


def show_instructions(instructions: str, tools: Sequence[Tool]) -> "Text":
    """The system prompt, and a line for each tool."""
    text = _part("system", instructions.strip()) if instructions.strip() else _styled()
    for tool in tools:
        text.append_text(_part("tool", tool_line(tool), label="tool"))
    return text


def show_observation(observation: Observation) -> "Text":
    """The messages of an observation, each below its role."""
    text = _styled()
    for message in messages(observation):
        text.append_text(_message(message))
    return text


def show_action(action: AgentAction, by: str = "agent") -> "Text":
    """An action: its text, its calls, and what is wrong with malformed ones."""
    said = action if isinstance(action, str) else action.text
    calls = action.calls if isinstance(action, Action) else ()
    text = _part("assistant", said, label=by) if said or not calls else _styled()
    for call in calls:
        text.append_text(_call(call, by))
    return text


def show_step(turn: int, reward: float, valid: bool | None, cut_off: bool | None) -> "Text":
    """The number of a turn, its reward, and what was wrong with its action."""
    notes = [f"turn {turn}", f"reward {reward:g}"] if reward else [f"turn {turn}"]
    notes += ["invalid action"] if valid is False else []
    notes += ["cut off at the token limit"] if cut_off else []
    return _styled(f"  {', '.join(notes)}\n", "dim")


def show_end(outcome: Outcome, success: bool | None, why: str, total: float) -> "Text":
    """The end of an episode."""
    result = ("solved", "bold green") if success else ("not solved", "bold red")
    words = [outcome.name.lower(), *([why] if why else []), f"reward {total:g} in all"]
    text = _styled(*result)
    return text.append_text(_styled(f" ({', '.join(words)})\n", "dim"))


def _message(message: Message) -> "Text":
    text = _part(message.role, message.content) if message.content or not message.tool_calls else _styled()
    for call in message.tool_calls:
        text.append_text(_call(call, LABELS["assistant"]))
    return text


def _call(call: ToolCall | BadCall, by: str) -> "Text":
    if isinstance(call, BadCall):
        text = _part("assistant", call.text, label=f"{by} malformed call")
        return text.append_text(_styled(f"  {call.problem}\n", "bold red"))
    return _part("assistant", call_line(call), label=f"{by} calls")


def _part(role: str, content: str, label: str = "") -> "Text":
    """A label, and a text beside it; further lines are indented."""
    text = _styled(f"{label or LABELS.get(role, role)}: ", f"bold {STYLES[role]}")
    lines = content.splitlines() or [""]
    return text.append_text(_styled("\n  ".join(lines) + "\n"))


def _styled(content: str = "", style: str = "") -> "Text":
    from rich.text import Text

    # Text of a model or an environment is not markup, and must not move the cursor.
    return Text(visible(content), style)
