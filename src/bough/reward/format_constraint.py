"""A constraint on the format of whole paths, against paths that exploit a judge of steps."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, Regex, piece
from bough.tree import (
    Bools,
    Floats,
    Ints,
    Kind,
    RewardRange,
    Tree,
    counted,
    sum_to_root,
    texts_at,
    turn_start,
    turns,
)
from bough.tree.endings import last_action


@piece
class FormatConstraint:
    """Channel "format_constraint": 1 at the end of a path that meets it, else 0: SPARK's constraint (arXiv 2512.03244).

    A path meets it if `answer` occurs once in its actions, and at the end of the last one; if it has `min_steps`
    to `max_steps` turns; and if no turn has more than `step_tokens` tokens. It refuses three exploits:

        a second, solved problem after the answer     two answers, or text after the answer
        many trivial steps, which dilute a wrong one  more than `max_steps`
        all in one step, which has one verdict        fewer than `min_steps`, or more than `step_tokens`

    Attributes:
        answer: A regular expression of an answer; "" for paths without one.
        min_steps: Minimum number of turns.
        max_steps: Maximum number of turns; None sets no limit.
        step_tokens: Maximum number of tokens of a turn; None sets no limit.
        weight: Factor.
    """

    answer: Annotated[str, Regex()] = ""
    min_steps: Annotated[int, AtLeast(1)] = 1
    max_steps: Annotated[int | None, AtLeast(1)] = None
    step_tokens: Annotated[int | None, AtLeast(1)] = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.max_steps is not None and self.max_steps < self.min_steps:
            raise ValueError(
                f"FormatConstraint.max_steps: got {self.max_steps}; need at least min_steps={self.min_steps}, or None"
            )

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """0 or `weight`."""
        return {"format_constraint": RewardRange.of(0, 1, weight=self.weight, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the leaves of counted paths."""
        return [{"format_constraint": self.weight * self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        ends, paid = counted(tree), np.zeros(tree.nodes)
        steps = turns(tree)[ends]
        fits = steps >= self.min_steps
        if self.max_steps is not None:
            fits &= steps <= self.max_steps
        if self.step_tokens is not None:
            fits &= sum_to_root(tree, _turn_tokens(tree) > self.step_tokens)[ends] == 0
        if self.answer:
            fits &= self._answered_once(tree)[ends]
        paid[ends] = fits
        return paid

    def _answered_once(self, tree: Tree) -> Bools:
        """[N] bool: whether the turns of the path to each node have one answer, at the end of the last turn."""
        answers, last = np.zeros(tree.nodes, dtype=np.bool_), np.zeros(tree.nodes, dtype=np.bool_)
        pattern = re.compile(self.answer)
        acts = tree.kind == Kind.ACTION
        node = np.flatnonzero(acts)
        texts = [text.strip() for text in texts_at(tree, node)]
        answers[node] = [pattern.search(text) is not None for text in texts]
        last[node] = [
            answer and [found.end() for found in pattern.finditer(text)] == [len(text)]
            for text, answer in zip(texts, answers[node].tolist(), strict=True)
        ]
        # A turn is over where the next node is no action.
        over = acts[tree.parent] & ~acts
        over[0] = False
        earlier = sum_to_root(tree, over & answers[tree.parent])
        final = last_action(tree)
        return last[final] & (earlier == np.where(acts, 0, 1))


def _turn_tokens(tree: Tree) -> Ints:
    """[N] int64: at an `ACTION` node the tokens of its turn so far, the node included; 0 at any other node."""
    acts = tree.kind == Kind.ACTION
    written = np.diff(tree.span) * acts
    total, start = sum_to_root(tree, written), turn_start(tree)
    return (acts * (total - total[start] + written[start])).astype(np.int64)
