"""The message for an unknown name, with the most similar known names."""

import difflib
from collections.abc import Iterable


def unknown(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`unknown name 'Rlo'; did you mean 'rloo'?`; without a similar name `otherwise`, or all names.

    Case is ignored. Initials count as similar: "lr" for "learning_rate". Without a similar spelling, names that contain
    `name` are suggested: "grpo_sokoban" for "GRPO".
    """
    names = sorted(set(known))
    if not names:
        return f"unknown name {name!r}; there is none to choose from"
    near = same_initials(name, names) or close(name, names) or containing(name, names)
    return f"unknown name {name!r}; " + (suggest(near) if near else otherwise or f"need one of {', '.join(names)}")


def suggest(names: Iterable[str]) -> str:
    """A question with these names, `did you mean 'one' or 'other'?`."""
    return f"did you mean {' or '.join(repr(each) for each in names)}?"


def same_initials(name: str, known: Iterable[str]) -> list[str]:
    """The known names of several words whose initials are `name`."""
    return [each for each in known if "_" in each and "".join(word[:1] for word in each.split("_")) == name.lower()]


def close(name: str, known: Iterable[str]) -> list[str]:
    """The known names of the most similar spelling; names that differ in case only are all returned.

    Letters in another order are the most similar: "grpo" for "gpro".
    """
    names = list(known)
    lower = [each.lower() for each in names]
    mixed = [each for each in lower if sorted(each) == sorted(name.lower())]
    near = difflib.get_close_matches(name.lower(), mixed or lower, n=1)
    return [each for each in names if each.lower() in near]


def containing(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that contain `name`."""
    return [each for each in known if name.lower() in each.lower()][:3]
