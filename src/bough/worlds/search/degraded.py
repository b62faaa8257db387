"""A search engine whose results degrade, in the manner of ZeroSearch (arXiv 2505.04588)."""

from hashlib import blake2b

from bough.worlds.search.index import Index, terms


def degraded_search(index: Index, query: str, *, top: int, noise: float, seed: int) -> list[int]:
    """The first `top` documents for a query; with probability `noise` the ones ranked behind them.

    ZeroSearch's model writes useful or useless documents. Here a useless result is the next page, whose documents share
    words with the query and rarely state the fact. The choice is a function of seed and query, so a repeated query
    gives the same result. A result that is degraded at some noise is degraded at any higher noise.

    Args:
        index: The index.
        query: The query.
        top: Number of documents, >= 1.
        noise: Probability in [0, 1].
        seed: Seed of the choice.
    """
    if noise <= 0 or chance(query, seed) >= noise:
        return index.search(query, top)
    return index.search(query, 2 * top)[top:]


def chance(query: str, seed: int) -> float:
    """A number in [0, 1) from the words of a query and a seed, the same on every machine."""
    digest = blake2b(f"{seed} {' '.join(terms(query))}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
