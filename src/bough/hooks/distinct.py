"""Each channel is paid, and each estimate given, by one piece of a run."""

from collections.abc import Iterable

from bough.needs import Estimate, gives_of, names_of
from bough.tree import HasRewardRanges


def refuse_repeats(pieces: Iterable[object]) -> None:
    """Refuse rewards or hooks of which a later one would overwrite the channel or the estimate of an earlier one.

    Raises:
        ValueError: names both pieces, and the channel or the estimate.
    """
    first: dict[str, str] = {}
    for piece in pieces:
        own = type(piece).__name__
        names = [f"the channel {name!r}" for name in piece.reward_ranges] if isinstance(piece, HasRewardRanges) else []
        names += [f"the estimate {name!r}" for name in names_of(gives_of(piece), Estimate)]
        for name in names:
            if name in first:
                both = f"{own} twice" if first[name] == own else f"{first[name]} and {own}"
                raise ValueError(f"got {both}, which write {name}; need one piece for each: remove one of them")
            first[name] = own
