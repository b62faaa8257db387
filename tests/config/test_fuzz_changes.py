"""Generated words of a command line: a run, or one ConfigError."""

import string

import numpy as np
from tests.fuzz import inputs
from tests.small import run

from bough.config import ConfigError, override
from bough.config.fields import short_names
from bough.train import Run
from bough.train.check import check

NAMES = (*short_names(Run), "optimizer.epochs", "explorer.n", "env.size", "rewards.0", "policy.width", "nothing", "")
VALUES = (
    *(
        "1",
        "0",
        "-1",
        "2.5",
        "1e9",
        "1e400",
        "-1e-310",
        "nan",
        "inf",
        "true",
        "none",
        "None",
        "''",
        '"',
        "[",
        "{",
        "((",
    ),
    *("Grpo", "Grpo()", "Grpo(std=none)", "Chains(n=2)", "[EnvReward]", "[EnvReward, Success()]", "{'a': 1}", "auto"),
    *(
        "[1, 2",
        "Grpo(Grpo()",
        "Grpo(std=)",
        "a.py:b",
        "..",
        "/",
        "\0",
        "\ud800",
        "é",
        3000 * "[",
        3000 * "9",
        999 * "x",
    ),
)
LETTERS = string.ascii_letters + string.digits + "()[]{}=,.'\"\\ :-_\n"


def words(draw: np.random.Generator) -> str:
    value = "".join(draw.choice(VALUES) for _ in range(draw.integers(1, 3)))
    if draw.random() < 0.5:
        place = draw.integers(len(value) + 1)
        value = f"{value[:place]}{draw.choice([*LETTERS])}{value[place:]}"
    return f"{draw.choice(NAMES)}{draw.choice(['=', '=', '=', '', '=='])}{value}"


def test_changes_of_any_kind() -> None:
    taken, begun = 0, run()
    for number, draw in inputs("command line"):
        change = words(draw)
        try:
            check(override(begun, [change]))
            taken += 1
        except ConfigError:
            continue
        except Exception as defect:
            raise AssertionError(number, change[:100]) from defect
    assert taken
