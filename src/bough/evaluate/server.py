"""The model of a server as the agent of a run's held-out tasks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bough.engine import OwnModel, Remote, text_sampling
from bough.env import seats_of
from bough.env.script import Script
from bough.roles.models import role_model
from bough.roles.seat_models import model_agent, seat_sources
from bough.rollout import Agent, Deadlines, RoleModel, RolloutRunner
from bough.rollout.seats import SeatAgent
from bough.train import Run
from bough.train.first_draw import TimedHost, draw_heldout
from bough.train.seats import first_seat, refuse_own_weights
from bough.tree import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAgent:
    """What an evaluation with a server needs.

    Attributes:
        runner: Grows trees; its agent is the server's model.
        tasks: The held-out tasks.
    """

    runner: RolloutRunner
    tasks: list[Task]


@asynccontextmanager
async def server_agent(
    run: Run, settings: OwnModel, deadlines: Deadlines, assets: Path | None = None
) -> AsyncGenerator[ServerAgent]:
    """Build the agent, check the connection, and draw the tasks; closes the host and all engines at the end.

    Args:
        run: The run.
        settings: Its engine.
        deadlines: The register of pending awaits.
        assets: The folder with the files of the run's policy, whose renderer an engine without one uses.

    Raises:
        EngineFault: when the server does not answer, or refuses the key.
    """
    # Imported here because it imports torch; wrong arguments are reported earlier.
    from bough.train.processes import make_host

    refuse_own_weights(run)
    engine, world = settings.build(), run.world
    renderer = settings.renderer or world.policy.build((), assets).renderer
    own = RoleModel(engine=engine, renderer=renderer)
    models = {role: role_model(source, None, own) for role, source in run.models.items()}
    host = make_host(run)
    agent = Agent(
        engine=engine,
        models=models,
        renderer=renderer,
        context=world.context,
        parser=world.parser,
        guard=world.guard,
        sampling=text_sampling(world.at(1.0).sampling, renderer),
    )
    others = {seat: role_model(source, None, own) for seat, source in seat_sources(run.policies).items()}
    seats = {
        seat: _seat(run, seat, instructions, agent, others.get(seat))
        for seat, instructions in seats_of(world.env).items()
    }
    runner = RolloutRunner(
        agent=agent,
        host=host,
        instructions=world.env.instructions,
        limits=world.at(1.0).limits,
        deadlines=deadlines,
        seats=seats,
        seat=first_seat(run),
    )
    try:
        if isinstance(engine, Remote):
            await engine.check()
        timed = TimedHost(host=host, deadlines=deadlines, deadline_s=world.limits.env_deadline_s)
        tasks = await draw_heldout(run, timed)
        yield ServerAgent(runner=runner, tasks=tasks)
    finally:
        await host.close()
        for model in (own, *models.values(), *others.values()):
            await model.engine.close()


def _seat(run: Run, seat: str, instructions: str, agent: Agent, model: RoleModel | None) -> SeatAgent:
    """The agent of a seat: that of the run's `policies`; the server's model for the seats of `policy`."""
    policy = run.policies.get(seat)
    if isinstance(policy, Script):
        return SeatAgent(instructions=instructions, agent=policy, automatic=True)
    if model is None:
        return SeatAgent(instructions=instructions, agent=agent)
    return SeatAgent(instructions=instructions, agent=model_agent(agent, policy, model), automatic=True)
