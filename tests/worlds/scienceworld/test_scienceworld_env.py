"""ScienceWorld in its own simulator."""

import gc
import os
import pickle
import signal
import threading
import time
from importlib import import_module
from typing import Any

import pytest
from tests.missing import need_world

from bough.env import Branching, EnvFault, Replay
from bough.evaluate.envs.descendants import open_files
from bough.tree import Outcome, Task
from bough.worlds.scienceworld import ScienceWorld
from bough.worlds.scienceworld.machine import BASE_MB, EPISODE_MB, MachineDied, machine

need_world("scienceworld")

TOPICS = ("find-living-thing", "identify-life-stages-1", "measure-melting-point-known-substance")
INNER = ScienceWorld(topics=TOPICS, max_steps=60)
ENV = Replay(env=INNER, keep=8)


def task(topic: str, variation: int = 0) -> Task:
    return Task(id=f"{topic}-{variation}", data={"topic": topic, "variation": variation})


@pytest.mark.parametrize("topic", TOPICS)
def test_the_gold_path_solves_a_task_and_pays_1(topic: str) -> None:
    state = ENV.start(task(topic, 1))
    plan, total = ENV.plan(state), 0.0
    assert plan
    for place, action in enumerate(plan):
        step = ENV.step(state, action)
        assert step.valid, action
        total, state = total + step.reward, step.state
        if step.outcome is not Outcome.OPEN:
            break
        assert ENV.plan(state) == plan[place + 1 :]
    assert (step.outcome, step.success) == (Outcome.TERMINATED, True)
    assert total == pytest.approx(1.0)


def test_two_episodes_in_one_machine_do_not_touch_each_other() -> None:
    first, second = ENV.start(task(TOPICS[0])), ENV.start(task(TOPICS[2]))
    plans = ENV.plan(first), ENV.plan(second)
    assert plans[0]
    assert plans[1]

    def played(apart: bool) -> list[str]:
        states, seen = [ENV.start(task(TOPICS[0])), ENV.start(task(TOPICS[2]))], []
        order = [0] * 5 + [1] * 5 if apart else [0, 1] * 5
        taken = [0, 0]
        for which in order:
            plan = plans[which]
            assert plan
            states[which] = ENV.step(states[which], plan[taken[which]]).state
            taken[which] += 1
            seen.append(f"{which} {taken[which]} {states[which].observation}")
        return sorted(seen)

    assert played(apart=True) == played(apart=False)


def test_an_earlier_state_is_replayed_exactly() -> None:
    state = ENV.start(task(TOPICS[1], 2))
    plan = ENV.plan(state)
    assert plan
    first = ENV.step(state, plan[0])
    other = ENV.step(pickle.loads(pickle.dumps(state)), "wait1")
    again = ENV.step(state, plan[0])
    assert (again.state.observation, again.state.key) == (first.state.observation, first.state.key)
    assert other.state.observation != first.state.observation
    assert ENV.plan(other.state) is None


@pytest.mark.parametrize("action", ["", " ", "fly", "\x00", "\ud800\ud800", "x" * 100_000, '{"go": "north"}', "0\n1"])
def test_garbage_costs_a_step_and_changes_nothing(action: str) -> None:
    state = ENV.start(task(TOPICS[0]))
    step = ENV.step(state, action)
    assert (step.valid, step.reward, step.outcome, step.state.key) == (False, 0.0, Outcome.OPEN, state.key)


def test_a_wrong_focus_ends_the_episode_without_a_negative_return() -> None:
    state = ENV.start(task(TOPICS[0]))
    step = ENV.step(state, "focus on air")
    assert (step.outcome, step.success) == (Outcome.TERMINATED, False)
    assert step.reward == 0


def test_splits_are_the_simulators_and_share_nothing() -> None:
    found = {split: {each.id for each in ENV.tasks(split, 30, 0)} for split in ("train", "dev", "test")}
    assert not found["train"] & found["test"] | found["dev"] & found["test"] | found["train"] & found["dev"]
    assert ENV.tasks("train", 6, 1)[:3] == ENV.tasks("train", 3, 1)
    with pytest.raises(ValueError, match="need some of boil"):
        ScienceWorld(topics=("boyl",)).tasks("train", 1, 0)


SMALL_MB = BASE_MB + 4 * EPISODE_MB


def played(env: ScienceWorld, which: str, actions: tuple[str, ...]) -> list[tuple[object, str]]:
    state, seen = env.start(task(which)), []
    for action in actions:
        step = env.step(state, action)
        state = step.state
        seen.append((state.observation, state.key))
    return seen


def test_more_episodes_than_fit_are_all_played_to_their_end() -> None:
    env = ScienceWorld(topics=TOPICS, memory_mb=SMALL_MB)
    assert env.most_live == 4
    actions = ("look around", "nonsense", "go to hallway")
    alone = {topic: played(env, topic, actions) for topic in TOPICS}
    states = {(topic, number): env.start(task(topic)) for topic in TOPICS for number in range(2)}
    replayed = 0
    for place, action in enumerate(actions):
        for (topic, number), state in states.items():
            step = env.step(state, action)
            replayed += step.replayed_steps
            states[topic, number] = step.state
            assert (step.state.observation, step.state.key) == alone[topic][place]
            assert len(machine(SMALL_MB).live) + len(machine(SMALL_MB).idle) <= 4
    assert replayed == 6 * sum(range(len(actions))), "least recently used of six in turn: each step is a replay"


def test_a_killed_machine_costs_no_episode() -> None:
    env = ScienceWorld(topics=TOPICS, memory_mb=SMALL_MB)
    assert env.branching is Branching.NONE
    env.close()
    gc.collect()
    files = open_files()
    actions = ("open door to hallway", "go to hallway", "look around")
    alone = {topic: played(env, topic, actions) for topic in TOPICS}
    states = {topic: env.start(task(topic)) for topic in TOPICS}
    states = {topic: env.step(state, actions[0]).state for topic, state in states.items()}
    before = machine(SMALL_MB).process_id
    for place in (1, 2):
        os.kill(machine(SMALL_MB).process_id, signal.SIGKILL)
        for topic, state in states.items():
            step = env.step(state, actions[place])
            assert (step.state.observation, step.state.key) == alone[topic][place]
            assert step.replayed_steps == place
            states[topic] = step.state
    process = machine(SMALL_MB).process_id
    assert process != before
    env.close()
    gc.collect()
    assert open_files() <= files, "a machine that died leaves no pipe and no connection"
    for each in (before, process):
        with pytest.raises(ProcessLookupError):
            os.kill(each, 0)


def test_a_call_without_a_machine_leaves_no_connection_and_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = import_module("py4j.java_gateway").ProcessConsumer
    close_pipes = consumer.run

    def close_pipes_late(thread: Any) -> None:
        thread.proc.wait()
        time.sleep(0.5)
        close_pipes(thread)

    monkeypatch.setattr(consumer, "run", close_pipes_late)
    env = ScienceWorld(topics=TOPICS, memory_mb=SMALL_MB)
    env.close()
    gc.collect()
    files = open_files()
    state = env.start(task(TOPICS[0]))
    java, simulator = machine(SMALL_MB), state.value.live.handle.simulator
    os.kill(java.process_id, signal.SIGKILL)
    java._env._gateway.java_process.wait()
    with pytest.raises(MachineDied) as died:  # The exception keeps the refused connection from being collected.
        java.run(simulator.getScore)
    assert open_files() <= files
    assert "Py4JNetworkError" in str(died.value)
    env.close()


def test_a_machine_without_memory_ends_and_costs_no_episode() -> None:
    env = ScienceWorld(topics=TOPICS, memory_mb=SMALL_MB)
    step = env.step(env.start(task(TOPICS[0])), "open door to hallway")
    java = machine(SMALL_MB)
    arrays = java._env._gateway
    with pytest.raises(MachineDied):
        java.run(arrays.new_array, arrays.jvm.long, 2**28)
    assert not java.alive
    again = env.step(step.state, "go to hallway")
    assert (again.valid, again.replayed_steps) == (True, 1)
    assert machine(SMALL_MB).alive
    env.close()


def test_a_machine_that_dies_in_the_middle_of_a_call_is_replaced() -> None:
    env = ScienceWorld(topics=TOPICS, memory_mb=SMALL_MB)
    state = env.start(task(TOPICS[0]))
    java = machine(SMALL_MB)
    game = state.value.live.handle
    sleeping = threading.Timer(0.5, os.kill, (java.process_id, signal.SIGKILL))
    sleeping.start()
    with pytest.raises(MachineDied):
        java.run(java._env._gateway.jvm.java.lang.Thread.sleep, 20_000)
    assert (game.machine, game.simulator) == (None, None)
    assert env.step(state, "look around").valid
    env.close()


def test_an_exception_of_the_simulator_is_a_fault_of_one_episode() -> None:
    env = ScienceWorld(topics=TOPICS, memory_mb=SMALL_MB)
    state = env.start(task(TOPICS[0]))
    java = machine(SMALL_MB)
    with pytest.raises(EnvFault, match="simulator raised"):
        java.run(java._env._gateway.jvm.java.lang.Integer.parseInt, "many")
    assert java.alive
    assert env.step(state, "look around").replayed_steps == 0
    env.close()


def test_rooms_and_lists_of_actions() -> None:
    env = Replay(env=ScienceWorld(topics=TOPICS, show_room=True, repeat_task=True, list_actions=True))
    state = env.start(task(TOPICS[0]))
    assert state.admissible
    action = next(each for each in state.admissible if each.startswith("go to"))
    step = env.step(state, action)
    assert step.valid
    assert step.state.observation.startswith("Your task is")
    assert "In your inventory" in step.state.observation
