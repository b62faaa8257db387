"""The grammar of an ALFWorld game (TWL2): the commands of actions, and the responses to them."""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from bough.usercode.json_file import parse_json
from bough.worlds.alfworld.pddl import Facts

GRAMMAR = re.compile(r'grammar\s*::\s*"""(.*?)"""', re.DOTALL)
ACTION = re.compile(
    r'action\s+(\w+)\s*\{\s*template\s*::\s*"([^"\n]*)"\s*;\s*feedback\s*::\s*"([^"\n]*)"\s*;', re.DOTALL
)
SYMBOL = re.compile(r"\[\{([^{}]*)\}\]|\{([^{}]*)\}|#([^#]+)#")
"""A list, a value, or the name of a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Production:
    """One text of a rule, used when its condition holds."""

    text: str
    condition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Commands and responses.

    Attributes:
        commands: Action -> the template of its command.
        responses: Action -> the text of its response.
        rules: Rule -> its texts; the first whose condition holds is used.
    """

    commands: Mapping[str, str]
    responses: Mapping[str, str]
    rules: Mapping[str, tuple[Production, ...]]

    def with_task(self, sentence: str) -> "Grammar":
        """The grammar of a game with this task, in place of the gap that the package leaves for it."""
        task = tuple(replace(each, text=each.text.replace("UNKNOWN GOAL", sentence)) for each in self.rules["task"])
        return replace(self, rules=ChainMap({"task": task}, cast("dict[str, tuple[Production, ...]]", self.rules)))

    def write(self, text: str, binding: Mapping[str, str], facts: Facts, names: Mapping[str, str]) -> str:
        """Expands a text.

        Args:
            text: A text with symbols, such as a template.
            binding: Variable, without "?" -> object.
            facts: The facts that conditions query.
            names: Object -> its name in texts.

        Raises:
            ValueError: when a rule is missing or has no text that applies.
        """

        def symbol(match: re.Match[str]) -> str:
            listed, value, rule = match.groups()
            if rule is not None:
                return self._rule(rule, binding, facts, names)
            parts = list(self._values(listed if value is None else value, binding, facts, names))
            if value is not None:
                return "".join(parts)
            if not parts:
                return self._rule("list_empty", binding, facts, names)
            between, last = (
                self._rule(f"list_{each}", binding, facts, names) for each in ("separator", "last_separator")
            )
            return parts[0] if len(parts) == 1 else between.join(parts[:-1]) + last + parts[-1]

        return SYMBOL.sub(symbol, text)

    def _rule(self, rule: str, binding: Mapping[str, str], facts: Facts, names: Mapping[str, str]) -> str:
        for production in self.rules.get(rule, ()):
            if not production.condition or next(_query(production.condition, binding, facts), None) is not None:
                return self.write(production.text, binding, facts, names)
        raise ValueError(
            f"grammar: got the symbol #{rule}#, for which no text applies; need a rule without a condition"
        )

    def _values(self, inner: str, binding: Mapping[str, str], facts: Facts, names: Mapping[str, str]) -> Iterator[str]:
        expression, _, condition = (part.strip() for part in inner.partition("|"))
        for found in _query(condition, binding, facts) if condition else (binding,):
            if expression.startswith("#"):
                yield self._rule(expression.strip("#"), found, facts, names)
            else:
                yield "".join(_value(term, found, names) for term in expression.split(" + "))


@lru_cache(maxsize=4)
def read_grammar(text: str) -> Grammar:
    """Parses a grammar file.

    Raises:
        ValueError: when a part of it is no JSON.
    """
    rules: dict[str, tuple[Production, ...]] = {}
    for block in GRAMMAR.findall(text):
        lines = [line for line in str(block).split("\n") if not line.lstrip().startswith("#")]
        for name, options in cast("dict[str, Any]", parse_json("\n".join(lines))).items():
            rules[name] = tuple(
                Production(text=each["rhs"].replace("\\n", "\n"), condition=each.get("condition", ""))
                for each in options
            )
    actions = ACTION.findall(text)
    return Grammar(
        commands={name.lower(): template for name, template, _ in actions},
        responses={name.lower(): response for name, _, response in actions},
        rules=rules,
    )


def _value(term: str, binding: Mapping[str, str], names: Mapping[str, str]) -> str:
    """The value of `'text'`, `o`, `o.name`, `o.indefinite`, or `o.name or o.id`."""
    if term.startswith("'"):
        return term.strip("'")
    variable, _, attribute = term.partition(" or ")[0].strip().partition(".")
    if attribute == "indefinite":
        return "a"
    return binding[variable] if attribute == "id" else names[binding[variable]]


@lru_cache(maxsize=1024)
def _literals(condition: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parses `name(o:object) & other(o:object, r:receptacle)`."""
    found = re.findall(r"(\w+)\(([^()]*)\)", condition)
    return tuple((name, tuple(term.partition(":")[0].strip() for term in terms.split(","))) for name, terms in found)


def _query(condition: str, binding: Mapping[str, str], facts: Facts) -> Iterator[Mapping[str, str]]:
    """Yields the bindings under which all literals hold, in TextWorld's order; no two variables share an object."""

    def search(
        literals: tuple[tuple[str, tuple[str, ...]], ...], now: Mapping[str, str]
    ) -> Iterator[Mapping[str, str]]:
        if not literals:
            yield now
            return
        predicate, terms = literals[0]
        for row in facts.rows(predicate):
            found, used = dict(now), set(now.values())
            for term, value in zip(terms, row[1:], strict=True):
                if term not in found and value not in used:
                    found[term] = value
                    used.add(value)
                elif found.get(term) != value:
                    break
            else:
                yield from search(literals[1:], found)

    return search(_literals(condition), binding)
