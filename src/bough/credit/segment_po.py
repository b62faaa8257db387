"""Advantages of segments: the change of the expected return over each."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.credit.branches import rise, stem_of, value_after, value_before
from bough.piece import Between, piece
from bough.tree import Bools, Credited, Floats, Ints, Rewarded, path_view, spread_tokens


@piece
class SegmentPo:
    """Segment PO (SPO, arXiv 2505.23564): a segment's advantage is its rise in value; needs a branching tree.

    The value of a node is the mean return of the counted paths that continue from it. A segment is a run of turns
    without a fork (`stem_of`), and every token of it gets

        A = V(at its end) - V(at its start),            0 for tokens sampled with a probability above `certain`

    The last segment of a path ends at the path's return; the prompts of a task are one node. A prompt (value 0.5) with
    two branches a and b, the first of which has three below it:

                  a      a1      a2      a3       b
        V     0.667       1       0       1       0
        A     0.167   0.333  -0.667   0.333    -0.5

    A nearly certain token gets no credit; the paper cuts segments so that each has an equal number of uncertain
    tokens. Chains that fork only at the prompt are one segment each: this is then GRPO
    without a standard deviation, which the method is not. The paper grows a full tree, or estimates the values of
    chains by further samples at the cuts; for the latter there is `segments`. Single-stream policy optimization
    (2509.13232) has the same initials and is another method.

    Attributes:
        certain: Largest rollout probability of a token with credit, in (0, 1]; 1 gives credit to all.
    """

    certain: Annotated[float, Between(0, 1, above=True)] = 0.9

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded).by_fork
        path_tokens = view.path_tokens
        gained = rise(value_after(view, view.returns), value_before(view, view.returns)[stem_of(view)])
        probability = np.exp(view.of_tokens("logprob")[path_tokens.token])
        return spread_tokens(view, np.where(_open(probability, self.certain), gained[path_tokens.step], 0.0))


def segments(cut: Ints, value: Floats, score: float, probability: Floats, *, certain: float = 0.9) -> Floats:
    """[tokens] float64: the advantages of the tokens of one chain, given sampled value estimates at its cuts.

    Segment i goes from the token after `cut[i]` up to `cut[i + 1]`, the last one to the end:

        cut -1, 1, 3   value 0.5, 0.25, 0.75   score 1   probability  0.5   0.95  0.5  0.5  0.5   0.99
                                                         advantage   -0.25  0     0.5  0.5  0.25  0

    Args:
        cut: [segments], ascending: the last token before each segment, -1 for the first.
        value: [segments], estimated at the start of each segment.
        score: The chain's final score.
        probability: [tokens], under the sampling policy.
        certain: As in `SegmentPo`.
    """
    if len(cut) != len(value) or len(cut) == 0 or cut[0] != -1 or np.any(np.diff(cut) <= 0):
        raise ValueError(
            f"segments: got cuts {cut.tolist()} and {len(value)} values; need -1 first, then ascending, a value each"
        )
    gained = np.diff(value, append=score)
    segment = np.searchsorted(cut, np.arange(len(probability)), side="left") - 1
    return np.where(_open(probability, certain), gained[segment], 0.0)


def _open(probability: Floats, certain: float) -> Bools:
    """Whether a token was uncertain; a token that was not sampled has no probability."""
    return ~(probability > certain)
