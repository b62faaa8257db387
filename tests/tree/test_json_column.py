"""JSON values in columns of bytes."""

import numpy as np

from bough.tree import json_column, read_json_column


def test_a_value_comes_back_from_its_bytes() -> None:
    value = {"names": ["é", ""], "none": None, "numbers": [1, 0.1]}
    column = json_column(value)
    assert column.dtype == np.uint8
    assert read_json_column(column) == value
    assert read_json_column(column.astype(np.int64)) == value
