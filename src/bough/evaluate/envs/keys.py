"""Checks state keys: equal keys mean equal states, and no step counter is in them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from bough.env import Replay, State, ToolsEnv
from bough.evaluate.envs.actor import takes_calls
from bough.evaluate.envs.comparison import difference, state_record, step_record
from bough.evaluate.envs.report import EnvCheck, failed, not_applicable, passed
from bough.evaluate.envs.timed import within
from bough.evaluate.envs.trial import Trial
from bough.tree import Action, AgentAction, BadCall, Outcome

PROBES = 3
"""Actions with which two states of one key are compared."""
NOTHING = "qzxv"
"""A text that is no action."""


def check_keys(trial: Trial) -> EnvCheck:
    """Two states of one task with one key offer the same, and the same action does the same in both.

    Observations may differ: they may respond to the last action. Where a change of `Task.seed` changes an episode, the
    environment draws random numbers, and the same action may lead elsewhere.
    """
    seen: dict[tuple[str, str], list[tuple[State, AgentAction]]] = defaultdict(list)
    for own in within(trial.sizes.seconds, trial.walks.walks):
        walk = trial.branching_walk(own)
        for state, action in zip(walk.states[:-1], walk.actions, strict=True):
            if state.key:
                seen[walk.task.id, state.key].append((state, action))
    figure = f"{len(seen)} keys, {sum(len(same) > 1 for same in seen.values())} seen again"
    numbers = {"keys": float(len(seen)), "recurring": float(sum(len(same) > 1 for same in seen.values()))}
    if not seen:
        return not_applicable("no keys")
    random = draws_from_seed(trial)
    twins = [(name, same[0], other) for name, same in seen.items() for other in same[1:]]
    for (task, key), (first, action), (second, other) in within(trial.sizes.seconds, twins):
        if wrong := _twins_differ(trial, first, second, (action, other), random=random):
            return failed(
                figure,
                got=f"task {task}, two states of the key {key[:80]!r}: {wrong}",
                need="equal keys only for the same state",
                do=f'put all that decides what happens next into {_place(trial)}, or set it to ""',
                **numbers,
            )
    return passed(f"{figure}{', random steps' if random else ''}", **numbers)


def _place(trial: Trial) -> str:
    """Where the environment's author sets the key."""
    env = trial.env.env
    inner = env.env if isinstance(env, Replay) else env
    return "the function `tools_env(key=...)`" if isinstance(inner, ToolsEnv) else "State.key"


def _twins_differ(trial: Trial, first: State, second: State, actions: tuple[AgentAction, ...], *, random: bool) -> str:
    """How two states of one key differ; "" when they do not."""
    if wrong := difference(state_record(first), state_record(second), but=("observation",)):
        return wrong
    if random:
        return ""
    for action in actions[:PROBES]:
        one, two = (trial.wrapped.step(state, action, "branch") for state in (first, second))
        if Outcome.TRUNCATED in (one.outcome, two.outcome):
            continue  # A limit of steps is no part of a key.
        if wrong := difference(step_record(one), step_record(two)):
            return f"after the same action {wrong}"
    return ""


def draws_from_seed(trial: Trial) -> bool:
    """Whether steps are random: with another `Task.seed` a walk changes, and its start does not."""
    for walk in trial.walks.walks:
        for change in (1, 2, 3):
            task = replace(walk.task, seed=walk.task.seed + change)
            state = trial.env.start(task)
            if difference(state_record(walk.states[0]), state_record(state)):
                return False
            for action, step in zip(walk.actions, walk.steps, strict=True):
                found = trial.env.step(state, action)
                if difference(step_record(step), step_record(found)):
                    return True
                state = found.state
    return False


def check_counters(trial: Trial) -> EnvCheck:
    """An invalid action, repeated, changes neither the observation nor the key."""
    nothing: AgentAction = NOTHING
    if takes_calls(trial.env.env):
        nothing = Action(calls=(BadCall(text=NOTHING, problem="no JSON"),))
    probed = 0
    for walk in within(trial.sizes.seconds, trial.walks.walks):
        state = trial.env.start(walk.task)
        if not state.key:
            return not_applicable("no keys")
        pair = [trial.env.step(state, nothing)]
        if pair[0].outcome is Outcome.OPEN:
            pair.append(trial.env.step(pair[0].state, nothing))
        if len(pair) < 2 or any(step.valid or step.outcome is not Outcome.OPEN for step in pair):
            continue
        probed += 1
        one, two = (state_record(step.state) for step in pair)
        if wrong := _counts(one, two):
            return failed(
                f"{probed} starts",
                got=f"task {walk.task.id}, the same invalid action twice: {wrong}",
                need="a key that repeated actions without effect do not change",
                do=f"leave counters of steps and of errors out of {_place(trial)}",
            )
    return passed(f"{probed} starts") if probed else not_applicable("no invalid action leaves an episode open")


def _counts(one: Mapping[str, object], two: Mapping[str, object]) -> str:
    """The difference of the keys of two states that differ in nothing else; "" without one."""
    if difference(dict(one), dict(two), but=("key",)):
        return ""
    return difference(dict(one), dict(two))
