"""Every world is tried on trees with groups; those of several seats, calls and edits train on chains with a critic."""

import asyncio
import importlib
import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from tests.methods.small import small, train_small
from tests.missing import need_world

from bough.cli.find import find_run, find_world, modules, names
from bough.config import dump, load
from bough.config.naming import WORLDS as WORLDS_FOLDER
from bough.rollout import Deadlines
from bough.train import Runtime, World
from bough.train.dry_pass import dry_pass

WORLDS = list(names("worlds"))


WITH_CRITIC = ("alfworld", "bfcl", "board_games", "dialogue", "pantry", "red_team", "search")
"""Worlds with several seats, calls of tools, or contexts that are rebuilt."""


@pytest.mark.parametrize("world", WITH_CRITIC)
def test_a_world_trains(world: str, tmp_path: Path) -> None:
    need_world(world)
    train_small(find_run("ppo", world), tmp_path)


# On FrozenLake, tests/methods tries every method.
@pytest.mark.parametrize("world", sorted({*WORLDS} - {"frozenlake"}))
def test_trees_of_a_world_are_learned_from(world: str, tmp_path: Path) -> None:
    """The world's episodes, of scripted actions, from rewards to the gradient, and the policy for its texts."""
    need_world(world)
    asyncio.run(dry_pass(Runtime(small(find_run("tree_grpo", world)), tmp_path, Deadlines())))


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_has_as_many_tasks_as_its_settings_take(name: str) -> None:
    need_world(name)
    world = find_world(name)
    # Larger pools are those of generators.
    for tasks in (each for each in (world.tasks, world.evaluation.tasks) if each.count <= 150):
        assert len(world.env.tasks(tasks.split, tasks.count, 0)) == tasks.count
    if world.warmup.env is None:
        assert world.warmup.demonstrations <= world.tasks.count


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_has_the_name_of_its_file_and_its_source(name: str) -> None:
    world = find_world(name)
    assert world.name == name
    text = inspect.getdoc(vars(importlib.import_module(modules("worlds")[name]))[name]) or ""
    assert "arXiv" in text
    assert "Assumes" in text


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_written_and_read(name: str) -> None:
    run = find_run("grpo", name)
    assert load(dump(run)) == run


def test_a_folder_has_settings_a_page_and_a_package() -> None:
    folders = [folder for folder in WORLDS_FOLDER.iterdir() if folder.is_dir() and folder.name != "__pycache__"]
    assert len(folders) > 20
    for folder in folders:
        assert {"__init__.py", "preset.py", "README.md"} <= {file.name for file in folder.iterdir()}, folder.name


def test_a_world_with_another_policy_keeps_its_other_fields() -> None:
    world = find_world("frozenlake")
    other = world.replace(policy=replace(world.policy, width=32))
    assert isinstance(other, World)
    assert other.policy != world.policy
    assert other.replace(policy=world.policy) == world
