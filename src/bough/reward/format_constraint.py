"""A constraint on the format of whole paths, against paths that exploit a judge of steps."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.checks import check_finite
from bough.tree import Floats, Kind, PayRange, Tree, counted, path, text_in


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatConstraint:
    """Channel "format_constraint": 1 at the end of a path that meets it, else 0: SPARK's constraint (arXiv 2512.03244).

    A path meets it if `answer` occurs once in its actions, and at the end of the last one; if it has `least_steps`
    to `most_steps` turns; and if no turn has more than `step_tokens` tokens. It refuses three exploits:

        a second, solved problem after the answer     two answers, or text after the answer
        many trivial steps, which dilute a wrong one  more than `most_steps`
        all in one step, which has one verdict        fewer than `least_steps`, or more than `step_tokens`

    Attributes:
        answer: A regular expression of an answer; "" for paths without one.
        least_steps: Minimum number of turns.
        most_steps: Maximum number of turns; None sets no limit.
        step_tokens: Maximum number of tokens of a turn; None sets no limit.
        weight: Factor.
    """

    answer: str = ""
    least_steps: int = 1
    most_steps: int | None = None
    step_tokens: int | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        try:
            re.compile(self.answer)
        except re.error as error:
            raise ValueError(
                f"FormatConstraint.answer: got {self.answer!r} ({error}); need a regular expression"
            ) from error
        most = self.least_steps if self.most_steps is None else self.most_steps
        if self.least_steps < 1 or most < self.least_steps or (self.step_tokens is not None and self.step_tokens < 1):
            raise ValueError(
                f"FormatConstraint: got least_steps={self.least_steps}, most_steps={self.most_steps}, step_tokens="
                f"{self.step_tokens}; need at least 1, at least least_steps, and at least 1"
            )
        check_finite(self)

    @property
    def pays(self) -> Mapping[str, PayRange]:
        """0 or `weight`."""
        return {"format_constraint": PayRange.of(0, 1, weight=self.weight, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the leaves of counted paths."""
        return [{"format_constraint": self.weight * self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        paid = np.zeros(tree.nodes)
        for leaf in counted(tree).tolist():
            paid[leaf] = float(self._fits(tree, leaf))
        return paid

    def _fits(self, tree: Tree, leaf: int) -> bool:
        turns: list[tuple[str, int]] = []
        tokens, inside = 0, False
        for node in map(int, path(tree, leaf)):
            if tree.kind[node] != Kind.ACTION:
                inside = False
                continue
            tokens = len(tree.tokens_of(node)) + (tokens if inside else 0)
            turns[len(turns) - inside :] = [(text_in(tree.info[node]) or "", tokens)]
            inside = True
        if not self.least_steps <= len(turns) <= (self.most_steps or len(turns)):
            return False
        if self.step_tokens is not None and any(count > self.step_tokens for _, count in turns):
            return False
        texts = [text.strip() for text, _ in turns]
        ends = [found.end() for found in re.finditer(self.answer, texts[-1])] if self.answer else []
        earlier = any(re.search(self.answer, text) for text in texts[:-1])
        return not self.answer or (len(ends) == 1 and ends[0] == len(texts[-1]) and not earlier)
