"""Seeds by name."""

from bough.tree import derive


def test_names_may_have_halves_of_signs() -> None:
    """Texts of a task may hold them, since JSON can."""
    assert derive(0, "a \ud83d") != derive(0, "a \ude00")
    assert derive(0, "caf\u00e9") == derive(0, "caf\u00e9")
