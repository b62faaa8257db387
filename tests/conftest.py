"""Shapes and types of the whole package are checked at run time, in tests only."""

from jaxtyping import install_import_hook

# Before anything imports bough: only modules that are imported under the hook are checked.
install_import_hook("bough", "beartype.beartype")
