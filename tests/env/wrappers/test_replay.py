import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.env.play import actions_of, seen, walk, worlds

from bough.env import Branching, EnvFault, Oracle, Replay, State
from bough.tree import Outcome
from bough.worlds.frozenlake import FrozenLake

LAKE = FrozenLake(frozen=1.0, min_moves=4, max_steps=1000)
(TASK,) = LAKE.tasks("train", 1, 0)


def tape(keep: int = 64, **fields: object) -> Replay:
    return Replay(env=worlds.Tape(lake=LAKE, **fields), keep=keep)


def test_what_it_wraps_cannot_branch() -> None:
    env = worlds.Tape(lake=LAKE)
    state = env.start(TASK)
    env.step(state, "left")
    with pytest.raises(RuntimeError, match="no longer the newest"):
        env.step(state, "left")
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(state)


def test_the_head_costs_nothing_and_a_branch_costs_its_depth() -> None:
    env = tape()
    assert env.branching == Branching.REPLAY
    trail: list[State] = [env.start(TASK)]
    for action in ("hop", "skip", "jump"):
        step = env.step(trail[-1], action)
        assert step.replayed_steps == 0
        trail.append(step.state)
    assert env.env.starts == [TASK.id]
    for depth in (2, 0, 1):
        assert env.step(trail[depth], "left").replayed_steps == depth
    assert env.step(trail[3], "left").replayed_steps == 0, "still alive"
    assert env.step(trail[3], "left").replayed_steps == 3, "used up"


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_branches_at_random_equal_fresh_play(seed: int, keep: int) -> None:
    env, fresh = tape(keep), worlds.Tape(lake=LAKE)
    grown: list[tuple[State, list[str]]] = [(env.start(TASK), [])]
    for action, pick in zip(actions_of(seed, 12), range(12), strict=True):
        state, past = grown[(seed >> pick) % len(grown)]
        step = env.step(state, action)
        assert seen(step) == walk(fresh, TASK, [*past, action])[-1]
        assert step.replayed_steps in (0, len(past))
        if step.outcome == Outcome.OPEN:
            grown.append((step.state, [*past, action]))


def test_no_more_live_states_are_kept_than_asked_for_and_the_oldest_goes_first() -> None:
    env = tape(keep=2)
    root = env.start(TASK)
    heads = [env.step(root, action).state for action in ("hop", "skip", "jump")]
    assert [env.step(head, "left").replayed_steps for head in reversed(heads)] == [0, 0, 1]
    never = tape(keep=0)
    assert never.step(never.step(never.start(TASK), "hop").state, "hop").replayed_steps == 1


def test_a_copy_leaves_the_live_states_behind_and_replays() -> None:
    env = tape()
    state = env.step(env.start(TASK), "hop").state
    copy = pickle.loads(pickle.dumps(env))
    assert (copy, copy.keep) == (env, env.keep)
    step = copy.step(pickle.loads(pickle.dumps(state)), "left")
    assert step.replayed_steps == 1
    assert seen(step) == seen(env.step(state, "left"))


def test_the_end_of_an_episode_is_let_go() -> None:
    env = Replay(env=worlds.Tape(lake=FrozenLake(max_steps=1, min_moves=1)), keep=5)
    state = env.start(TASK)
    end = env.step(state, "hop")
    assert end.outcome == Outcome.TRUNCATED
    assert env.step(end.state, "hop").replayed_steps == 1


def test_an_environment_that_is_not_deterministic_is_found_out() -> None:
    env = tape(drift=True)
    root = env.start(TASK)
    env.step(root, "left")
    with pytest.raises(EnvFault, match=r"Replay: Tape is not deterministic: playing the 0 actions of task frozenlake-"):
        env.step(root, "left")


def test_the_oracle_inside_is_asked_without_using_the_state_up() -> None:
    env = Replay(env=worlds.LiveOracle(lake=LAKE))
    state = env.step(env.start(TASK), "hop").state
    assert isinstance(env, Oracle)
    assert env.plan(state) == ("left",)
    assert env.plan(state) == ("left",)
    assert env.step(state, "left").replayed_steps == 0
    assert env.plan(state) == ("left",), "replays for it"
    assert env.step(state, "left").replayed_steps == 0, "and keeps what it replayed"
    assert tape().plan(state) is None


def test_an_environment_that_can_branch_may_be_wrapped_all_the_same() -> None:
    plain, wrapped = LAKE, Replay(env=LAKE)
    assert walk(wrapped, TASK, ["left", "down", "up"]) == walk(plain, TASK, ["left", "down", "up"])
    assert wrapped.plan(wrapped.start(TASK)) == plain.plan(plain.start(TASK))
    assert wrapped.instructions == plain.instructions


def test_bad_use_is_named() -> None:
    with pytest.raises(ValueError, match=r"Replay.keep: got -1; need 0"):
        Replay(env=LAKE, keep=-1)
    with pytest.raises(TypeError, match="value of type int; need one of its own"):
        tape().step(State(observation="", key="", value=1), "left")
