"""Checks that a state can be stepped again: copies and replays are equal at every step of random walks."""

import pickle
from collections.abc import Iterator

from bough.env import Branching
from bough.evaluate.envs.comparison import difference, state_record, step_record
from bough.evaluate.envs.report import EnvCheck, failed, passed
from bough.evaluate.envs.timed import within
from bough.evaluate.envs.trial import Trial
from bough.evaluate.envs.walks import Walk
from bough.usercode.origin import describe

COPY = "make states values: copy what a step changes, in place of changing it; or set branching = Branching.NONE"
REPLAY = "draw from task.seed and task.data alone, so that a replay of the same actions gives the same state"


def check_branching(trial: Trial) -> EnvCheck:
    """Every state of a walk gives the same step again: at once, after a sibling's step, and after the walk's end."""
    kind = trial.env.env.branching
    done, count = set[int](), 0
    for number, walk, at in within(trial.sizes.seconds, _visits(trial)):
        done.add(number)
        count += 1
        if wrong := _stepped_again(trial, walk, at):
            return failed(
                f"{count} states of {len(done)} walks",
                got=f"task {walk.task.id}, step {at + 1}: {wrong}",
                need=f"the same step of the same state (branching is {kind})",
                do=COPY if kind is Branching.COPY else REPLAY,
            )
    how = "in Replay" if kind is Branching.NONE else kind.value
    return passed(f"{how}: {count} states of {len(done)} walks", states=count)


def _visits(trial: Trial) -> Iterator[tuple[int, Walk, int]]:
    """The states of each walk by number: from the last to the first, then forward."""
    for number, own in enumerate(trial.walks.walks):
        walk = trial.branching_walk(own)
        for at in [*reversed(range(len(walk.actions))), *range(len(walk.actions))]:
            yield number, walk, at


def _stepped_again(trial: Trial, walk: Walk, at: int) -> str:
    """The first difference of a state's second and third step from its first; "" without any."""
    env, state, first = trial.wrapped, walk.states[at], step_record(walk.steps[at])
    before = state_record(state)
    if wrong := difference(first, step_record(env.step(state, walk.actions[at], "branch"))):
        return f"{wrong} when stepped again"
    env.step(state, walk.siblings[at], "branch")
    if wrong := difference(first, step_record(env.step(state, walk.actions[at], "branch"))):
        return f"{wrong} after another action in the same state"
    wrong = difference(before, state_record(state))
    return f"the state itself has changed: {wrong}" if wrong else ""


def check_pickling(trial: Trial) -> EnvCheck:
    """A pickled state gives the same step."""
    env, done, largest = trial.wrapped, 0, 0
    walks = map(trial.branching_walk, trial.walks.walks)
    for walk, at in within(trial.sizes.seconds, ((each, at) for each in walks for at in range(len(each.actions)))):
        done += 1
        try:
            blob = pickle.dumps(walk.states[at])
            state = pickle.loads(blob)
        except Exception as error:
            return failed(
                f"{done} states",
                got=f"a State that cannot be pickled: {describe(error)}",
                need="states that travel to worker processes and back",
                do="keep plain values in State.value, or set branching = Branching.NONE and wrap it in Replay",
            )
        largest = max(largest, len(blob))
        step = step_record(env.step(state, walk.actions[at], "branch"))
        if wrong := difference(step_record(walk.steps[at]), step):
            return failed(
                f"{done} states",
                got=f"task {walk.task.id}, step {at + 1}: {wrong} from a pickled state",
                need="the same step from a pickled state",
                do="keep everything that a step reads in State.value",
            )
    return passed(
        f"{done} states, the largest {largest / 1024:,.1f} KiB", states=done, largest_state_kib=largest / 1024
    )
