"""What a value head values."""

from typing import Literal, TypeAlias

ValueOf: TypeAlias = Literal["state", "action"]
"""The state before a turn, at the turn's first token, or the turn's action, at its last token."""
