"""Builds the charts of a report from the rows of `metrics.jsonl`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bough.view.chart import Chart, Series
from bough.view.falling_checks import CHECK, checks_in
from bough.view.rising_rewards import MEAN, Row, channels, of_channel

AGREEMENT = "judge/agreement_"
"""Part of the name of a column's agreement with success, before the column."""


def curves(rows: Sequence[Row], *, graded: bool = False) -> list[Chart]:
    """The charts with at least one value.

    Args:
        rows: One a step, with "step", "phase" ("warmup", "start", "rl") and metrics by name; steps ascend over the run.
        graded: Whether the chart of rewards comes before the one of success.
    """
    warm = [float(row["step"]) for row in rows if row.get("phase") == "warmup"]
    warmup = max(warm) if warm else None
    charts = [
        _heldout("Success", rows, warmup, "heldout/success", ("heldout/low", "heldout/high"), "train/success"),
        _heldout(
            "Reward, mean per path",
            rows,
            warmup,
            "heldout/reward",
            ("heldout/reward_low", "heldout/reward_high"),
            "reward/mean",
        ),
    ]
    if graded:
        charts.reverse()
    charts = [replace(charts[0], wide=True), charts[1]]
    for title, names, share in (
        ("Entropy, nats per token", {"policy/entropy": "entropy"}, False),
        ("KL divergence", {"policy/kl_behaviour": "KL"}, False),
        ("Clipped tokens", {"policy/clip_high": "advantage > 0", "policy/clip_low": "advantage < 0"}, True),
        ("Turns, mean per path", {"heldout/turns": "held-out", "train/turns": "train"}, False),
        ("Tokens, mean per path", {"train/read_tokens": "context", "train/written_tokens": "sampled"}, False),
        ("Paths without a regular end", {"train/truncated": "truncated", "train/failed": "failed"}, True),
        ("Gradient norm", {"optimizer/gradient_norm": "before clipping"}, False),
        ("Memory of the process, GiB", {"memory/process_gib": "resident"}, False),
        ("Tokens per second", {"speed/tokens_per_s": "tokens/s"}, False),
        ("Sequences in a pass of the engine, mean", {"speed/in_flight": "in flight"}, False),
    ):
        charts.append(_chart(title, rows, names, share=share, warmup=warmup))
    shares = [dict(row) | _shares(row) for row in rows]
    charts.append(_chart("Shares of an update, tokens over their mean", shares, {"least": "least", "most": "most"}))
    charts += [each for name in channels(rows) for each in _channel(name, rows, warmup)]
    charts += [_check(name, rows, warmup) for name in checks_in(rows)]
    charts += _judges(rows, warmup)
    # The losses of imitation and of policy optimization are not comparable, so they do not share an axis.
    for phase, title in (("warmup", "Loss of the warm-up"), ("rl", "Loss of reinforcement learning")):
        charts.append(_chart(title, [row for row in rows if row.get("phase") == phase], {"loss/total": "loss"}))
    lost = {"groups/dropped": "groups dropped", "paths/failed": "paths failed"}
    if any(y for name in lost for y in _points(rows, name)[1]):
        charts.append(_chart("Dropped groups and failed paths", rows, lost, warmup=warmup))
    return [chart for chart in charts if chart.series]


def _heldout(
    title: str, rows: Sequence[Row], warmup: float | None, held_name: str, ends: tuple[str, str], train_name: str
) -> Chart:
    """A held-out number with its interval, and the same number in training."""
    held = [row for row in rows if _points([row], held_name)[0]]
    known = all(_points([row], end)[0] for row in held for end in ends)
    low, high = ends
    band = tuple((float(row[low]), float(row[high])) for row in held) if known else ()
    x, y = _points(held, held_name)
    heldout = Series(label="held-out", tone="one", x=x, y=y, band=band, marked=True)
    x, y = _points(rows, train_name)
    train = Series(label="train", tone="two", x=x, y=y)
    series = tuple(each for each in (heldout, train) if each.x)
    span = (float(rows[0]["step"]), float(rows[-1]["step"])) if rows else None
    share = held_name == "heldout/success"
    return Chart(title=title, series=series, share=share, full=share, span=span, warmup=warmup)


def _channel(name: str, rows: Sequence[Row], warmup: float | None) -> list[Chart]:
    """The mean of a reward channel, its pair accuracy, and the share of groups in which it differs."""
    label = name.replace(MEAN, "", 1)
    shares = {
        of_channel(name, "pair_accuracy"): "pair accuracy",
        of_channel(name, "nonzero_std"): "groups with std > 0",
    }
    return [
        _chart(f"Reward {label}, mean per path", rows, {name: label}, warmup=warmup),
        _chart(f"Reward {label}: pair accuracy, groups with std > 0", rows, shares, True, warmup),
    ]


def _check(name: str, rows: Sequence[Row], warmup: float | None) -> Chart:
    """The mean of a check on held-out episodes, with its interval, and in training."""
    check = name.replace(CHECK, "", 1)
    held, ends = f"heldout/{CHECK}{check}", (f"heldout/check_low/{check}", f"heldout/check_high/{check}")
    return _heldout(f"Check {check}, mean per path (not trained on)", rows, warmup, held, ends, name)


def _judges(rows: Sequence[Row], warmup: float | None) -> list[Chart]:
    """Questions to judges, answers without a verdict, and how often each column agrees with success."""
    # All of them are unreadable, late or refused.
    unread = {"judge/unknown": "all", "judge/unparsed": "unreadable"}
    charts = [
        _chart("Questions to judges per turn", rows, {"judge/questions_per_turn": "questions"}, warmup=warmup),
        _chart("Judges' answers without a verdict", rows, unread, warmup=warmup),
    ]
    for name in sorted({name for row in rows for name in row if name.startswith(AGREEMENT)}):
        column = name.removeprefix(AGREEMENT)
        charts.append(_chart(f"Paths whose {column} agrees with success", rows, {name: column}, True, warmup))
    return charts


def _shares(row: Row) -> dict[str, float]:
    """The least and the most tokens of a rank or thread, over their mean; empty where one computed all."""
    tokens = [float(value) for name, value in row.items() if name.startswith("update/tokens/")]
    mean = sum(tokens) / len(tokens) if tokens else 0.0
    return {"least": min(tokens) / mean, "most": max(tokens) / mean} if mean else {}


def _chart(
    title: str, rows: Sequence[Row], names: Mapping[str, str], share: bool = False, warmup: float | None = None
) -> Chart:
    found = [(label, *_points(rows, name)) for name, label in names.items()]
    tones = ("one", "two")
    series = [Series(label=label, tone=tone, x=x, y=y) for tone, (label, x, y) in zip(tones, found, strict=False) if x]
    return Chart(title=title, series=tuple(series), share=share, warmup=warmup)


def _points(rows: Sequence[Row], name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Steps and finite values of a metric."""
    there = [
        (float(row["step"]), float(value))
        for row in rows
        if not isinstance(value := row.get(name, math.nan), str) and math.isfinite(value)
    ]
    return tuple(x for x, _ in there), tuple(y for _, y in there)
