"""The declaration of a column: its dtype, its length, and its value where it is unknown."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

Length: TypeAlias = Literal["node", "token", "offset"]
"""One value for each of N nodes, one for each of T tokens, or N + 1 offsets."""

COLUMN = "column"
"""The key of the declaration in the metadata of a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What is declared about a column; its name and its text are those of the field.

    Attributes:
        dtype: Of the array.
        per: What it has a value for.
        unknown: The value where nothing is known; None for a column that every node has. A column of `Tree` with such a
            value is a field of `NodeValues` too.
        of_action: Whether it is about an action, so that the view of another seat does not have it.
    """

    dtype: np.dtype[np.generic]
    per: Length = "node"
    unknown: float | None = None
    of_action: bool = False


def column(dtype: DTypeLike, *, per: Length = "node", unknown: float | None = None, of_action: bool = False) -> Any:
    """A field of a dataclass that is a column."""
    declared = Column(dtype=np.dtype(dtype), per=per, unknown=unknown, of_action=of_action)
    return field(metadata={COLUMN: declared})


def columns_of(cls: Any) -> dict[str, Column]:
    """The columns of a dataclass by name, in the order of its fields."""
    return {each.name: each.metadata[COLUMN] for each in fields(cls) if COLUMN in each.metadata}
