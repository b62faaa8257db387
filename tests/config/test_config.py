import importlib
import itertools
import json
import math
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.small import run as small

import bough.recipes
from bough.cli.find import find_run
from bough.config import ConfigError, dump, load, override
from bough.config.config import build
from bough.config.override import interpret
from bough.context import Tagged, Window
from bough.credit import Grpo, dr_grpo, rloo
from bough.env import Replay
from bough.objective import Kl, PpoClip, Sum, gspo
from bough.policy import Lora, Pretrained
from bough.reward import EnvReward, InvalidAction, Success
from bough.rewrite.revise import Revise
from bough.train import Run
from bough.usercode import load_module
from bough.worlds.frozenlake import FrozenLake

RECIPES = [module.name for module in pkgutil.iter_modules(bough.recipes.__path__)]


def again(run: Run) -> Run:
    return load(json.loads(json.dumps(dump(run))))


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_comes_back_from_its_config(recipe: str) -> None:
    run = find_run(recipe)
    assert again(run) == run
    assert run.name == recipe


def test_everything_nested_comes_back() -> None:
    run = small().replace(
        env=Replay(env=FrozenLake(size=3)),
        policy=Pretrained(path="model", lora=Lora(targets=("q_proj", "v_proj")), template={"enable_thinking": False}),
        context=Window(turns=2),
        parser=Tagged(),
        objective=Sum(terms=(PpoClip(), Kl(estimator="k2"))),
        rewards=(EnvReward(), InvalidAction()),
        filters=(),
    )
    assert again(run) == run


def test_infinity_is_written_as_json_has_it() -> None:
    revise = Revise(min_return=-math.inf, below=math.inf)
    assert load(json.loads(json.dumps(dump(revise), allow_nan=False))) == revise


@pytest.mark.parametrize("text", ["[" * 100, "[" * 100_000, "{" * 100_000, "-" * 100_000 + "1", '{"a":' * 5000])
def test_a_value_that_is_nested_too_deeply_is_no_number(text: str) -> None:
    with pytest.raises(ConfigError, match=r"steps"):
        override(small(), [f"steps={text}"])


def test_a_piece_from_a_file_comes_back_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom bough.worlds.frozenlake import FrozenLake\n"
        "@dataclass(frozen=True, slots=True, kw_only=True)\nclass Pond(FrozenLake):\n    deep: bool = True\n"
    )
    run = small().replace(env=load_module(file).Pond(size=3, deep=False))
    assert dump(run)["world"]["env"]["piece"] == f"{file}:Pond"
    assert again(run) == run
    data = dump(run)
    file.unlink()
    data["world"]["env"]["piece"] = f"{tmp_path}/gone.py:Pond"
    with pytest.raises(
        ConfigError, match=r"world.env: got piece '.*gone.py:Pond', which cannot be imported: .* that exists"
    ):
        load(data)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a module in a package that is not installed."""
    folder = tmp_path / "project"
    (folder / "harbour").mkdir(parents=True)
    (folder / "harbour" / "boats.py").write_text(
        "from dataclasses import dataclass\nfrom bough.worlds.frozenlake import FrozenLake\n"
        "@dataclass(frozen=True, slots=True, kw_only=True)\nclass Pond(FrozenLake):\n    deep: bool = True\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "harbour"]:
        del sys.modules[name]


def test_a_piece_of_a_project_comes_back_by_its_folder(project: Path) -> None:
    before = [*sys.path]
    sys.path.append(str(project))
    boats = importlib.import_module("harbour.boats")
    data = json.loads(json.dumps(dump(small().replace(env=boats.Pond(size=3, deep=False)))))
    assert data["world"]["env"]["piece"] == "harbour.boats:Pond"
    assert data["world"]["env"]["from"] == str(project)
    assert "from" not in data["world"]["policy"], "an installed module needs no folder"
    sys.path[:] = before
    forget()
    run = load(data)
    assert type(run.world.env).__module__ == "harbour.boats"
    assert run.world.env.deep is False
    assert dump(run) == data


def test_a_project_that_was_moved(project: Path) -> None:
    data = {"piece": "harbour.boats:Pond", "from": str(project)}
    moved = project.rename(project.with_name("moved"))
    told = r"run: got piece 'harbour.boats:Pond', which cannot be imported: ModuleNotFoundError: No module named 'harb"
    with pytest.raises(ConfigError, match=rf"{told}.*It was at {project} when the run began: put it back, or correct"):
        load(data)
    assert load({**data, "from": str(moved)}).deep
    (project / "harbour").mkdir(parents=True)
    with pytest.raises(ConfigError, match=rf"got another module 'harbour.boats', {moved}.*need the one in {project}"):
        load(data)


@pytest.mark.parametrize(
    ("where", "value", "told"),
    [
        (("world", "schedule", "steps"), "many", "world.schedule.steps: got 'many'; need a valid integer"),
        (("world", "optimizer", "betas"), [0.9], r"world.optimizer.betas"),
        (("world", "optimizer", "bits"), 8, "world.optimizer.bits: unknown name 'bits'; .* in Optimizer"),
        (("world", "limits", "turms"), 3, "world.limits.turms: unknown name 'turms'; did you mean 'turns'"),
        (
            ("method", "credit", "piece"),
            "bough.credit:Nothing",
            "method.credit: got piece 'bough.credit:Nothing'; need a dataclass",
        ),
        (("method", "credit"), 3, "method.credit: got 3; need a piece"),
        (("world", "sampling", "top_p"), 2.0, "world.sampling: Sampling.top_p: got 2.0"),
    ],
)
def test_a_config_that_was_changed_by_hand(where: tuple[str, ...], value: object, told: str) -> None:
    data = dump(small())
    place = data
    for name in where[:-1]:
        place = place[name]
    place[where[-1]] = value
    with pytest.raises(ConfigError, match=told):
        load(data)


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(ConfigError, match="got a function in the configuration; need dataclasses, numbers"):
        dump(lambda: 0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("steps=7", {"steps": 7}),
        ("name=seven", {"name": "seven"}),
        ("name=7", {"name": "7"}),
        ("name=none", {"name": "none"}),
        ("optimizer.learning_rate=3e-4", {"optimizer": replace(small().world.optimizer, learning_rate=3e-4)}),
        ("optimizer.learning_rate=1", {"optimizer": replace(small().world.optimizer, learning_rate=1.0)}),
        ("optimizer.betas=[0.8,0.9]", {"optimizer": replace(small().world.optimizer, betas=(0.8, 0.9))}),
        ("optimizer.betas=(0.8, 0.9)", {"optimizer": replace(small().world.optimizer, betas=(0.8, 0.9))}),
        ("credit.std=none", {"credit": Grpo(std="none")}),
        ("limits.tokens=none", {"limits": replace(small().world.limits, tokens=None)}),
        ("limits.tokens=9", {"limits": replace(small().world.limits, tokens=9)}),
        ("tasks.file=tasks.jsonl", {"tasks": replace(small().world.tasks, file="tasks.jsonl")}),
        ("sampling.entropies=false", {"sampling": replace(small().world.sampling, entropies=False)}),
        ("credit=Grpo", {"credit": Grpo()}),
        ("credit=Grpo(mean=leave_one_out, std=none)", {"credit": Grpo(mean="leave_one_out", std="none")}),
        ("credit=Grpo()", {"credit": Grpo()}),
        ("credit=rloo()", {"credit": rloo()}),
        ("objective=gspo", {"objective": gspo()}),
        ("credit=dr_grpo", {"credit": dr_grpo()}),
        ("context=Window(turns=2)", {"context": Window(turns=2)}),
        ("rewards.0=Success", {"rewards": (Success(),)}),
        ("rewards=[EnvReward, InvalidAction()]", {"rewards": (EnvReward(), InvalidAction())}),
        ("rewards=(Success,)", {"rewards": (Success(),)}),
        ("filters=()", {"filters": ()}),
        ("env=Replay(env=FrozenLake(size=4))", {"env": Replay(env=FrozenLake(size=4))}),
        (
            "objective=Sum(terms=(PpoClip, Kl(coefficient=0.1, estimator=k2)))",
            {"objective": Sum(terms=(PpoClip(), Kl(coefficient=0.1, estimator="k2")))},
        ),
        (
            "policy=Pretrained(path=some/where,lora=Lora(rank=4,targets=('q_proj','v_proj')))",
            {"policy": Pretrained(path="some/where", lora=Lora(rank=4, targets=("q_proj", "v_proj")))},
        ),
        (
            'policy=Pretrained(path=x,template={"enable_thinking": false})',
            {"policy": Pretrained(path="x", template={"enable_thinking": False})},
        ),
    ],
)
def test_overrides(change: str, expected: dict[str, object]) -> None:
    assert override(small(), [change]) == small().replace(**expected)  # type: ignore[arg-type]


def test_overrides_one_after_the_other() -> None:
    run = override(
        small(),
        [
            "rewards=[EnvReward,InvalidAction]",
            "rewards.1=Success",
            "policy=Pretrained(path=x,lora=Lora)",
            "policy.lora.rank=2",
        ],
    )
    assert run.world.rewards == (EnvReward(), Success())
    assert run.world.policy == Pretrained(path="x", lora=Lora(rank=2))
    assert override(run, ["policy.lora=none"]).world.policy == Pretrained(path="x")


@dataclass(frozen=True, kw_only=True)
class Pair(FrozenLake):
    """A lake with two settings that are valid together alone."""

    low: int = 1
    high: int = 2

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"Pair.low: got {self.low}; need less than high, {self.high}")


@pytest.mark.parametrize(
    "changes",
    [
        ("env.low=12", "env.high=13"),
        ("env=Pair(low=12)", "env.high=13"),
        ("env=Pair", "env.low=12", "env.high=13"),
        ("env=Pair(low=0)", "env.low=12", "env.high=13"),
        ("world.env.low=12", "steps=7", "env.high=13"),
        ("rewards=[EnvReward,InvalidAction]", "rewards.1.penalty=0.5", "env.low=0"),
        ("policy=Pretrained(path=x)", "policy.lora=Lora", "policy.lora.rank=2"),
        ("policy=Pretrained", "policy.path=x"),
    ],
)
def test_the_order_of_overrides_is_free(changes: tuple[str, ...]) -> None:
    run = small().replace(env=Pair())
    first, *others = (override(run, order) for order in itertools.permutations(changes))
    assert first != run
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("changes", "names", "told"),
    [
        (["env.low=12", "env.high=11"], "env.high, env.low", "Pair.low: got 12; need less than high, 11"),
        (["env.size=5", "env.low=12"], "env.low", "Pair.low: got 12; need less than high, 2"),
        (["steps=2", "limits.turns=0"], "limits.turns", "Limits.turns: got 0; need"),
        (["env=Pair(low=12)", "env.high=11"], "env", "Pair.low: got 12; need less than high, 11"),
    ],
)
def test_an_override_that_fails_beside_another_is_named(changes: list[str], names: str, told: str) -> None:
    for order in itertools.permutations(changes):
        with pytest.raises(ConfigError) as caught:
            override(small().replace(env=Pair()), order)
        found, _, text = str(caught.value).partition(": ")
        assert ", ".join(sorted(found.split(", "))) == names
        assert text.startswith(told)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("=3", "got '=3'; need field=value"),
        ("credit=Grpo(none)", r"credit: got the argument 'none'; need name=value"),
        ("credit=Grpo(std=never)", "credit.std: got 'never'; need 'group', 'batch' or 'none'"),
        ("credit=Grpo(epsilon=0)", "credit: Grpo.epsilon: got 0"),
        ("context=Window", r"context: got Window without turns; need Window\(turns=...\)"),
        ("rewards=[EnvReward,Sucess]", "rewards.1: unknown name 'Sucess'; did you mean 'Success'"),
        ("rewards.x=Success", "rewards.x: got 'x'; need a number from 0 to 0"),
        ("rewards.\u00b2=Success", "rewards.\u00b2: got '\u00b2'; need a number from 0 to 0"),
        ("hooks.0.keep=1", "hooks.0: got '0'; need pieces first: the list is empty"),
        ("credit=none", "credit: got None; need a piece"),
        ("policy=Pretrained(path=x,lora=Lorra)", "policy.lora: unknown name 'Lorra'; did you mean 'Lora'"),
        ("optimizer.betas=3", "optimizer.betas: got 3; need"),
        ("optimizer.betas=[1,2,3]", "optimizer.betas"),
        ("limits.turns=none", "limits.turns: got None; need a number or a piece"),
        ("policy.lora.rank=3", "policy.lora: unknown name 'lora'"),
        ("tasks.file.x=3", "tasks.file.x: tasks.file is None, which has no fields; need tasks.file=VALUE"),
    ],
)
def test_overrides_that_cannot_be(change: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        override(small(), [change])


class Plain:
    """A class without fields."""


def test_a_class_that_is_no_dataclass_is_named() -> None:
    with pytest.raises(ConfigError, match=r"env: got Plain, which is no dataclass; write @dataclass"):
        build(Plain, {}, "env")


def test_lists_of_texts_need_no_quotes() -> None:
    assert interpret(Sequence[Sequence[str]], '[[up, "a b"], [left]]', "x") == (("up", "a b"), ("left",))
    assert interpret(Sequence[str], "[up, 1]", "x") == ("up", "1")
    with pytest.raises(ConfigError, match=r"x.1: got 'b'; need a valid number"):
        interpret(Sequence[float], "[1, b]", "x")
