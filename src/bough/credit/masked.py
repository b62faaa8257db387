"""No advantage for parts of a turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from bough.credit.credit import Credit, compares_with
from bough.credit.grpo import Grpo
from bough.credit.marks import all_spans, marked
from bough.needs import Need, annotation
from bough.tree import Bools, Credited, Floats, PathView, Rewarded, annotation_spans, path_view


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSpans:
    """SSRL's mask of information tokens (arXiv 2508.10874): the tokens of some spans get a zero advantage.

    The spans are the parser's, found while the turn was sampled, so they hold line breaks and equal texts exactly: the
    authors' code finds them again by a regular expression that stops at a line break. A span is masked when its name is
    `span`, or `span` with a number: "information", "information 2". A token that the span shares with its neighbour is
    masked too.

    A zero advantage gives an exactly zero gradient of losses on advantages. The tokens still count in the mean of the
    loss, and terms without an advantage (`Kl`, `Entropy`) still have a gradient there.

    With only="negative" it is the adaptive mask of DialTree-RPO (arXiv 2510.02286), experimental: tokens of the form of
    an answer, such as tags, take no blame for its content. Negative advantages in the spans of well-formed turns are
    masked; positive ones stay, and so do those of malformed turns, whose form is at fault. The spans
    "tag" are those of `Tagged`. The paper's rule was not seen: this is the one that its abstract describes.

    Try: `bough train grpo --on self_search credit='MaskedSpans(credit=Grpo())'`

    Attributes:
        credit: The rule for all other tokens.
        span: The name of the spans.
        only: Which advantages are masked.
    """

    credit: Credit = field(default_factory=Grpo)
    span: str = "information"
    only: Literal["all", "negative"] = "all"

    @property
    def needs(self) -> frozenset[Need]:
        """The annotation of this name."""
        return frozenset({annotation(self.span)})

    @property
    def compares(self) -> Literal["task", "batch", "nothing"]:
        """That of `credit`."""
        return compares_with(self.credit)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        masked = masked_tokens(view, self.span)
        if self.only == "negative":
            masked &= marked(view, "well_formed")[view.path_tokens.step]
        end = np.cumsum([0, *(len(path_view([each]).path_tokens.token) for each in rewarded)]).tolist()
        return [
            replace(each, path_advantage=self._masked(each.path_advantage, masked[end[at] : end[at + 1]]))
            for at, each in enumerate(self.credit(rewarded))
        ]

    def _masked(self, advantage: Floats, masked: Bools) -> Floats:
        """[E]: advantages with zeros at the masked tokens."""
        return np.where(masked & ((advantage < 0) | (self.only == "all")), 0.0, advantage)


def masked_tokens(view: PathView, span: str) -> Bools:
    """[E] bool, in the order of `view.path_tokens`: the tokens in spans of this name, with or without a number."""
    step = view.path_tokens.step
    count = view.tokens
    place = np.arange(len(step)) - (np.cumsum(count) - count)[step]
    masked = np.zeros(len(step), dtype=np.bool_)
    names = {name for parts in annotation_spans(view)[0] for name in parts}
    for first, end in all_spans(view, [name for name in names if _is_numbered(name, span)]).values():
        masked |= (place >= first[step]) & (place < end[step])
    return masked


def _is_numbered(name: str, span: str) -> bool:
    return name == span or (name.startswith(f"{span} ") and name[len(span) + 1 :].isdigit())
