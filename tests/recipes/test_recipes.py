"""Every recipe is a measured method on a world: its settings are a snapshot, its docstring names the paper."""

import importlib
import inspect

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.settings import Settings, settings

from bough.cli.find import find_run, names
from bough.train.check import check

RECIPES = list(names("recipes"))


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_settings_of_a_recipe(recipe: str, snapshot: SnapshotAssertion) -> None:
    assert settings(find_run(recipe)) == snapshot(extension_class=Settings)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_of_a_method_of_its_name_on_its_world(recipe: str) -> None:
    method, _, world = recipe.rpartition("_")
    assert method.removesuffix("_smollm2") in set(names("methods"))
    assert find_run(recipe).world.name == world
    check(find_run(recipe))


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_states_its_paper(recipe: str) -> None:
    assert "arXiv" in (inspect.getdoc(vars(importlib.import_module(f"bough.recipes.{recipe}"))[recipe]) or "")
