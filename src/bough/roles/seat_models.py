"""The models of seats that are not trained."""

from collections.abc import Mapping
from dataclasses import replace

from bough.context import CallParser, Plain
from bough.engine import OwnModel, text_sampling
from bough.engine.messages import Messages
from bough.env.script import Script
from bough.roles.models import ModelSource
from bough.roles.seat_policy import FrozenPolicy, OwnPolicy, SeatPolicy
from bough.rollout import Agent, RoleModel


def seat_sources(policies: Mapping[str, SeatPolicy]) -> dict[str, ModelSource | OwnModel]:
    """The sources of the models of seats that are not trained, by seat; scripts have none."""
    found: dict[str, ModelSource | OwnModel] = {}
    for seat, policy in policies.items():
        if not isinstance(policy, OwnPolicy | Script):
            found[seat] = policy.model if isinstance(policy, FrozenPolicy) else policy
    return found


def model_agent(agent: Agent, policy: SeatPolicy | None, model: RoleModel) -> Agent:
    """The agent of a seat with a model that is not trained.

    A server's model has not learned the form of the policy's actions, so its actions are plain text or calls. Its
    tokens are bytes of text, so its limit is that of `text_sampling`.

    Args:
        agent: The agent of the run's `policy`, whose settings the seat has.
        policy: The policy of the seat, which may have settings of its own.
        model: Its model.
    """
    plain = isinstance(model.renderer, Messages) and not isinstance(agent.parser, CallParser)
    agent = replace(
        agent,
        engine=model.engine,
        renderer=model.renderer,
        parser=Plain() if plain else agent.parser,
        sampling=text_sampling(agent.sampling, model.renderer),
        critic=None,
        embed=None,
    )
    if not isinstance(policy, FrozenPolicy):
        return agent
    return replace(
        agent,
        context=policy.context or agent.context,
        parser=policy.parser or agent.parser,
        sampling=policy.sampling or agent.sampling,
    )
