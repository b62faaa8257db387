"""Settings as TOML: exactly the same run comes back, and mistakes are named."""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.small import run as small

from bough.cli.find import find_run
from bough.config import ConfigError, dump
from bough.config.read_toml import from_toml, read_tables
from bough.config.write_toml import to_toml
from bough.credit import Grpo
from bough.engine import OpenAi
from bough.objective import Kl, PpoClip, Sum
from bough.policy import Lora, Pretrained
from bough.reward import EnvReward, InvalidAction
from bough.rewrite import Revise
from bough.schedule import LinearSchedule
from bough.train import Run, Warmup


def again(settings: object) -> Any:
    return from_toml(tomllib.loads(to_toml(settings)), type(settings))


METHODS = (
    "arena_rl", "tapo", "spark", "hi_agent", "itool", "ttrl", "treepo", "rest_mcts", "rstar", "dynamic_tree_rpo",
    "explors", "prorag", "spar", "latr", "grace",
)  # fmt: skip
"""Methods with judges, seats, schedules, searches of searches, texts of several lines and pieces in pieces."""


@pytest.mark.parametrize("name", [*METHODS, "rest_mcts_sokoban", "hi_agent_sokoban"])
def test_a_run_comes_back(name: str) -> None:
    run = find_run(name)
    made = again(run)
    assert made == run
    assert json.dumps(dump(made)) == json.dumps(dump(again(made)))
    assert dump(made) == dump(run)


def test_awkward_values_come_back() -> None:
    texts = (
        'It is "so",\n\tisn\'t it?\\n',
        "none",
        "'none'",
        "3",
        "[a, b]",
        "caf\u00e9 \x7f\r\n",
        "",
        "Grpo(std=none)",
    )
    demonstrations = small().method.demonstrations
    run = small().replace(
        name="none",
        policy=Pretrained(path="a folder, (mine)/it's", lora=Lora(targets=("q_proj",)), template={"thinking": False}),
        models={
            "judge": OpenAi(model="m", base_url="http://127.0.0.1:1/v1"),
            "user": OpenAi(model="none", base_url="http://127.0.0.1:2/v1"),
        },
        objective=Sum(terms=(PpoClip(), Kl(estimator="k2"))),
        rewards=(EnvReward(), InvalidAction()),
        credit=Grpo(std="none"),
        filters=(),
        warmup=Warmup(demonstrations=2, then=Warmup(file="none", epochs=3)),
        optimizer=replace(small().world.optimizer, schedule=LinearSchedule(start=1.0, end=0.0)),
        demonstrations=replace(demonstrations, revise=Revise(min_return=-math.inf, below=math.inf)),
    )
    assert again(run) == run
    assert dump(again(run)) == dump(run)
    for text in texts:
        held = Held(text=text, any_text=text, texts=(text,), by_name={text: text}, maybe=text)
        assert again(held) == held, text


@dataclass(frozen=True, kw_only=True)
class Held:
    """Fields of all plain kinds."""

    text: str = ""
    maybe: str | None = None
    any_text: Any = None
    choice: Literal["none", "some"] | None = "some"
    texts: Sequence[str] = ()
    gaps: Sequence[int | None] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    by_name: Mapping[str, Any] = field(default_factory=dict[str, Any])
    whole: int = 0
    real: float = 0.0
    place: Path = Path()


@pytest.mark.parametrize(
    "held",
    [
        Held(rows=({"a": None, "b": [1, {"c": "x"}]}, {"a b.c": 1.5, "t": True}), gaps=(1, None)),
        Held(rows=({"a": 1},), by_name={"none": "none", "": {"inner": [[], {}]}}),
        Held(whole=10**30, real=-math.inf, place=Path("none")),
        Held(whole=-1, real=1e-300, any_text=True),
        Held(any_text={"deep": {"deeper": (None,)}}, choice="none"),
        Held(any_text={"deep": {"deeper": (None,)}}, choice=None),
    ],
)
def test_plain_values_come_back(held: Held) -> None:
    assert dump(again(held)) == dump(held)


def test_tables_change_a_run() -> None:
    text = """
        steps = 7
        credit = "Grpo(std=none)"
        rewards = ["EnvReward", "InvalidAction(penalty=0.25)"]
        [optimizer]
        learning_rate = 1
        [world.schedule]
        batch_tasks = 3
        [objective]
        piece = "PpoClip"
        high = 0.28
        [limits]
        tokens = "none"
    """
    run = from_toml(tomllib.loads(text), Run, small())
    assert (run.world.schedule.steps, run.world.schedule.batch_tasks) == (7, 3)
    assert run.method.credit == Grpo(std="none")
    assert run.world.rewards == (EnvReward(), InvalidAction(penalty=0.25))
    assert run.world.optimizer == replace(small().world.optimizer, learning_rate=1.0)
    assert run.method.objective == PpoClip(high=0.28)
    assert run.world.env == small().world.env


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stepz = 3", "stepz: unknown name 'stepz'; did you mean 'steps'?"),
        ("[optimizer]\nlerning_rate = 1.0", "optimizer.lerning_rate: unknown name .* 'learning_rate'"),
        ("steps = 'many'", "steps: got 'many'; need a valid integer"),
        ("steps = true", "steps: got True; need"),
        ("steps = 1\n[world.schedule]\nsteps = 2", "steps: got it twice"),
        ("world = 3\nsteps = 2", "world: got 3; need a table"),
        ("[credit]\npiece = 'Grpoo'", "credit: unknown name 'Grpoo'"),
        ("[credit]\npiece = 'bough.nowhere:Grpo'", "credit: got piece 'bough.nowhere:Grpo'"),
        ("[[rewards]]\nweight = 1.0", "rewards.0: got a table without piece"),
        ("[credit]\npiece = 'bough.reward.outcome:EnvReward'", "credit: got EnvReward"),
        ("name = 'a/b'", "need a name that can be a folder's"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_toml(tomllib.loads(text), Run, small())


def test_a_part_of_a_run_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"world: got World without env, policy; need World\(env=\.\.\., policy"):
        from_toml({"name": "a", "world": {"name": "b"}}, Run)
    (tmp_path / "a.toml").write_text("steps: 3")
    with pytest.raises(ConfigError, match=r"--config .*a.toml: got no TOML \(.*\); need lines FIELD = VALUE"):
        read_tables(tmp_path / "a.toml", "--config")
