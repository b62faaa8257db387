"""The message for an unknown name, with the most similar known names."""

import difflib
from collections.abc import Iterable


def unknown(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`unknown name 'Rlo'; did you mean 'rloo'?`; without a similar name `otherwise`, or all names.

    Case is ignored. Without a similar spelling, names that contain `name` are suggested: "grpo_sokoban" for "GRPO".
    """
    names = sorted(set(known))
    lower = [each.lower() for each in names]
    near = difflib.get_close_matches(name.lower(), lower, n=1) or [each for each in lower if name.lower() in each][:3]
    if not names:
        return f"unknown name {name!r}; there is none to choose from"
    hint = f"did you mean {' or '.join(repr(each) for each in names if each.lower() in near)}?" if near else otherwise
    return f"unknown name {name!r}; " + (hint or f"need one of {', '.join(names)}")
