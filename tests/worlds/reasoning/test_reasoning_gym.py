"""The tasks of reasoning-gym, and scorers that cannot run an answer."""

import inspect
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.missing import need

from bough.env import State
from bough.tree import Outcome, Task
from bough.worlds.reasoning import ReasoningGym
from bough.worlds.reasoning.env import UNUSABLE, answer_of
from bough.worlds.reasoning.scorer import LITERALS, NUMBERS, may_evaluate, reasoning_gym, score

need("reasoning_gym")

JUNK = (
    "",
    "junk",
    "nan",
    "\0",
    "\ud800",
    "1e999",
    "[" * 500,
    "9" * 5000,
    "-" * 9000 + "1",
    "x" * 20000,
    "<answer></answer>",
)
SLOW = {"acre", "arc_agi", "figlet_font", "group_anagrams", "knight_swap", "zebra_puzzles"}
WITHOUT_ANSWER = {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}


def datasets() -> list[str]:
    return sorted({*reasoning_gym().factory.DATASETS} - {*UNUSABLE})


def test_every_dataset_makes_tasks_that_its_reference_answer_solves(tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    attacks = (f"__import__('os').system('touch {evil}')", f"open('{evil}', 'w')", f"[open('{evil}', 'w')]")
    assert len(datasets()) > 95
    for name in {*datasets()} - SLOW:
        env = ReasoningGym(datasets=(name,), size=50)
        (task,) = env.tasks("train", 1, 0)
        state = env.start(task)
        assert state.observation == task.data["question"]
        plan = env.plan(state)
        assert (plan is None) == (name in WITHOUT_ANSWER), name
        if plan is not None:
            step = env.step(state, plan[0])
            assert (step.reward, step.success, step.outcome) == (1.0, True, Outcome.TERMINATED), name
        for answer in (*JUNK, *attacks):
            step = env.step(state, answer)
            assert 0 <= step.reward < 1, name
            assert not step.success, name
            assert step.valid == bool(answer_of(answer))
    assert not evil.exists()


def test_the_datasets_whose_scorers_evaluate_answers_are_guarded() -> None:
    """Found in the source of this version: none is missing from the lists."""
    found: set[str] = set()
    for name in datasets():
        kind, _ = reasoning_gym().factory.DATASETS[name]
        source = inspect.getsource(sys.modules[kind.__module__])
        scored = source.partition("def score_answer")[2]
        if re.search(r"\beval\(answer\)|parse_expr\(answer\b", scored):
            found.add(name)
    assert found == LITERALS | NUMBERS


@pytest.mark.parametrize(
    ("name", "answer", "fits"),
    [
        ("countdown", "94*4 - 61 - 6/(2)", True),
        ("countdown", "9**9**9", False),
        ("countdown", "9//9", False),
        ("puzzle24", "__import__('os')", False),
        ("puzzle24", "1+" * 200 + "1", False),
        ("n_queens", "[['Q', '_']]", True),
        ("n_queens", "[open('x')]", False),
        ("spiral_matrix", "1 2 3", False),
        ("chain_sum", "anything", True),
    ],
)
def test_answers_that_a_scorer_may_evaluate(name: str, answer: str, fits: bool) -> None:
    assert may_evaluate(name, answer) == fits


def test_a_scorer_that_raises_or_returns_nan_gives_nothing() -> None:
    class Broken:
        def __init__(self, value: Any) -> None:
            self.value = value

        def score_answer(self, *_: Any) -> float:
            if isinstance(self.value, Exception):
                raise self.value
            return float(self.value)

    for value, expected in ((KeyError("x"), 0.0), (float("nan"), 0.0), (3, 1.0), (-1, 0.0), (0.25, 0.25)):
        assert score(Broken(value), "any", "a", {"answer": "b"}) == expected


def test_splits_share_no_question_and_tasks_follow_from_the_seed() -> None:
    env = ReasoningGym(datasets=("chain_sum", "leg_counting"), config='{"chain_sum": {"max_terms": 2}}')
    splits = {split: env.tasks(split, 100, 1) for split in ("train", "dev", "test")}
    questions = [{str(task.data["question"]) for task in tasks} for tasks in splits.values()]
    assert len(set.union(*questions)) == 300
    assert splits["train"][:7] == env.tasks("train", 7, 1)
    assert {str(task.data["dataset"]) for task in splits["train"]} == {"chain_sum", "leg_counting"}
    state = env.start(Task.read(json.loads(json.dumps(splits["dev"][0].record()))))
    step = env.step(state, " <answer> 1 </answer> or <answer>x</answer>")
    assert pickle.loads(pickle.dumps((env, state, step))) == (env, state, step)
    assert env.step(state, "x").reward == step.reward
    assert env.plan(step.state) is None
    assert env.step(step.state, "x").outcome is Outcome.TERMINATED


def test_settings() -> None:
    for fields, message in (
        ({"datasets": ()}, "datasets: got none"),
        ({"datasets": ("simple_integration",)}, "without a limit of time"),
        ({"datasets": ("ransom_note",)}, "PYTHONHASHSEED"),
        ({"datasets": ("complex_arithmetic",)}, "pays 1 for nan"),
        ({"datasets": ("game_of_life_halting",)}, "pays 1 for every text"),
        ({"datasets": ("composite",)}, "got 'composite', which makes no tasks: it is a mixture"),
        ({"config": "["}, r"config: got '\['"),
        ({"config": '{"a": 1}'}, "need JSON"),
        ({"size": 0}, "size: got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            ReasoningGym(**fields)
    with pytest.raises(ValueError, match="got 'chain_sums'; need one of ab, "):
        ReasoningGym(datasets=("chain_sums",)).tasks("train", 1, 0)
    with pytest.raises(ValueError, match="chain_sum got settings that it refuses"):
        ReasoningGym(config='{"chain_sum": {"odd": 3}}').tasks("train", 1, 0)
    with pytest.raises(ValueError, match="for split 'test'"):
        ReasoningGym(size=3).tasks("test", 50, 0)
    env = ReasoningGym()
    (task,) = env.tasks("train", 1, 0)
    with pytest.raises(ValueError, match="another question in this version"):
        env.start(Task(id="x", data={**task.data, "question": "1 + 1"}))
    with pytest.raises(ValueError, match="need an item"):
        env.start(Task(id="x"))
    with pytest.raises(TypeError, match="value of type int"):
        env.step(State(observation="", key="", value=3), "x")


def test_the_import_leaves_no_module_for_drawings_behind() -> None:
    reasoning_gym()
    assert all("NoDrawing" not in type(module).__name__ for module in sys.modules.values())
