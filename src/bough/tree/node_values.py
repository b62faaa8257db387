"""The values of a node that is not frozen, for the columns that may be unknown."""

import math
from dataclasses import dataclass

from bough.tree.marks import TruncatedBy


@dataclass(slots=True, kw_only=True)
class NodeValues:
    """The columns of `Tree` with a value where unknown, at one node; the texts are those of `Tree`. None is unknown."""

    success: bool | None = None
    valid: bool | None = None
    well_formed: bool | None = None
    cut_off: bool | None = None
    truncated_by: TruncatedBy = TruncatedBy.NOTHING
    chain: int | None = None
    answer: bool = False
    value: float = math.nan
    rating: float = math.nan
    visits: int = 0
    seat: int = 0
