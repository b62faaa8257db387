from collections.abc import Sequence

from bough.context import ContextInputs, Turn
from bough.tree import Message, Observation, Task


def inputs(system: str, past: Sequence[Turn], observation: Observation, *recalled: str) -> ContextInputs:
    """The inputs of a context before an action; `recalled` are users' messages."""
    memory = tuple(Message(role="user", content=each) for each in recalled)
    return ContextInputs(task=Task(id="t", seed=0), observation=observation, system=system, past=past, recalled=memory)
