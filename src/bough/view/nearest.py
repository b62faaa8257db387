"""The message for a name that does not exist, with the names that come near."""

import difflib
from collections.abc import Iterable


def unknown(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`unknown name 'Rlo'; did you mean 'rloo'?`; where no name is near, `otherwise`, or all names.

    Case does not matter. Without a near spelling, names that contain `name` are suggested: "grpo_sokoban" for "GRPO".
    """
    names = sorted(known)
    spelt = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), spelt, n=1) or [each for each in spelt if name.lower() in each][:3]
    if not names:
        return f"unknown name {name!r}; there is none to choose from"
    hint = f"did you mean {' or '.join(repr(spelt[each]) for each in near)}?" if near else otherwise
    return f"unknown name {name!r}; " + (hint or f"need one of {', '.join(names)}")
