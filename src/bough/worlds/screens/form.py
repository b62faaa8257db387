"""Fields of forms: their types, elements and checks."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bough.worlds.screens.part import Element

PEOPLE = ("ann", "ben", "cat", "dan", "eva", "finn", "gus", "ida", "jon", "kim", "leo", "mia")
THINGS = ("apple", "bread", "cake", "egg", "fish", "honey", "lemon", "milk", "pear", "rice", "salt", "tea")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST = 200
"""Longest text of a field, in characters."""

RULES = {"number": r"[0-9]{1,6}", "time": r"([01]?[0-9]|2[0-3]):[0-5][0-9]", "day": "|".join(DAYS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form.

    Attributes:
        name: Its label.
        kind: Type of its text; "person" and "thing" allow any text.
    """

    name: str
    kind: Literal["person", "thing", "number", "time", "day"] = "thing"

    def draw(self, rng: random.Random) -> str:
        """Samples a text that fits."""
        if self.kind == "number":
            return str(rng.randint(2, 99))
        if self.kind == "time":
            return f"{rng.randint(0, 23)}:{rng.choice(('00', '15', '30', '45'))}"
        return rng.choice({"person": PEOPLE, "thing": THINGS, "day": DAYS}[self.kind])

    def problem(self, text: str) -> str:
        """The problem with a text; "" when it fits."""
        if not text:
            return f"{self.name} is empty"
        if self.kind in RULES and not re.fullmatch(RULES[self.kind], text):
            return f"{self.name} is no {self.kind}"
        return ""


def form_elements(fields: Sequence[Field], form: Sequence[str], verb: str) -> tuple[Element, ...]:
    """The elements of a form: its fields, and the button that saves or sends it."""
    shown = [
        Element(role="field", label=field.name, effect=("focus", str(number)), value=text)
        for number, (field, text) in enumerate(zip(fields, form, strict=True))
    ]
    return (*shown, Element(role="button", label=verb, effect=("save",)))


def form_problem(fields: Sequence[Field], form: Sequence[str]) -> str:
    """The first problem of a form; "" when all its fields fit."""
    problems = (field.problem(text) for field, text in zip(fields, form, strict=True))
    return next(filter(None, problems), "")
