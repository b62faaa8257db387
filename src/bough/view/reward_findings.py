"""What the metrics of rewards and checks show over windows of steps."""

from collections.abc import Sequence
from typing import TypeAlias

from bough.view.falling_checks import FallingCheck, falling_checks
from bough.view.rising_rewards import RisingReward, Row, rising_rewards

RewardFinding: TypeAlias = RisingReward | FallingCheck


def reward_findings(rows: Sequence[Row], window: int) -> list[RewardFinding]:
    """Rewards that rise without success, and checks that fall while success or the reward rises.

    Args:
        rows: One a step, ascending, as in `metrics.jsonl`.
        window: Steps of a window, at least 4; 0 finds nothing.
    """
    return [*rising_rewards(rows, window), *falling_checks(rows, window)]
