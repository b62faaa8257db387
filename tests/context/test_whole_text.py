"""The parser whose action is the whole text, and the environments that need it."""

import pytest
from tests.small import run as small

from bough.config import ConfigError
from bough.context import Parsed, Plain, Tagged, WholeText
from bough.env import prompts_env
from bough.train import Warmup
from bough.train.resolve import resolve


def rate(task: object, answer: str) -> bool:  # noqa: ARG001
    return answer == "1\n2"


@pytest.mark.parametrize(("text", "well_formed"), [("a\n\n b\n", True), (" \n", False), ("", False)])
def test_the_action_is_the_text_unchanged(text: str, well_formed: bool) -> None:
    assert WholeText()(text) == Parsed(action=text, well_formed=well_formed)


def test_prompts_refuse_a_parser_of_single_lines() -> None:
    env = prompts_env(tasks=["count to two"], reward=rate)
    run = small().replace(env=env, warmup=Warmup())
    with pytest.raises(ConfigError, match=r"got parser=Plain; set parser=WholeText\(\), Tagged"):
        resolve(run.replace(parser=Plain()))
    resolve(run.replace(parser=WholeText()))
    resolve(run.replace(parser=Tagged(tag="answer")))
