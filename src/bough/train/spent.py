"""What the steps of reinforcement have cost, and whether a limit on it ends the run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bough.train.settings import Schedule


@dataclass(slots=True)
class Spent:
    """The cost of the steps of reinforcement so far, over all policies; the warm-up and evaluations are not in it.

    Attributes:
        tokens: Sampled tokens.
        actions: Actions of the policies, hence steps of environments.
        seconds: Wall time. A step that was stopped and repeated counts once.
    """

    tokens: float = 0.0
    actions: float = 0.0
    seconds: float = 0.0

    def add(self, metrics: Iterable[Mapping[str, float]], seconds: float) -> None:
        """Add a step: the metrics of each policy, and its wall time."""
        for each in metrics:
            self.tokens += each["speed/sampled_tokens"]
            self.actions += each["speed/actions"]
        self.seconds += seconds

    def reached(self, schedule: Schedule) -> str:
        """The limit that ends the run; "" while there is none."""
        limits = (
            ("stop_tokens", schedule.stop_tokens, self.tokens, "sampled tokens"),
            ("stop_actions", schedule.stop_actions, self.actions, "actions"),
            ("stop_seconds", schedule.stop_seconds, self.seconds, "seconds"),
        )
        return "; ".join(
            f"it has spent {spent:,.0f} {what} (schedule.{name}={limit:g})"
            for name, limit, spent, what in limits
            if limit is not None and spent >= limit
        )
