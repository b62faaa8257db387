"""How much a model has to compute to learn from tokens."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Multiplications and additions of a look at tokens and the way back from it.

    Each weight is used in one product forward and two backward; the output layer's logits are computed once more, as
    they are not kept; attention takes two products of queries and keys forward and five backward.

    Attributes:
        weights: How many a token meets, without the embeddings and the output layer.
        after: Those that it meets after the last layer's attention, if a token can be spared them, or 0.
        head: Words times width.
        attention: Layers times query heads times their width.
    """

    weights: int
    after: int
    head: int
    attention: int

    @property
    def effort(self) -> float:
        """How many times as much a token takes after which something is predicted, attention aside."""
        return (6 * self.weights + 8 * self.head) / (6 * (self.weights - self.after))

    def operations(self, *, tokens: int, trained: int, pairs: int, spared: int = 0) -> int:
        """For so many tokens, trained tokens, and pairs of a token and one that it sees.

        So many tokens are `spared` what comes after the last layer's attention.
        """
        products = self.weights * tokens - self.after * spared
        return 6 * products + 8 * self.head * trained + 14 * self.attention * pairs
