import re
from dataclasses import replace

import pytest
from tests.small import run as small
from tests.train.test_config import RECIPES

from bough.cli.find import find_run
from bough.policy import Pretrained
from bough.train import Revise, Run, override
from bough.train.spell import settings


def again(run: Run) -> Run:
    return override(small(), re.split(r"\n(?=[\w.]+=)", settings(run)))


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_settings_of_a_recipe_make_its_run_again(recipe: str) -> None:
    run = find_run(recipe)
    assert again(run) == run


def test_text_that_needs_quotes() -> None:
    run = small().replace(
        name="none",
        policy=Pretrained(path="a folder, (mine)/it's", template={"enable_thinking": False}),
        demonstrations=replace(small().method.demonstrations, revise=Revise(thought='Wait: "x" [1, 2]')),
    )
    assert again(run) == run
    assert settings(run).startswith("name='none'\ncheckpointing=")
