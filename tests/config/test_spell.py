import re
from dataclasses import replace

import pytest
from tests.config.test_config import RECIPES
from tests.small import run as small

from bough.cli.find import find_run
from bough.config import override
from bough.config.spell import settings
from bough.policy import Pretrained
from bough.rewrite import Revise
from bough.train import Run


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
    assert settings(run).startswith("name='none'\nmodels={}\npolicies={}\ncheckpointing=")
