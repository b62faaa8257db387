"""CM2 (arXiv 2602.12268)."""

from dataclasses import replace

from bough.appraise import Appraiser, Checklist, OfSeat
from bough.credit import TurnPosition
from bough.env import SimulatedTools, seats_of
from bough.needs import CALLS, POLICY, needs_of
from bough.reward import Judged
from bough.roles import OwnPolicy
from bough.train import Run, World
from bough.varying import constant


def cm2(
    world: World,
    *,
    judge: str = POLICY,
    n: int = 1,
    field: str = "checklist",
    items: float = 1.0,
    simulated: bool = False,
    data: tuple[str, ...] = (),
    result_tokens: int = 64,
    calls: int = 1,
) -> Run:
    """CM2 (arXiv 2602.12268): a turn is paid for the items of a checklist that it is the first to satisfy.

    Assumes a model that can judge: set `judge` and `models`, else the policy judges itself; and at least five paths of
    a task, or a turn has nothing to be compared with. Items are the field `field` of the task's data, or the judge
    writes them. A complete checklist pays `items`. The world's rewards stay; the paper's only reward is the checklist.

    With `simulated` a model answers the calls of tools, as in the paper: the seat "tools" of `SimulatedTools`. By
    default it is a copy of the policy that learns the real results in the warm-up and then stays; a larger model is
    `policies.tools='OpenAi(model=..., base_url=...)'`. The paper's simulator reads examples of calls and results; here
    it reads the fields `data` of the task. The world's rewards are then those of the real tools.

    Try: `bough train 'cm2(judge=judge)' --on pantry
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`
    Try: `bough train 'cm2(judge=judge,simulated=true,data=[needed,has])' --on pantry
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Args:
        world: The world; with `simulated`, one with tools.
        judge: The role whose model judges.
        n: Votes on each turn.
        field: The field of the task's data with the items.
        items: The reward of a complete checklist.
        simulated: Whether a model answers the calls in place of the environment.
        data: The fields of the task's data that this model reads.
        result_tokens: Maximum length of a simulated result.
        calls: Most calls of an action, with `simulated`: each is a turn of the simulator, so that `limits.turns` is
            raised to `1 + calls` times the world's.

    Raises:
        ValueError: when `simulated` and the world has no tools, or seats of its own.
    """
    votes: Appraiser = Checklist(role=judge, n=n, field=field)
    rewards = (*world.rewards, Judged(column="checklist", weight=items))
    if not simulated:
        return world.run(appraisers=(votes,), rewards=rewards, credit=TurnPosition())
    if CALLS not in needs_of(world.env) or seats_of(world.env):
        raise ValueError(f"cm2.simulated: got {type(world.env).__name__}; need an environment with tools and one agent")
    world = world.replace(
        env=SimulatedTools(env=world.env, data=data),
        limits=replace(world.limits, turns=(1 + calls) * constant(world.limits.turns)),
    )
    return world.run(
        appraisers=(OfSeat(appraiser=votes, seat="agent"),),
        rewards=rewards,
        credit=TurnPosition(),
        policies={"tools": OwnPolicy(frozen=True, sampling=replace(world.sampling, max_tokens=result_tokens))},
    )
