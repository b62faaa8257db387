"""The policies of the seats of an environment with several agents."""

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

from bough.config.config import ConfigError
from bough.config.kinds import check_kinds
from bough.context import Context, Parser
from bough.credit import Credit
from bough.engine import OwnModel, Sampling
from bough.env import seats_of
from bough.env.script import Script
from bough.learner.optimizer import Optimizer
from bough.nearest import unknown
from bough.objective import Objective
from bough.reward import Reward
from bough.train.models import ModelSource
from bough.train.settings import PolicyRecipe

if TYPE_CHECKING:
    from bough.train.run import Run

SEAT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""A seat's name is a part of the names of files and metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPolicy:
    """Weights of a seat's own, trained beside those of the run. A field that is None has the run's value.

    Attributes:
        policy: The model.
        context: Selects the past turns in the prompt.
        parser: Finds the action in the text.
        sampling: How tokens are sampled.
        optimizer: How the loss is minimised.
        rewards: The reward channels of the seat.
        credit: Computes advantages.
        objective: The loss.
        frozen: Whether the weights stay as they are after the warm-up.
    """

    policy: PolicyRecipe | None = None
    context: Context | None = None
    parser: Parser | None = None
    sampling: Sampling | None = None
    optimizer: Optimizer | None = None
    rewards: tuple[Reward, ...] | None = None
    credit: Credit | None = None
    objective: Objective | None = None
    frozen: bool = False

    def __post_init__(self) -> None:
        check_kinds(self)

    def settings(self, run: "Run") -> "Run":
        """The run with this seat's settings."""
        own = {each.name: value for each in fields(self) if (value := getattr(self, each.name)) is not None}
        del own["frozen"]
        return run.replace(**own)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPolicy:
    """A model that is not trained, with settings of its own. A field that is None has the run's value.

    Attributes:
        model: The model: `FrozenCheckpoint(run=...)`, `StartingWeights()`, `OpenAi(...)`, ...
        context: Selects the past turns in the prompt.
        parser: Finds the action in the text.
        sampling: How tokens are sampled.
    """

    model: ModelSource | OwnModel
    context: Context | None = None
    parser: Parser | None = None
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        check_kinds(self)


SeatPolicy: TypeAlias = OwnPolicy | FrozenPolicy | ModelSource | OwnModel | Script
"""A policy of a seat: trained weights of its own, a model that is not trained, or a script."""


def own_seats(run: "Run") -> tuple[str, ...]:
    """The seats that the run's `policy` acts for; empty in an environment for one agent."""
    return tuple(name for name in seats_of(run.world.env) if name not in run.policies)


def check_seats(run: "Run") -> None:
    """Refuse policies that do not fit the environment's seats.

    Raises:
        ConfigError: names the field, what it got, and what it needs.
    """
    seats = seats_of(run.world.env)
    if run.policies and not seats:
        raise ConfigError(
            f"policies: got policies for {[*run.policies]} with env={type(run.world.env).__name__}, which has one "
            "agent; need an environment with seats, or no policies"
        )
    if wrong := [name for name in seats if not SEAT_NAME.fullmatch(name)]:
        raise ConfigError(f"env: got the seat {wrong[0]!r}; need a name of letters, digits, '_' and '-'")
    for name in run.policies:
        if name not in seats:
            raise ConfigError(f"policies.{name}: {unknown(name, seats)}")
    if seats and not own_seats(run):
        raise ConfigError(
            f"policies: got a policy for each of the seats {[*seats]}; need at least one seat for `policy`"
        )
