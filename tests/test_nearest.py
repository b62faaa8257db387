import pytest

from bough.config import unknown

KNOWN = ["Grpo", "rloo", "grpo_sokoban", "mcts"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("GRPO", "unknown name 'GRPO'; did you mean 'Grpo'?"),
        ("Rlo", "unknown name 'Rlo'; did you mean 'rloo'?"),
        ("mtcs", "unknown name 'mtcs'; did you mean 'mcts'?"),
        ("sokoban", "unknown name 'sokoban'; did you mean 'grpo_sokoban'?"),
        ("zzzz", "unknown name 'zzzz'; need one of Grpo, grpo_sokoban, mcts, rloo"),
    ],
)
def test_suggestions(name: str, told: str) -> None:
    assert unknown(name, KNOWN) == told


def test_no_name_is_near() -> None:
    assert unknown("zzzz", KNOWN, otherwise="see the list") == "unknown name 'zzzz'; see the list"
    assert unknown("x", []) == "unknown name 'x'; there is none to choose from"
