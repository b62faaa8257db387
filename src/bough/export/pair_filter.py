"""The filter of preference pairs by the difference of their texts."""

from typing import Annotated

from bough.explore.text_similarity import edit_distance, rouge_l
from bough.piece import AtLeast, Between, piece


@piece
class PairFilter:
    """Filters of pairs by their texts: rStar-Math's edit distance (arXiv 2501.04519) and iTool's overlap.

    Compares the policy's texts on the two sides, without observations:

        push left then up      push left then down      4 edits, overlap .75
        push up                push down                4 edits, overlap .5

    Overlap is ROUGE-L over words: twice the longest common subsequence over the sum of the lengths. iTool (2501.09766)
    also bounds an overlap; its measure could not be checked.

    Attributes:
        edits: Minimum edit distance of the sides in characters, >= 0: 20 in rStar-Math.
        overlap: Maximum overlap, in [0, 1].
    """

    edits: Annotated[int, AtLeast(0)] = 0
    overlap: Annotated[float, Between(0, 1)] = 1.0

    @property
    def filters(self) -> bool:
        """Whether the filter can reject any pair."""
        return self.edits > 0 or self.overlap < 1

    def __call__(self, one: str, other: str) -> bool:
        """Whether two texts differ enough."""
        # The edit distance is at least the difference of the lengths.
        far = abs(len(one) - len(other)) >= self.edits or edit_distance(one, other) >= self.edits
        return far and (self.overlap == 1 or rouge_l(one.split(), other.split()) <= self.overlap)


ANY = PairFilter()
"""Accepts all pairs."""
