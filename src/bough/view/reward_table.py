"""The reward channels of a run as a table for the terminal."""

import math
from collections.abc import Sequence

from bough.view.falling_checks import CHECK, checks_in
from bough.view.numbers import short
from bough.view.reward_findings import reward_findings
from bough.view.rising_rewards import MEAN, Row, channels, of_channel

SHOWN_STEPS = 10
"""Steps over which the first and the last values are means."""
HEAD = ("reward", "first", "last", "std", "nonzero_std", "pair_accuracy")


def reward_table(rows: Sequence[Row], window: int) -> str:
    """Each channel: its means over the first and the last steps, and its other metrics at the last; "" without rows.

    `std` is the standard deviation over paths, and `nonzero_std` the share of groups in which it is above 0.
    `pair_accuracy` is the share of pairs of a success and a failure of one task in which the success is paid more; a
    tie counts half. Checks (`evaluation.checks`) follow the channels. Below the table is a line for each channel that
    rose while success did not, and for each check that fell while success or the reward rose.

    Args:
        rows: One a step, as in `metrics.jsonl`.
        window: Steps of a window of `reward_findings`.
    """
    learned = [row for row in rows if row.get("phase") == "rl"]
    if not channels(learned):
        return ""
    names = [(name, MEAN, name.replace(MEAN, "", 1)) for name in channels(learned)]
    names += [(name, CHECK, name.replace(CHECK, "check ", 1)) for name in checks_in(learned)]
    first, last = learned[:SHOWN_STEPS], learned[-SHOWN_STEPS:]
    lines: list[tuple[str, ...]] = [HEAD]
    for name, mean, label in names:
        values = [_mean(part, name) for part in (first, last)]
        values += [_mean(last, of_channel(name, kind, mean)) for kind in ("std", "nonzero_std", "pair_accuracy")]
        lines.append((label, *("" if math.isnan(value) else short(value) for value in values)))
    success = [_mean(part, "train/success") for part in (first, last)]
    lines.append(("success", *("" if math.isnan(value) else short(value) for value in success), "", "", ""))
    wide = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
    table = [
        "  ".join([line[0].ljust(wide[0]), *(line[place].rjust(wide[place]) for place in range(1, len(HEAD)))]).rstrip()
        for line in lines
    ]
    return "\n".join([*table, *(f"! {each}" for each in reward_findings(rows, window))])


def _mean(rows: Sequence[Row], name: str) -> float:
    """The mean of the finite values; nan without any."""
    values = [float(row.get(name, math.nan)) for row in rows]
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else math.nan
