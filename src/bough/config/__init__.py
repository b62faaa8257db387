"""Settings: dataclasses as JSON and as text, changed field by field, with messages that name the field."""

from bough.config.config import ConfigError, dump, load
from bough.config.override import override
from bough.nearest import unknown

__all__ = ["ConfigError", "dump", "load", "override", "unknown"]
