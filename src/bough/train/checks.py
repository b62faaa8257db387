"""Checks: rewards that are measured on trees and never trained on (`evaluation.checks`)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bough.reward import Reward, compute_rewards
from bough.train.appraise_stage import required_columns
from bough.train.channels import column_metrics
from bough.tree import Credited, Floats, Ints, Rewarded, Tree, groups, unknown_paths

FIELD = "evaluation.checks"


def measure_checks(trees: Sequence[Tree], checks: Sequence[Reward]) -> list[Rewarded]:
    """The checks of trees, those of one task together, without any reward; `Rewarded.checks` has them.

    A path on which an appraiser gave no value for a check has nan at its leaf.

    Args:
        trees: Trees of one agent, or views of a seat.
        checks: The checks.

    Raises:
        StageError: when two checks have the same name, or one does not return finite numbers for each node of each
            tree.
    """
    found = {
        id(tree): measured
        for group in groups(trees)
        for tree, measured in zip(group, _measured(group, checks), strict=True)
    }
    return [found[id(tree)] for tree in trees]


def with_checks(credited: Sequence[Credited], checks: Sequence[Reward]) -> list[Credited]:
    """Trees whose stages are over, with their checks; raises as `measure_checks`."""
    found = measure_checks([each.tree for each in credited], checks)
    return [
        replace(each, rewarded=replace(each.rewarded, checks=measured.checks))
        for each, measured in zip(credited, found, strict=True)
    ]


def check_metrics(trees: Sequence[Tree], checks: Sequence[Reward]) -> dict[str, float]:
    """`check/NAME` and the like, as `channel_metrics` has them of channels; empty without checks."""
    found = measure_checks(trees, checks) if checks else []
    return column_metrics(found, [each.checks for each in found], "check")


def _measured(group: Sequence[Tree], checks: Sequence[Reward]) -> list[Rewarded]:
    found = [{**each.channels} for each in compute_rewards(group, checks, FIELD)]
    for check in checks:
        if columns := required_columns(check):
            own = compute_rewards(group, (check,), FIELD)
            for tree, values, each in zip(group, found, own, strict=True):
                lacking = np.concatenate([unknown_paths(tree, column) for column in columns])
                values |= {name: _without(value, lacking) for name, value in each.channels.items()}
    return [Rewarded(tree=tree, channels={}, checks=values) for tree, values in zip(group, found, strict=True)]


def _without(values: Floats, leaves: Ints) -> Floats:
    """[N] the values, with nan at some leaves."""
    values = values.astype(np.float64)
    values[leaves] = np.nan
    return values
