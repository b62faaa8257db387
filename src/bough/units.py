"""Multiples of a byte, and counts with their noun."""

MIB = 2**20
GIB = 2**30


def number_of(count: float, thing: str) -> str:
    """A count with its noun in the singular or the plural: "1 rank", "2 ranks"."""
    plural = "es" if thing.endswith("s") else "s"
    return f"{count:,.0f} {thing}{'' if count == 1 else plural}"
