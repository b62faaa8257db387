"""Counts the floating-point operations of a model update."""

from dataclasses import dataclass
from typing import TypeVar

from bough.tree import Ints

Number = TypeVar("Number", int, Ints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Floating-point operations of a forward and a backward pass.

    Each weight is in one product forward and two backward. The output layer's logits are computed once more, as they
    are not stored. Attention takes two products of queries and keys forward and five backward.

    Attributes:
        weights: Weights that a token passes through, without the embeddings and the output layer.
        after: Weights after the last layer's attention if tokens can skip them, else 0.
        head: Vocabulary size times width.
        attention: Layers times query heads times their width.
    """

    weights: int
    after: int
    head: int
    attention: int

    @property
    def effort(self) -> float:
        """Ratio of the operations of a trained token to those of another token, without attention."""
        return (6 * self.weights + 8 * self.head) / (6 * (self.weights - self.after))

    def operations(self, *, tokens: Number, trained: Number, pairs: Number, skipped_tokens: int = 0) -> Number:
        """The operations of an update; of several, for arrays.

        Args:
            tokens: Tokens of the forward pass.
            trained: Trained tokens.
            pairs: Pairs of a query and a visible key.
            skipped_tokens: Tokens that skip the work after the last layer's attention.
        """
        products = self.weights * tokens - self.after * skipped_tokens
        return 6 * products + 8 * self.head * trained + 14 * self.attention * pairs
