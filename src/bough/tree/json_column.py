"""JSON values as columns of bytes, for checkpoints that hold arrays."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray


def json_column(value: object) -> NDArray[np.uint8]:
    """[n] uint8: a value as JSON in UTF-8.

    Examples:
        >>> read_json_column(json_column(["a", 1]))
        ['a', 1]
    """
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8).copy()


def read_json_column(column: NDArray[Any]) -> Any:
    """The value of `json_column`."""
    return json.loads(column.astype(np.uint8).tobytes())
