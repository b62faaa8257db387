"""Checks the oracle: its plans lead to success, from the start and from states after random actions."""

from collections.abc import Iterator

from bough.env import Oracle, State, Step
from bough.env.env import env_gives
from bough.evaluate.envs.keys import draws_from_seed
from bough.evaluate.envs.report import EnvCheck, failed, not_applicable, passed
from bough.evaluate.envs.timed import TimedEnv, within
from bough.evaluate.envs.trial import Trial
from bough.evaluate.envs.walks import Walk
from bough.needs import ORACLE
from bough.tree import AgentAction, Outcome

LONGEST = 1000
"""Maximum number of steps of an oracle's episode."""
NO_ORACLE = "no oracle"


def has_oracle(trial: Trial) -> bool:
    """Whether an environment has an oracle."""
    return ORACLE in env_gives(trial.env.env) and isinstance(trial.env.env, Oracle)


def check_oracle(trial: Trial) -> EnvCheck:
    """The plan of every task's start leads to success."""
    if not has_oracle(trial):
        return not_applicable(NO_ORACLE)
    random = draws_from_seed(trial)
    solved, tried, turns, numbers = 0, 0, 0, dict[str, float]()
    within_limit = 0
    parts: list[str] = []
    wrong = ""
    for split, tasks in trial.tasks.items():
        good = count = 0
        for task in within(trial.sizes.seconds / len(trial.tasks), tasks):
            state = trial.env.start(task)
            plan, (last, steps) = trial.env.plan(state), (None, 0)
            if plan is not None:
                last, steps = follow(trial.env, state, plan)
            count, turns = count + 1, turns + steps
            good += last is not None and last.success
            within_limit += last is not None and last.success and (trial.turns is None or steps <= trial.turns)
            if last is None or not last.success:
                wrong = wrong or f"task {task.id} of {split}: {_ending(plan, last, steps)}"
        parts.append(f"{good} of {count} {split}")
        solved, tried = solved + good, tried + count
        numbers[f"{split}_share"] = good / count
    numbers |= {"oracle_share": solved / tried, "oracle_turns": turns / tried}
    figure = f"solves {', '.join(parts)}; {turns / tried:.1f} turns"
    if 2 * within_limit < solved:
        return failed(
            figure,
            got=f"{within_limit} of {solved} solutions within limits.turns={trial.turns}; they take "
            f"{turns / tried:.1f} turns on average",
            need="at least half",
            do="raise limits.turns of the world, or make shorter tasks",
            **numbers,
        )
    if solved == tried or (random and solved):
        return passed(figure, **numbers)
    need = "a plan from each start that leads to success"
    return failed(figure, got=wrong, need=need, do="repair plan(), or leave tasks out that it cannot solve", **numbers)


def check_oracle_elsewhere(trial: Trial) -> EnvCheck:
    """After random actions `plan` returns a plan that leads to success, or None; limits of steps may end it."""
    if not has_oracle(trial):
        return not_applicable(NO_ORACLE)
    if draws_from_seed(trial):
        return not_applicable("random steps: no plan is certain")
    plans = none = cut = 0
    for walk, at in within(trial.sizes.seconds, _elsewhere(trial)):
        plan = trial.wrapped.plan(walk.states[at])
        if not plan:
            none += 1
            continue
        plans += 1
        last, steps = follow(trial.wrapped, walk.states[at], plan)
        cut += last is not None and last.outcome is Outcome.TRUNCATED and not last.success
        if last is None or (not last.success and last.outcome is not Outcome.TRUNCATED):
            return failed(
                f"{plans} plans",
                got=f"task {walk.task.id} after {at} random actions: {_ending(plan, last, steps)}",
                need="a plan that leads to success, or None",
                do="plan from the state given, and return None where it is lost",
            )
    figure = f"{plans} plans, {none} without, {cut} cut by limits"
    if plans and cut == plans:
        return failed(
            figure,
            got="plans that all end at the limit of steps",
            need="a plan that leads to success, or None",
            do="return None where the steps left are too few",
        )
    return passed(figure, plans=plans, without=none, cut=cut)


def _elsewhere(trial: Trial) -> Iterator[tuple[Walk, int]]:
    """States in which an episode is still open: every third of a walk, and the last one."""
    for own in trial.walks.walks:
        walk = trial.branching_walk(own)
        places = [at for at, step in enumerate(walk.steps, start=1) if step.outcome is Outcome.OPEN]
        yield from ((walk, at) for at in sorted({*places[::3], *places[-1:]}))


def follow(env: TimedEnv, state: State, plan: tuple[AgentAction, ...]) -> tuple[Step | None, int]:
    """Executes a plan. The oracle plans before every turn, as it does in demonstrations.

    Args:
        env: The environment.
        state: The state of the plan.
        plan: The plan.

    Returns:
        The last step, None without any; and the number of steps.
    """
    last: Step | None = None
    count = 0
    while plan and count < LONGEST:
        last = env.step(state, plan[0])
        state, count = last.state, count + 1
        if last.outcome is not Outcome.OPEN:
            break
        plan = env.plan(state) or ()
    return last, count


def _ending(plan: tuple[AgentAction, ...] | None, last: Step | None, steps: int) -> str:
    """How a plan ended, for a message."""
    if last is None:
        return "no plan" if plan is None else "an empty plan"
    return f"after {steps} planned actions outcome {last.outcome.name}, success={last.success}"
