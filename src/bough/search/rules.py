"""Scores of nodes by simple rules: the length of the state's text, matches in it, and the kind of the last action."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from bough.piece import Regex, piece
from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode
from bough.tree import plain_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestState:
    """Minus the number of characters of the state's text (MPS-Prover, arXiv 2505.10962): short states first.

    A node that is not executed has the text of its parent.
    """

    fixed: ClassVar[bool] = True

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        return -float(len(state_text(node)))


@piece
class FewestMatches:
    """Minus the number of matches of a pattern in the state's text (MPS-Prover, arXiv 2505.10962): fewest cases first.

    Attributes:
        pattern: A regular expression, such as of the beginning of an open case; the default finds the goals of Lean.
    """

    fixed: ClassVar[bool] = True

    pattern: Annotated[str, Regex()] = "⊢"

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        return -float(sum(1 for _ in re.finditer(self.pattern, state_text(node), re.MULTILINE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionKind:
    """A score by the kind of the last action (MPS-Prover, arXiv 2505.10962): effective kinds of tactics first.

    Examples:
        scores={"^(simp|ring)": 1, "^have": .5}: 1 for "ring_nf", .5 for "have h", 0 for others.

    Attributes:
        scores: Score by regular expression of an action; the first match counts, other actions have 0.
    """

    fixed: ClassVar[bool] = True

    scores: Mapping[str, float] = field(
        default_factory=lambda: {
            "^(nlinarith|linarith|norm_num|field_simp|ring_nf|omega|positivity)": 2.0,
            "^(have|obtain|rw|induction|apply|exact)": 1.0,
        }
    )

    def __post_init__(self) -> None:
        for pattern, number in self.scores.items():
            _check("ActionKind.scores", pattern)
            if math.isnan(number):
                raise ValueError(f"ActionKind.scores[{pattern!r}]: got nan; need a number")

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        return next((number for pattern, number in self.scores.items() if re.search(pattern, node.action)), 0.0)


def state_text(node: SearchNode) -> str:
    """The observation in the state of a node; that of its parent before the node is executed, and "" after an end."""
    place = node if node.at is not None or node.parent is None else node.parent
    return plain_text(place.at.state.observation) if isinstance(place.at, Cursor) else ""


def _check(owner: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{owner}: got {pattern!r} ({error}); need a regular expression") from error
