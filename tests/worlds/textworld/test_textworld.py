import json
import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bough.env import Branching, Oracle, Replay, State, Step
from bough.tree import Outcome, Task
from bough.worlds.textworld import TextWorld
from bough.worlds.textworld.env import load
from bough.worlds.textworld.pack import SHIPPED, open_pack
from bough.worlds.textworld.story import compact

LEVELS = (1, 2, 3, 4)


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def one_task(level: int, seed: int = 0) -> Task:
    return TextWorld(levels=(level,)).tasks("dev", 1, seed)[0]


def walk(env: TextWorld | Replay, task: Task, commands: list[str]) -> list[Step]:
    state, steps = env.start(task), list[Step]()
    for command in commands:
        steps.append(env.step(state, command))
        state = steps[-1].state
    return steps


def seen(steps: list[Step]) -> list[tuple[str, str, float, Outcome, bool, bool]]:
    return [(s.state.observation, s.state.key, s.reward, s.outcome, s.valid, s.success) for s in steps]


def wander(env: TextWorld, task: Task, seed: int, count: int) -> list[str]:
    """Random admissible commands that do not end the game."""
    rng, state, commands = random.Random(seed), env.start(task), list[str]()
    while len(commands) < count:
        command = rng.choice(state.admissible or ())
        step = env.step(state, command)
        if step.outcome == Outcome.OPEN:
            commands.append(command)
            state = step.state
    return commands


def wrong_thing(env: TextWorld, task: Task) -> Step:
    """Explores until a thing that is not asked for can be taken, and takes it."""
    state = env.start(task)
    target = state.observation.split(".")[0].removeprefix("Take the ").split(" from ")[0]
    rng = random.Random(0)
    while True:
        things = [c for c in state.admissible or () if c.startswith("take ") and "key" not in c and target not in c]
        step = env.step(state, things[0] if things else rng.choice(state.admissible or ()))
        if things or step.outcome != Outcome.OPEN:
            return step
        state = step.state


# What a game looks like.


def test_a_game_reads_as_it_should_and_its_expert_wins() -> None:
    env = TextWorld(levels=(3,))
    state = env.start(one_task(3))
    task, room, can = re.fullmatch(r"(Take the .*\.)\n(.*\.)\nYou can: (.*)\.", state.observation).groups()  # type: ignore
    assert re.fullmatch(r"Take the [a-z]+ from the (chest|safe|trunk|locker)\.", task)
    assert re.match(r"[A-Z][a-z]+\. Exits: ", room)
    assert can == ", ".join(state.admissible or ())
    plan = env.plan(state)
    assert plan is not None
    assert any(command.startswith("unlock ") for command in plan)
    steps = walk(env, one_task(3), list(plan))
    assert [step.reward for step in steps] == [0.0] * (len(plan) - 1) + [1.0]
    assert all(step.valid for step in steps)
    assert steps[-1].outcome == Outcome.TERMINATED
    assert steps[-1].success
    assert steps[-1].state.observation.endswith("You have won.")
    assert env.plan(steps[-1].state) == ()


def test_what_the_agent_reads_is_compact() -> None:
    env = TextWorld(max_steps=60)
    for level in LEVELS:
        task = one_task(level)
        start = env.start(task)
        for step in [Step(state=start), *walk(env, task, [*wander(env, task, 0, 12), "look", "inventory"])]:
            lines = step.state.observation.split("\n")
            assert len(lines) == (3 if step.state is start else 2)
            assert all(line == " ".join(line.split()) and not re.search(r"[<>\[\]*$|]|-=", line) for line in lines)


def test_compact_keeps_the_words_of_the_engine() -> None:
    assert (
        compact("\n\n-= Hall =-\nExits: south.\n\n<moves>\n3\n</moves>\n>      -= Hall =-0/4") == "Hall. Exits: south."
    )
    assert compact("\nTaken.\n\n   *** You lost! ***\n\nYou scored 0 points.\n>") == "Taken. You have lost."


def test_the_task_can_be_read_again_before_every_answer_until_the_end() -> None:
    task = one_task(1)
    env, once = TextWorld(repeat_task=True), TextWorld()
    first = env.start(task)
    asked = first.observation.splitlines()[0]
    assert first.observation == once.start(task).observation
    commands = list(env.plan(first) or ())
    *before, last = zip(walk(env, task, commands), walk(once, task, commands), strict=True)
    assert before
    assert all(step.state.observation == f"{asked}\n{plain.state.observation}" for step, plain in before)
    assert last[0].state.observation == last[1].state.observation


def test_admissible_commands_can_be_left_out_of_the_text_and_widened() -> None:
    task = one_task(2)
    silent = TextWorld(show_admissible=False).start(task)
    assert "You can" not in silent.observation
    assert silent.admissible == TextWorld().start(task).admissible
    every = TextWorld(verbs=(), max_steps=40)
    state = every.start(task)
    used = set[str]()
    for command in wander(every, task, 1, 30):
        used |= {name.split()[0] for name in state.admissible or ()}
        state = every.step(state, command).state
    assert "close" in used
    assert not used & {"look", "inventory", "examine"}


# Acting.


@pytest.mark.parametrize("level", LEVELS)
def test_every_admissible_command_is_understood_and_changes_the_situation(level: int) -> None:
    env, task = TextWorld(max_steps=60), one_task(level)
    for step in walk(env, task, wander(env, task, level, 10)):
        for command in step.state.admissible or ():
            tried = env.step(step.state, command)
            assert tried.valid, command
            assert tried.state.key != step.state.key, command
            assert not re.search("can't|cannot|have to|not a verb", tried.state.observation), tried.state.observation


def test_what_is_not_possible_costs_a_step_and_never_reaches_the_engine() -> None:
    env, task = TextWorld(max_steps=30), one_task(1)
    start = env.start(task)
    state = start
    for command in ["quit", "undo", "restart", "take all", "tw-print", "", "go north. go south", "go up", "x" * 500]:
        step = env.step(state, command)
        assert (step.valid, step.outcome, step.reward, step.state.key) == (False, Outcome.OPEN, 0.0, start.key)
        assert step.state.observation.startswith("You cannot do that.\nYou can: ")
        assert step.state.admissible == start.admissible
        state = step.state
    assert env.plan(state) == env.plan(start)
    assert env.step(state, "  LOOK ").valid
    plan = env.plan(state)
    assert plan is not None
    for command in plan:
        step = env.step(state, command)
        state = step.state
    assert step.success


def test_taking_a_wrong_thing_loses() -> None:
    env = TextWorld(levels=(1,), max_steps=100)
    for task in env.tasks("test", 3, 0):
        step = wrong_thing(env, task)
        assert (step.outcome, step.success, step.reward, step.valid) == (Outcome.TERMINATED, False, 0.0, True)
        assert step.state.observation.endswith("You have lost.")
        assert env.plan(step.state) is None
        after = env.step(step.state, "look")
        assert (after.state, after.outcome, after.valid) == (step.state, Outcome.TERMINATED, False)


def test_steps_run_out() -> None:
    env, task = TextWorld(max_steps=3), one_task(4)
    assert env.plan(env.start(task)) is None
    steps = walk(env, task, ["look", "nonsense", "look", "look"])
    assert [step.outcome for step in steps] == [Outcome.OPEN, Outcome.OPEN, Outcome.TRUNCATED, Outcome.TRUNCATED]
    assert steps[3].state == steps[2].state


def test_the_key_names_the_situation_not_the_way_there() -> None:
    env, task = TextWorld(), one_task(1)
    start = env.start(task)
    back = {"north": "south", "south": "north", "east": "west", "west": "east"}
    way = next(command.split()[1] for command in start.admissible or () if command.startswith("go "))
    steps = walk(env, task, [f"go {way}", f"go {back[way]}", "look"])
    assert steps[0].state.key != start.key
    assert steps[1].state.key == steps[2].state.key == start.key
    assert env.start(one_task(1, seed=1)).key != start.key


# The expert.


@pytest.mark.parametrize("level", LEVELS)
def test_the_expert_wins_from_wherever_the_agent_went(level: int) -> None:
    env = TextWorld(levels=(level,), max_steps=200)
    assert isinstance(env, Oracle)
    for seed, task in enumerate(env.tasks("test", 3, 0)):
        state = env.start(task)
        plan = env.plan(state)
        assert plan is not None
        assert len(plan) == open_pack(SHIPPED).games[str(task.data["game"])]["steps"]
        state = walk(env, task, wander(env, task, seed, 8))[-1].state
        while plan := env.plan(state):
            step = env.step(state, plan[0])
            state = step.state
            assert len(env.plan(state) or ()) < len(plan)
        assert step.success


# States are values.


def test_an_old_state_can_be_stepped_again_and_branches_do_not_meet() -> None:
    env, task = TextWorld(max_steps=60), one_task(4)
    fork = walk(env, task, wander(env, task, 2, 6))[-1].state
    choices = list(fork.admissible or ())
    assert len(choices) >= 2
    first = [env.step(fork, choice) for choice in choices]
    deeper = [env.step(step.state, "look") for step in first if step.outcome == Outcome.OPEN]
    again = [env.step(fork, choice) for choice in reversed(choices)]
    assert seen(again[::-1]) == seen(first)
    assert len({step.state.key for step in first}) == len(choices)
    assert [step.state.key for step in deeper] == [s.state.key for s in first if s.outcome == Outcome.OPEN]
    assert env.branching == Branching.COPY


def test_a_state_keeps_its_meaning_when_the_game_is_loaded_afresh() -> None:
    env, task = TextWorld(max_steps=60), one_task(3)
    commands = wander(env, task, 3, 15)
    kept = pickle.dumps(walk(env, task, commands[:7])[-1].state)
    assert len(kept) < 20_000
    expected = seen(walk(env, task, commands))
    load.cache_clear()
    state: State = pickle.loads(kept)
    steps = list[Step]()
    for command in commands[7:]:
        steps.append(env.step(state, command))
        state = steps[-1].state
    assert seen(steps) == expected[7:]
    load.cache_clear()
    assert seen(walk(env, task, commands)) == expected


def test_another_process_gives_the_same_states_whatever_its_hash_seed() -> None:
    env, task = TextWorld(max_steps=60), one_task(4)
    commands = wander(env, task, 4, 12)
    code = (
        "import json, pickle, sys\n"
        "task, state, commands, rest = pickle.load(sys.stdin.buffer)\n"
        "from bough.worlds.textworld import TextWorld\n"
        "env = TextWorld(max_steps=60)\n"
        "start, shown = env.start(task), []\n"
        "for state, commands in ((start, commands), (state, rest)):\n"
        "    for command in commands:\n"
        "        step = env.step(state, command)\n"
        "        state = step.state\n"
        "        shown.append([state.observation, state.key, env.plan(state)])\n"
        "print(json.dumps(shown))\n"
    )
    here = walk(env, task, commands)
    bundle = pickle.dumps((task, here[5].state, commands, commands[6:]))
    there = subprocess.run(
        [sys.executable, "-c", code],
        input=bundle,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=False,
    )
    assert there.returncode == 0, there.stderr.decode()
    shown = [[s.state.observation, s.state.key, list(env.plan(s.state) or ())] for s in here]
    assert json.loads(there.stdout) == shown + shown[6:]


def test_replay_gives_the_same_steps() -> None:
    env, task = TextWorld(max_steps=60), one_task(2)
    commands = [*wander(env, task, 5, 10), "quit", "look"]
    replay = Replay(env=env, keep=0)
    steps = walk(replay, task, commands)
    assert seen(steps) == seen(walk(env, task, commands))
    assert [step.replayed_steps for step in steps] == list(range(len(commands)))


def test_threads_do_not_disturb_each_other() -> None:
    env = TextWorld(max_steps=60)
    tasks = [one_task(level) for level in (1, 2)] * 4
    commands = [wander(env, task, 6, 10) for task in tasks]
    alone = [seen(walk(env, task, way)) for task, way in zip(tasks, commands, strict=True)]
    load.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda task, way: seen(walk(env, task, way)), tasks, commands))
    assert together == alone


def test_tasks_are_split_by_game_and_ordered_by_seed() -> None:
    env = TextWorld(levels=(1, 2))
    train, dev, test = (env.tasks(split, size, 0) for split, size in (("train", 400), ("dev", 50), ("test", 150)))
    assert len({task.id for task in (*train, *dev, *test)}) == 600
    assert {task.data["level"] for task in train} == {1, 2}
    assert env.tasks("train", 30, 0) == train[:30]
    assert env.tasks("train", 400, 1) != train
    assert sorted(task.id for task in env.tasks("train", 400, 1)) == sorted(task.id for task in train)
    with pytest.raises(ValueError, match=r"got count=151; need 0 to 150, .*'test'.*levels \[1, 2\]"):
        env.tasks("test", 151, 0)


# Bad input.


def test_bad_settings_and_tasks_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"which holds no game; need a folder with an index\.json"):
        TextWorld(games=str(tmp_path / "nowhere"))
    (tmp_path / "index.json").write_text('{"games": ')
    with pytest.raises(ValueError, match="an index that cannot be read"):
        TextWorld(games=str(tmp_path))
    with pytest.raises(ValueError, match=r"levels: got \[9\], which no game has; need some of \[1, 2, 3, 4\]"):
        TextWorld(levels=(1, 9))
    with pytest.raises(ValueError, match="max_steps: got 0; need 1 or more"):
        TextWorld(max_steps=0)
    with pytest.raises(ValueError, match="has no game 'nothing'; need one of its"):
        TextWorld().start(Task(id="x", data={"game": "nothing"}))
    with pytest.raises(TypeError, match="got a state with a value of type str; need one of its own"):
        TextWorld().step(State(observation="", key="", value="elsewhere"), "look")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textworld", None)
    with pytest.raises(ImportError, match=r"TextWorld is not installed.*pip install 'bough-rl\[textworld\]'"):
        TextWorld().tasks("train", 1, 0)


def test_importing_the_room_does_not_import_the_engine() -> None:
    code = "import sys, bough.worlds.textworld.env\nassert not {'textworld', 'jericho', 'tatsu'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
