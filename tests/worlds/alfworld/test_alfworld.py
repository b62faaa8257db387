import json
import pickle
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.missing import need

from bough.env import Branching, State, Step
from bough.tree import Outcome, Task
from bough.worlds.alfworld import AlfWorld
from bough.worlds.alfworld.env import load, name_of, source
from bough.worlds.alfworld.package import tables
from bough.worlds.alfworld.pddl import Facts, condition_of, holds, read, read_problem
from bough.worlds.alfworld.rooms import LAMPS, TASK_TYPES, TREATMENTS, room_of

need("alfworld")

SMALL = AlfWorld(receptacles=4, objects=5)


def walk(env: AlfWorld, state: State, commands: tuple[str, ...]) -> list[Step]:
    steps: list[Step] = []
    for command in commands:
        steps.append(env.step(state, command))
        state = steps[-1].state
    return steps


def one(task_type: str, seed: int = 0, **changes: object) -> tuple[AlfWorld, Task]:
    env = replace(SMALL, task_types=(task_type,), **changes)  # type: ignore[arg-type]
    return env, env.tasks("train", 1, seed)[0]


# What a game looks like.


def test_a_game_reads_as_alfworld_writes_it() -> None:
    env, task = one("pick_and_place_simple")
    room = room_of(task.data)
    state = env.start(task)
    first, sentence, can = str(state.observation).split("\n")
    assert re.fullmatch(r"You are in the middle of a room\. Looking quickly around you, you see a [a-z]+ \d.*\.", first)
    assert sentence.startswith("Your task is to: put ")
    assert room.target.lower() in sentence
    assert can == f"You can: {', '.join(state.admissible or ())}."
    place = next(each for each in state.admissible or ())
    here = env.step(state, place).state
    assert str(here.observation).startswith(f"You arrive at {place.removeprefix('go to ')}. ")


def test_settings_of_the_observation() -> None:
    env, task = one("pick_and_place_simple", show_admissible=False, repeat_task=True, verbs=("go",))
    state = env.start(task)
    assert "You can" not in str(state.observation)
    assert all(command.startswith("go to ") for command in state.admissible or ())
    after = env.step(state, "LOOK  ")  # not listed, and executable
    assert after.valid
    assert str(after.state.observation).split("\n")[0] == str(state.observation).split("\n")[1]


def test_a_command_that_does_not_apply_changes_nothing() -> None:
    env, task = one("pick_and_place_simple")
    state = env.start(task)
    for garbage in ("", "open sesame", "take apple 1", "\0\ud800", "go to cabinet 99", "x" * 10**5, "look\nlook"):
        step = env.step(state, garbage)
        assert (step.valid, step.reward, step.success, step.outcome) == (False, 0.0, False, Outcome.OPEN)
        assert step.state.key == state.key
        assert str(step.state.observation).startswith("Nothing happens.")


def test_a_walk_to_the_present_place_is_no_command() -> None:
    env, task = one("pick_and_place_simple")
    state = env.start(task)
    place = (state.admissible or ("",))[0]
    here = env.step(state, place).state
    assert place not in (here.admissible or ())
    assert not env.step(here, place).valid


def test_the_episode_ends_at_its_limit_and_after_success() -> None:
    env, task = one("pick_and_place_simple", max_steps=2)
    last = walk(env, env.start(task), ("look", "look"))[-1]
    assert (last.outcome, last.success) == (Outcome.TRUNCATED, False)
    again = env.step(last.state, "look")
    assert (again.outcome, again.valid) == (Outcome.TRUNCATED, False)
    assert env.plan(last.state) is None
    env, task = one("pick_and_place_simple")
    won = walk(env, env.start(task), env.plan(env.start(task)) or ())[-1]
    assert (won.outcome, won.success, won.reward) == (Outcome.TERMINATED, True, 1.0)
    assert env.plan(won.state) == ()
    assert env.step(won.state, "look").success


# Rooms: always solvable, never solved at the start.


@pytest.mark.parametrize("expert", ["planner", "searcher"])
@pytest.mark.parametrize("task_type", TASK_TYPES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_room_is_unsolved_and_the_experts_solve_it(task_type: str, split: str, expert: str) -> None:
    env = AlfWorld(task_types=(task_type,), receptacles=5, objects=6, expert=expert)  # type: ignore[arg-type]
    for task in env.tasks(split, 12, 1):  # type: ignore[arg-type]
        state = env.start(task)
        plan = env.plan(state)
        assert plan
        steps = walk(env, state, plan)
        assert all(step.valid for step in steps)
        assert [step.success for step in steps] == [False] * (len(plan) - 1) + [True]


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_the_planner_is_never_longer_than_the_searcher(task_type: str) -> None:
    env = AlfWorld(task_types=(task_type,))
    for task in env.tasks("dev", 5, 0):
        state = env.start(task)
        short, long = (replace(env, expert=each).plan(state) for each in ("planner", "searcher"))
        assert short is not None
        assert long is not None
        assert len(short) <= len(long)


@given(seed=st.integers(0, 10**6), walks=st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_an_expert_solves_a_task_from_any_state(seed: int, walks: int) -> None:
    rng = random.Random(seed)
    env = replace(SMALL, expert=rng.choice(("planner", "searcher")), max_steps=100, verbs=())
    (task,) = env.tasks("train", 1, rng.randrange(20))
    state = env.start(task)
    for _ in range(walks):
        step = env.step(state, rng.choice(state.admissible or ()))
        if step.success:
            return
        state = step.state
    plan = env.plan(state)
    assert plan is not None
    assert walk(env, state, plan)[-1].success


def test_the_searcher_takes_an_object_only_where_it_was_seen() -> None:
    env, task = one("pick_and_place_simple", seed=3, receptacles=6, expert="searcher")
    room, state, seen = room_of(task.data), env.start(task), ""
    for command in env.plan(state) or ():
        if command.startswith("take "):
            assert command.split(" from ")[0].removeprefix("take ") in seen
        step = env.step(state, command)
        state, seen = step.state, seen + str(step.state.observation).split("\nYou can")[0]
    assert room.target.lower() in seen


def test_knobs_bound_the_room() -> None:
    for task in replace(SMALL, receptacles=3, objects=3).tasks("train", 40, 0):
        room = room_of(task.data)
        assert len(room.receptacles) <= 5  # three, or as many as the task needs
        assert len(room.contents) <= 3
    whole = AlfWorld().tasks("train", 20, 0)
    assert max(len(room_of(task.data).receptacles) for task in whole) > 15


def test_rooms_follow_the_tables() -> None:
    contents = tables().contents
    for task in AlfWorld().tasks("train", 20, 4):
        room = room_of(task.data)
        for thing, place in room.contents.items():
            kind = thing.partition("|")[0]
            assert kind in LAMPS or kind in contents[room.receptacles[place]]
        if room.task_type in TREATMENTS:
            ability, tool = TREATMENTS[room.task_type]
            assert room.target in tables().abilities[ability]
            assert tool in room.receptacles.values()


# Splits.


def test_splits_share_no_scene_and_no_content() -> None:
    env = replace(SMALL, receptacles=3, objects=2, task_types=("pick_and_place_simple",))
    found = {split: [room_of(task.data) for task in env.tasks(split, 150, 0)] for split in ("train", "dev", "test")}  # type: ignore[arg-type]
    contents = {split: {room.content for room in rooms} for split, rooms in found.items()}
    assert not contents["train"] & contents["dev"]
    assert not contents["train"] & contents["test"]
    assert not contents["dev"] & contents["test"]
    held_out = tables().held_out
    assert all(room.scene in held_out for room in found["test"])
    assert not any(room.scene in held_out for split in ("train", "dev") for room in found[split])


def test_the_same_room_in_two_scenes_or_phrases_is_one_instance() -> None:
    _, task = one("pick_and_place_simple")
    room = room_of(task.data)
    assert replace(room, scene=room.scene + 1, phrase=1 - room.phrase).content == room.content
    other = replace(room, contents=dict(list(room.contents.items())[1:]))
    assert other.content != room.content


@pytest.mark.parametrize("games", ["", "folder"])
def test_another_split_is_a_value_error(games: str) -> None:
    with pytest.raises(ValueError, match=r"'valid_seen'; need .*dev \(valid_seen\)"):
        AlfWorld(games=games).tasks("valid_seen", 1, 0)  # type: ignore[arg-type]


# Values.


def test_a_state_is_a_value() -> None:
    env, task = one("pick_two_obj_and_place")
    state = env.start(task)
    assert env.branching is Branching.COPY
    for command in env.plan(state) or ():
        sent = pickle.loads(pickle.dumps(state))
        assert env.step(sent, command) == env.step(state, command)
        env.step(state, "look")
        state = env.step(state, command).state


def test_a_key_has_facts_and_what_was_seen_but_no_history() -> None:
    env, task = one("pick_and_place_simple", receptacles=3)
    state = env.start(task)
    first, second = tuple(state.admissible or ("", ""))[:2]
    there = walk(env, state, (first, second, first))[-1].state
    again = walk(env, state, (second, first, "look", "examine nothing", "inventory"))[-1].state
    assert there.key == again.key != state.key
    assert env.step(state, first).state.key != there.key  # the other place has not been seen


def test_other_processes_play_the_same(tmp_path: Path) -> None:
    script = (
        "from bough.worlds.alfworld import AlfWorld\n"
        "env = AlfWorld(receptacles=5, objects=8)\n"
        "for task in env.tasks('dev', 4, 2):\n"
        "    state = env.start(task)\n"
        "    print(task.id, state.observation, state.key)\n"
        "    for command in env.plan(state):\n"
        "        state = env.step(state, command).state\n"
        "        print(command, state.observation, state.key)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": each, "PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for each in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""
    assert not list(tmp_path.iterdir())  # the package itself is not imported: it would make a folder there


# Bad tasks, and the user's own games.


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"scene": 1},
        {"game": "x"},
        {"receptacles": {"Cabinet) (x": "Cabinet"}},
        {"phrase": 7},
        {"task_type": "no"},
        {"target": "Apple) (x"},
        {"target": "{obj}"},
        {"place": "Desk Type"},
        {"task_type": "look_at_obj_in_light"},  # its place is a lamp
    ],
)
def test_a_task_without_a_room_is_a_value_error(data: dict[str, object]) -> None:
    _, task = one("pick_and_place_simple")
    whole = data if data in ({}, {"scene": 1}, {"game": "x"}) else {**task.data, **data}
    with pytest.raises(ValueError, match=r"need one of AlfWorld\.tasks"):
        SMALL.start(Task(id="bad", data=whole))


def test_settings_are_checked() -> None:
    for wrong in (
        {"max_steps": 0},
        {"receptacles": -1},
        {"objects": -1},
        {"task_types": ()},
        {"task_types": ("x",)},
        {"expert": "me"},
        {"verbs": ("go", "grab")},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}.*need") as found:
            AlfWorld(**wrong)  # type: ignore[arg-type]
        assert "self" not in str(found.value)


def test_the_games_of_a_folder(tmp_path: Path) -> None:
    for split, folder in (("train", "train"), ("dev", "valid_seen"), ("test", "valid_unseen")):
        for at, task in enumerate(SMALL.tasks(split, 2, 0)):  # type: ignore[arg-type]
            domain, problem, grammar = source(SMALL, task)
            inside = tmp_path / folder / f"{task.data['task_type']}-x" / f"trial_{at}"
            inside.mkdir(parents=True)
            game = {"pddl_domain": domain, "pddl_problem": problem, "grammar": grammar, "solvable": True}
            (inside / "game.tw-pddl").write_text(json.dumps(game))
    env = AlfWorld(games=str(tmp_path))
    (first, _) = env.tasks("dev", 2, 0)
    assert str(first.data["game"]).startswith("valid_seen/")
    state = env.start(first)
    assert walk(env, state, env.plan(state) or ())[-1].success
    with pytest.raises(ValueError, match="need 0 to 2"):
        env.tasks("test", 3, 0)
    with pytest.raises(ValueError, match=r"need a \.tw-pddl file"):
        env.start(Task(id="bad", data={"game": "../game.tw-pddl"}))
    for name in ("\0.tw-pddl", "\ud800.tw-pddl", "x" * 10**4 + ".tw-pddl"):
        with pytest.raises(ValueError, match=r"need a \.tw-pddl file"):
            env.start(Task(id="bad", data={"game": name}))
    with pytest.raises(FileNotFoundError, match="valid_seen"):
        AlfWorld(games=str(tmp_path / "train")).tasks("dev", 1, 0)


def older(domain: str, problem: str, grammar: str) -> dict[str, object]:
    """A game as in the official files of version 2.1.1: other words, costs, types and objects in no receptacle."""
    objects, _, facts = problem.partition("(:init")
    kind = str(re.findall(r"\(:goal.*?objecttype \?\w+ (\w+)type", facts.lower(), re.DOTALL)[0])
    loose = f"{kind}_bar__minus_09_dot_99"
    extra = f"(objectType {loose} {kind}Type) (pickupable {loose}) (objectAtLocation {loose} loc_bar_0)"
    costs = "(= (distance loc_bar_0 loc_bar_1) 2) (= (distance loc_bar_1 loc_bar_0) 2)"
    objects = f"{objects.rstrip()[:-1]}\nApple - object\n{loose} - object\n)"
    return {
        "pddl_domain": domain,
        "grammar": grammar.replace("move {o} to {r}", "put {o} in/on {r}")
        .replace("You move the {o.name} to the", "You put the {o.name} in/on the")
        .replace("You arrive at {r.name}.", "You arrive at {lend.name}."),
        "pddl_problem": f"\n{objects}\n(:init {extra} {costs}{facts}",
        "solvable": True,
        "walkthrough": ["look"],
    }


def write_game(folder: Path, name: str, game: object) -> None:
    inside = folder / "train" / name / "trial_T20190909_000000_000000"
    inside.mkdir(parents=True)
    (inside / "game.tw-pddl").write_text(json.dumps(game))
    (inside / "traj_data.json").write_text(json.dumps({"task_type": name.partition("-")[0]}))


@pytest.mark.parametrize("expert", ["planner", "searcher"])
@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_the_experts_solve_games_in_the_words_of_older_versions(task_type: str, expert: str, tmp_path: Path) -> None:
    made, task = one(task_type)
    write_game(tmp_path, f"{task_type}-x", older(*source(made, task)))
    env = AlfWorld(games=str(tmp_path), expert=expert)  # type: ignore[arg-type]
    state = env.start(env.tasks("train", 1, 0)[0])
    plan = env.plan(state)
    assert plan
    steps = walk(env, state, plan)
    assert all(step.valid for step in steps)
    assert steps[-1].success
    texts = [str(step.state.observation) for step in steps]
    assert any(text.startswith("You arrive at loc ") for text in texts)
    if task_type != "look_at_obj_in_light":
        assert plan[-1].startswith("put ")
        assert plan[-1] in (steps[-2].state.admissible or ())  # with the default verbs
        assert " in/on " in texts[-1]


def test_the_games_of_a_folder_are_those_that_alfworld_plays(tmp_path: Path) -> None:
    made, task = one("pick_and_place_simple")
    game = older(*source(made, task))
    write_game(tmp_path, "pick_and_place_simple-Apple-None-Desk-1", game)
    write_game(tmp_path, "pick_and_place_simple-AppleSliced-None-Desk-1", game)
    write_game(tmp_path, "pick_and_place_with_movable_recep-Apple-Bowl-Desk-1", game)
    for at, solvable in enumerate((False, None)):
        write_game(tmp_path, f"pick_and_place_simple-Mug-None-Desk-{at}", {**game, "solvable": solvable})
    del game["solvable"]
    write_game(tmp_path, "pick_and_place_simple-Mug-None-Desk-2", game)
    env = AlfWorld(games=str(tmp_path))
    assert "-Apple-None-Desk-1/" in str(env.tasks("train", 1, 0)[0].data["game"])
    with pytest.raises(ValueError, match="need 0 to 1"):
        env.tasks("train", 2, 0)


def test_a_folder_without_solvable_games_is_a_value_error(tmp_path: Path) -> None:
    write_game(tmp_path, "pick_and_place_simple-Mug-None-Desk-2", {"solvable": None})
    with pytest.raises(ValueError, match='got 1 games, none with "solvable": true'):
        AlfWorld(games=str(tmp_path)).tasks("train", 1, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"pddl_domain": None},
        {"pddl_domain": "(define (domain x) (:action look))"},
        {"pddl_problem": 3},
        {"pddl_problem": "(" * 4000 + ")" * 4000},
        {"pddl_problem": "(define (problem x) (:objects) (:init (opened fridge)) (:goal (and)))"},
        {"grammar": "action look {}"},
        {"grammar": 'grammar :: """{"intro": """'},
    ],
)
def test_a_file_that_is_no_game_is_a_value_error_with_its_path(change: dict[str, object], tmp_path: Path) -> None:
    made, task = one("pick_and_place_simple")
    write_game(tmp_path, "pick_and_place_simple-x", {**older(*source(made, task)), **change})
    env = AlfWorld(games=str(tmp_path))
    (broken,) = env.tasks("train", 1, 0)
    with pytest.raises(ValueError, match=r"game\.tw-pddl: got .* need"):
        env.start(broken)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\0\xff", b"[" * 10**5])
def test_a_file_that_is_no_json_object_is_a_value_error_with_its_path(raw: bytes, tmp_path: Path) -> None:
    write_game(tmp_path, "pick_and_place_simple-x", {})
    next(tmp_path.rglob("game.tw-pddl")).write_bytes(raw)
    with pytest.raises(ValueError, match=r"game\.tw-pddl: got .* need"):
        AlfWorld(games=str(tmp_path)).tasks("train", 1, 0)


# The interpreter.


def test_conditions() -> None:
    facts = Facts([("in", "a", "x"), ("in", "b", "x"), ("red", "a"), ("-thing", "a"), ("-thing", "b")])
    for text, expected in (
        ("(in a x)", True),
        ("(and (in b x) (not (red b)))", True),
        ("(or (red b) (in b y))", False),
        ("(exists (?o - thing ?p - thing) (and (in ?o x) (in ?p x) (not (= ?o ?p))))", True),
        ("(exists (?o - thing ?p - thing) (and (red ?o) (red ?p) (not (= ?o ?p))))", False),
        ("(exists (?o - nothing) (in ?o x))", False),  # no object of that type
        ("(and)", True),
    ):
        assert holds(condition_of(read(text)), {}, facts) is expected, text


@pytest.mark.parametrize("text", ["", "(", ")", "(a))", "(define (:init))", "word"])
def test_pddl_that_is_none_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="PDDL"):
        read_problem(text)


def test_games_are_cached() -> None:
    env, task = one("pick_and_place_simple")
    assert load("", name_of(env, task)) is load("", name_of(env, task))
