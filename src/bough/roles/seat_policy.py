"""Policies of a seat: weights of its own, frozen models, scripts."""

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from bough.config.kinds import check_kinds
from bough.context import Context, Parser
from bough.credit import Credit
from bough.engine import OwnModel, Sampling
from bough.env.script import Script
from bough.learner.optimizer import Optimizer
from bough.objective import Objective
from bough.reward import Reward
from bough.roles.models import ModelSource
from bough.roles.recipes import PolicyRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPolicy:
    """A policy with separate weights for one seat, trained beside the run's. A field that is None has the run's value.

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

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that replace the run's."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "frozen"}
        return {name: value for name, value in own.items() if value is not None}


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
