"""The seats of a run: which policy acts for each, and whether policies and seats fit."""

import re

from bough.config.config import ConfigError
from bough.env import seats_of
from bough.nearest import close, suggest, unknown
from bough.roles.seat_policy import OwnPolicy
from bough.train.run import Run

SEAT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""A seat's name is a part of the names of files and metrics."""

METRICS = {
    *("check", "env", "groups", "heldout", "judge", "loss", "memory", "optimizer"),
    *("paths", "policy", "reward", "speed", "time", "train", "update"),
}
"""Groups of metrics, whose names no seat may have."""


def policy_seats(run: Run) -> tuple[str, ...]:
    """The seats that the run's `policy` acts for; empty in an environment for one agent."""
    return tuple(name for name in seats_of(run.world.env) if name not in run.policies)


def first_seat(run: Run) -> str:
    """The first seat that the run's `policy` acts for; "" in an environment for one agent."""
    return next(iter(policy_seats(run)), "")


def refuse_own_weights(run: Run) -> None:
    """Refuse seats with weights of their own where no checkpoint has them: with another policy or a server.

    Raises:
        ConfigError: names the seat.
    """
    if own := [name for name, each in run.policies.items() if isinstance(each, OwnPolicy)]:
        raise ConfigError(
            f"policies.{own[0]}=OwnPolicy: got another policy, without the weights of this seat; need a frozen model "
            f"or a script: set policies.{own[0]}=..."
        )


def seat_run(run: Run, seat: str) -> Run:
    """The run with the settings of a seat that has weights of its own; the run itself for "".

    Raises:
        ConfigError: when the run trains no weights for this seat alone.
    """
    if not seat:
        return run
    policy = run.policies.get(seat)
    if isinstance(policy, OwnPolicy):
        return run.replace(**policy.changes)
    own = [name for name, each in run.policies.items() if isinstance(each, OwnPolicy)]
    near = close(seat, own)
    raise ConfigError(
        f"seat: got {seat!r}; need a seat with weights of its own: {own or 'this run has none'}; "
        + (suggest(near) if near else "leave it out for the seats of the run's policy")
    )


def check_seats(run: Run) -> None:
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
    if wrong := [name for name in seats if not SEAT_NAME.fullmatch(name) or name in METRICS]:
        raise ConfigError(
            f"env: got the seat {wrong[0]!r}; need a name of letters, digits, '_' and '-', other than {sorted(METRICS)}"
        )
    for name in run.policies:
        if name not in seats:
            raise ConfigError(f"policies.{name}: {unknown(name, seats)}")
    if seats and not policy_seats(run):
        raise ConfigError(
            f"policies: got a policy for each of the seats {[*seats]}; need at least one seat for `policy`"
        )
