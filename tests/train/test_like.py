"""`--like` sets another library's defaults, and names those that a run does not have."""

from dataclasses import replace

import pytest
from tests.small import run

from bough.config import ConfigError
from bough.credit import Gae
from bough.train.like import DEFAULTS, like


@pytest.mark.parametrize("library", DEFAULTS)
def test_the_defaults_are_set_and_printed(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed = like(run(), library)
    optimizer = changed.world.optimizer
    assert optimizer.learning_rate == 1e-6
    assert optimizer.betas == (0.9, 0.999)
    assert optimizer.weight_decay == {"trl": 0.0, "verl": 0.01}[library]
    assert changed.world.regularizers == ()
    assert changed.world.sampling.temperature == 1.0
    said = capsys.readouterr().err
    assert said.startswith(f"as {DEFAULTS[library][0]}: optimizer.learning_rate=1e-06 ")
    assert "are not settings" not in said, "each of its changes fits a run of GRPO"


def test_what_the_run_lacks_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    whole = run()
    without = replace(whole, method=replace(whole.method, credit=Gae()))
    changed = like(without, "trl")
    assert changed.method.credit == Gae()
    said = capsys.readouterr().err
    set_, _, left = said.partition("; ")
    assert "credit.epsilon" not in set_
    assert "credit.epsilon" in left
    assert "are not settings of this run" in left


def test_no_library_changes_nothing_and_an_unknown_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    whole = run()
    assert like(whole, None) is whole
    assert not capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"--like: .*tlr.*trl"):
        like(whole, "tlr")
