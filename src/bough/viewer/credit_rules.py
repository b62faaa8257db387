"""Other credit rules on stored trees."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import bough.credit
from bough.credit import Credit, compute_credit
from bough.needs import CRITIC, FINAL_VALUES, GREEDY, REFERENCE, Estimate, Head, Need, needs_of
from bough.store import StoreError
from bough.tree import Credited, Rewarded

NOT_STORED = (CRITIC, FINAL_VALUES, REFERENCE, GREEDY)
"""What files of trees do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A credit rule with its default settings.

    Attributes:
        name: Its name.
        about: The first line of its docstring.
        rule: The rule.
        missing: What it needs that files of trees do not have; "" for nothing.
    """

    name: str
    about: str
    rule: Credit
    missing: str

    def record(self) -> dict[str, str]:
        """The rule as JSON data."""
        return {"name": self.name, "about": self.about, "missing": self.missing}


@cache
def credit_rules() -> Mapping[str, Rule]:
    """The rules of `bough.credit` that work without settings, by name."""
    return {rule.name: rule for rule in sorted(_rules(), key=lambda each: each.name.lower())}


def apply_rule(name: str, rewarded: Sequence[Rewarded]) -> list[Credited]:
    """The trees of a step with the advantages of another rule.

    Raises:
        StoreError: when there is no such rule, or it needs what the trees do not have.
    """
    # A rule is chosen by its name alone: a text with a file's name would run the file.
    if (found := credit_rules().get(name)) is None:
        raise StoreError(f"got the credit rule {name!r:.60}; need one of {', '.join(credit_rules())}")
    if found.missing:
        raise StoreError(f"credit={name} needs {found.missing}, which files of trees do not have; take another rule")
    try:
        return compute_credit(found.rule, rewarded)
    except ValueError as error:
        raise StoreError(f"credit={name} does not fit these trees: {error}") from error


def _rules() -> Iterator[Rule]:
    for name in bough.credit.__all__:
        maker = getattr(bough.credit, name)
        if maker is Credit or any(each.default is each.empty for each in _parameters(maker)):
            continue
        rule = maker()
        if isinstance(rule, Credit):
            about = (inspect.getdoc(maker) or "").partition("\n")[0]
            lacking = [need.text for need in needs_of(rule) if _not_stored(need)]
            yield Rule(name=name, about=about, rule=rule, missing=", ".join(sorted(lacking)))


def _parameters(maker: object) -> list[inspect.Parameter]:
    return [*inspect.signature(maker).parameters.values()] if callable(maker) else []


def _not_stored(need: Need) -> bool:
    return need in NOT_STORED or isinstance(need, Head | Estimate)
