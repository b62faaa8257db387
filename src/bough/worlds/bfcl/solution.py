"""The ground truth of an episode: its calls, their results, the states after each user turn, and the checks."""

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from bough.tree import ToolCall
from bough.worlds.bfcl.apis import Apis, copy_apis, execute, load_apis
from bough.worlds.bfcl.entries import entries
from bough.worlds.bfcl.functions import functions
from bough.worlds.bfcl.package import CHECKER, module


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedTurn:
    """A user turn of the ground truth.

    Attributes:
        calls: The calls; () where a function or an argument is missing, or no call is required.
        results: Their results.
        apis: The instances after them.
    """

    calls: tuple[ToolCall, ...]
    results: tuple[str, ...] = field(repr=False)
    apis: Apis = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The ground truth of an episode.

    Attributes:
        start: The instances before the first turn.
        turns: The user turns.
    """

    start: Apis = field(repr=False)
    turns: tuple[SolvedTurn, ...]

    @property
    def checked(self) -> int:
        """Number of user turns with calls; the others pass whatever the agent does."""
        return sum(bool(turn.calls) for turn in self.turns)


@lru_cache(maxsize=256)
def solution(name: str) -> Solution:
    """Executes the ground truth of an episode.

    Raises:
        KeyError: when no episode has the name.
        ImportError: when bfcl-eval or mpmath is not installed.
    """
    entry = entries()[name]
    start = load_apis(entry.classes, entry.config, long_context=entry.category == "long_context")
    apis, turns = start, list[SolvedTurn]()
    for texts in entry.truth:
        calls = tuple(map(parse_call, texts))
        apis = copy_apis(apis)
        turns.append(SolvedTurn(calls=calls, results=tuple(execute(apis, call) for call in calls), apis=apis))
    return Solution(start=start, turns=tuple(turns))


def parse_call(text: str) -> ToolCall:
    """A Python call of the ground truth as a call with named arguments.

    Examples:
        >>> parse_call("sort('report.pdf')")
        ToolCall(name='sort', arguments={'file_name': 'report.pdf'}, call_id='')

    Raises:
        ValueError: when the text is no call of a function with literal arguments.
    """
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in functions():
        raise ValueError(f"BFCL: got the ground truth {text!r}; need a call of a documented function")
    names = functions()[node.func.id].parameters
    named = [*zip(names, node.args, strict=False), *((each.arg or "", each.value) for each in node.keywords)]
    return ToolCall(name=node.func.id, arguments={name: _plain(ast.literal_eval(value)) for name, value in named})


def passes(turn: SolvedTurn, apis: Apis, results: Sequence[str], *, called: bool) -> bool:
    """Whether a user turn passes the package's checks of state and responses.

    The public attributes of all instances must equal those of the ground truth. The results of the ground truth must be
    among those of this turn and all earlier ones.

    Args:
        turn: The ground truth.
        apis: The instances after the agent's turn.
        results: The results of all calls so far.
        called: Whether the agent has made a call in this turn.
    """
    if not turn.calls:
        return True
    if not called:
        return False
    checker = module(CHECKER)
    try:
        return bool(
            checker.state_checker(apis, turn.apis)["valid"]
            and checker.response_checker(list(results), list(turn.results), 0)["valid"]
        )
    except RecursionError:  # a folder inside itself
        return False


def needed(turns: Iterable[SolvedTurn], results: Sequence[str]) -> tuple[int, ...]:
    """How often each result that the turns require has occurred, up to the number that one turn requires."""
    most: Counter[str] = Counter()
    for turn in turns:
        most |= Counter(turn.results)
    seen = Counter(results)
    return tuple(min(seen[result], count) for result, count in most.items())


def _plain(value: object) -> object:
    """A literal as JSON has it: a tuple is a list."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Sequence[object]", value)]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in cast("dict[object, object]", value).items()}
    return value
