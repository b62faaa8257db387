from pathlib import Path

import pytest

from bough.usercode import load_module

FILE = Path(__file__).parents[2] / "examples" / "bare_loop.py"


def test_the_bare_loop_trains_and_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    rates = load_module(FILE).train(steps=2, batch_tasks=4, demonstrations=32)
    assert len(rates) == 2
    assert min(rates) > 0.1, "a random policy solves almost none of these tasks"
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["1", "2"]
    assert len({line.split()[-1] for line in lines}) == 2, "the loss of a second batch differs"
    assert len(FILE.read_text().splitlines()) < 150
