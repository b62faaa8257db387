"""Every credit rule there is, found by looking into the room."""

from dataclasses import is_dataclass
from inspect import Parameter, isclass, isfunction, signature
from typing import Any, get_type_hints

from bough import credit
from bough.credit import Credit
from bough.tree import Credited


def rules() -> dict[str, Credit]:
    """The rules that `bough.credit` exports, with their default settings, by the name that makes them.

    Raises:
        TypeError: when a rule has a setting without a default: what goes through all rules could not go through it.
    """
    found: dict[str, Credit] = {}
    for name in sorted(credit.__all__, key=str.lower):
        thing: Any = getattr(credit, name)
        kind: Any = thing if isclass(thing) else get_type_hints(thing).get("return") if isfunction(thing) else None
        if not _is_rule(kind):
            continue
        asked = [each.name for each in signature(thing).parameters.values() if each.default is Parameter.empty]
        if asked:
            raise TypeError(f"bough.credit.{name}: got no default for {asked}; need one for each")
        made: Any = thing()
        found[name] = made
    return found


def _is_rule(kind: object) -> bool:
    """Whether a class is a piece whose instances credit a batch."""
    if not isclass(kind) or not is_dataclass(kind):
        return False
    call = next((vars(each)["__call__"] for each in kind.__mro__ if "__call__" in vars(each)), None)
    return call is not None and get_type_hints(call).get("return") == list[Credited]
