"""What each share of an update computed, in its metrics."""

import re
from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


def tokens_of_shares(metrics: Mapping[str, float]) -> list[float]:
    """The tokens of each share; none where one worker computed all."""
    return [value for name, value in metrics.items() if name.startswith("update/tokens/")]


def without_shares(metrics: Mapping[str, Value]) -> dict[str, Value]:
    """The metrics that do not depend on the number of shares or ranks."""
    return {name: value for name, value in metrics.items() if not re.search(r"/\d|^rank/", name)}
