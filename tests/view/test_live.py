import subprocess
import sys

import pytest

from bough.view import Live, Progress

METRICS = {
    "train/success": 0.4375,
    "heldout/success": 0.512,
    "heldout/low": 0.46,
    "heldout/high": 0.563,
    "reward/mean": 0.41,
    "speed/tokens_per_s": 1834.4,
    "time/grow_s": 3.0,
    "time/learn_s": 1.0,
}


class Clock:
    """Stands still until it is told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_lines_when_not_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Live("demo", steps=11, clock=clock) as live:
        for step in (1, 2):
            clock.now_s += 10.0
            live.update(Progress(step=step, steps=11, phase="rl", metrics=METRICS if step == 1 else {}))
        live.say("saved [bold]")
    assert capsys.readouterr().out.splitlines() == [
        "demo: 11 steps",
        "step 1/11  train 43.8%  held-out 51.2% (46.0-56.3)  reward 0.41  tokens/s 1,834",
        "step 2/11  eta 1m 30s",
        "saved [bold]",
    ]


def test_lines_are_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    with Live("demo", steps=1) as live:
        live.update(Progress(step=1, steps=1, metrics={"reward/mean": -0.41, "loss/total": -1.2e-5}))
    assert capsys.readouterr().out.splitlines()[1] == "step 1/1  reward -0.41  loss -1.2e-05"


def test_cut_and_invalid_actions_are_shown_where_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    with Live("demo", steps=2, terminal=False, clock=Clock()) as live:
        live.update(Progress(step=1, steps=2, metrics={"train/cut_actions": 0.0, "train/valid_actions": 1.0}))
        live.update(Progress(step=2, steps=2, metrics={"train/cut_actions": 0.25, "train/valid_actions": 0.9}))
    assert capsys.readouterr().out.splitlines()[1:] == ["step 1/2", "step 2/2  cut off 25.0%  valid 90.0%"]


def test_the_time_left_is_the_mean_of_this_phase(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Live("demo", steps=3, clock=clock) as live:
        for step, took_s, phase in (
            (1, 90.0, "warmup"),
            (2, 90.0, "warmup"),
            (4, 5.0, "rl"),
            (5, 4.0, "rl"),
            (6, 6.0, "rl"),
        ):
            clock.now_s += took_s
            live.update(Progress(step=step, steps=16, ends=3 if phase == "warmup" else 16, phase=phase, metrics={}))
    assert [line.partition("eta ")[2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "",
        "1m 30s",
        "",
        "44s",
        "50s",
    ]


def test_a_panel_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Live("demo [red]", steps=10, terminal=True, clock=clock) as live:
        live.update(Progress(step=4, steps=10, phase="rl", metrics=METRICS))
        live.update(Progress(step=5, steps=10, phase="rl", metrics={"train/success": 0.5, "groups/dropped": 2}))
        live.say("saved [bold]")
    drawn = capsys.readouterr().out
    for text in ("demo [red]", "5/10", "50.0%", "51.2% (46.0-56.3) at 4", "grow 75%", "learn 25%", "saved [bold]"):
        assert text in drawn
    assert "groups dropped" in drawn
    assert "entropy" not in drawn


def test_looking_needs_nothing_heavy() -> None:
    code = (
        "import sys, bough.view\n"
        "heavy = {'torch', 'transformers', 'rich', 'tensorboard'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
