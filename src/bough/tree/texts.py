"""The texts in the `info` of a node that code reads."""

from bough.tree.tree import Info


def text_in(info: Info) -> str | None:
    """Returns the text of a node: the observation, or the parsed action at its last piece; None without one."""
    text = info.get("text")
    return text if isinstance(text, str) else None


def instructions_in(info: Info) -> str:
    """Returns the instructions in the info of a root; "" without any."""
    return str(info.get("instructions", ""))


def fault_in(info: Info) -> str | None:
    """Returns the fault that ended a path at this node; None without one."""
    fault = info.get("fault")
    return fault if isinstance(fault, str) else None


def needed_tokens_in(info: Info) -> int:
    """Returns the length of the prompt that did not fit the model's context; 0 at other nodes."""
    needed = info.get("needed_tokens")
    return needed if isinstance(needed, int) else 0
