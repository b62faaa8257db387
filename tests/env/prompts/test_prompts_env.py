"""Prompts and reward functions as an environment."""

# ruff: noqa: ARG001, ARG002, ARG005

import asyncio
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bough.config import dump, load
from bough.env import EnvFault, InProcessHost, PromptsEnv, ToolsEnv, prompts_env
from bough.env.prompts.reward_function import reward_function
from bough.needs import ORACLE, WHOLE_TEXT
from bough.tree import REWARD_PARTS, Message, Outcome, Task
from bough.usercode.address import address_of

ROWS = [{"prompt": f"{n} + 1?", "answer": str(n + 1), "split": "train", "level": n % 3} for n in range(6)]
SEEN: list[Mapping[str, Any]] = []
GIVEN: list[Any] = []
"""What `gives` returns."""


def simple(task: Mapping[str, Any], answer: str) -> bool:
    return answer == task["answer"]


def half(task: Mapping[str, Any], answer: str, factor: float = 0.5) -> float:
    return factor * (answer == task["answer"])


def spoils(task: dict[str, Any], answer: str) -> float:
    return float(task.pop("answer") == answer)


def correct(completions: Sequence[str], answer: Sequence[str], **_: Any) -> list[float]:
    return [float(completion == right) for completion, right in zip(completions, answer, strict=True)]


def only(*, prompts: Sequence[str], completions: Sequence[str]) -> list[float]:
    return [float(len(prompt) > len(each)) for prompt, each in zip(prompts, completions, strict=True)]


def seen(**columns: Any) -> list[float]:
    SEEN.append(columns)
    return [1.0]


async def easy(completions: Sequence[str], level: Sequence[int], **_: Any) -> list[float | None]:
    await asyncio.sleep(0)
    return [None if each else 0.25 for each in level]


def logs(completions: Sequence[str], log_metric: Any, log_extra: Any) -> list[float]:
    log_metric("letters", len(completions[0]))
    log_extra("shout", [each.upper() for each in completions])
    return [0.5]


def logs_too(completions: Sequence[str], log_metric: Any) -> list[float]:
    log_metric("letters", 1)
    return [0.5]


def logs_shout(completions: Sequence[str], log_extra: Any) -> list[float]:
    log_extra("shout", ["A"])
    return [0.5]


def logs_correct(completions: Sequence[str], log_metric: Any) -> list[float]:
    log_metric("correct", 1)
    return [0.5]


def logs_none(completions: Sequence[str], log_metric: Any) -> list[float]:
    log_metric("none", 1)
    return [0.5]


def logs_twice(completions: Sequence[str], log_metric: Any) -> list[float]:
    for length in (1, 2):
        log_metric("letters", length)
    return [0.5]


def shouts_twice(completions: Sequence[str], log_extra: Any) -> list[float]:
    for word in ("A", "B"):
        log_extra("shout", [word])
    return [0.5]


def logs_nan(completions: Sequence[str], log_metric: Any) -> list[float]:
    log_metric("letters", float("nan"))
    return [0.5]


def logs_number(completions: Sequence[str], log_extra: Any) -> list[float]:
    log_extra("shout", 3)
    return [0.5]


def logs_unnamed(completions: Sequence[str], log_extra: Any) -> list[float]:
    log_extra(3, ["a"])
    return [0.5]


def gives(completions: Sequence[str], **_: Any) -> Any:
    return GIVEN[-1]


def pays(task: Mapping[str, Any], answer: str) -> Any:
    return GIVEN[-1]


def none(completions: Sequence[str], **_: Any) -> list[None]:
    return [None]


def broken(completions: Sequence[str], **_: Any) -> list[float]:
    return [completions.value]  # type: ignore[attr-defined]


def needs_state(completions: Sequence[str], trainer_state: object) -> list[float]:
    return [0.0]


def needs_hint(completions: Sequence[str], hint: Sequence[str]) -> list[float]:
    return [0.0]


def no_answer(task: object) -> float:
    return 0.0


def of_tools(state: object, row: object, answer: str) -> float:
    return 0.0


def prompts_alone(prompts: object, answer: object) -> float:
    return 0.0


def solve(task: Mapping[str, Any]) -> str | None:
    return task["answer"] if task["level"] else None


def scaled(weight: float) -> Callable[..., list[float]]:
    def inner(completions: Sequence[str], **_: Any) -> list[float]:
        return [weight for _ in completions]

    return inner


@dataclass(frozen=True)
class Judge:
    score: float

    def __call__(self, completions: Sequence[str], **_: Any) -> list[float]:
        return [self.score for _ in completions]

    def rate(self, task: object, answer: str) -> float:
        return self.score / 2


double, seven, judge = scaled(2.0), partial(half, factor=7.0), Judge(0.75)


def first(env: PromptsEnv) -> Task:
    return min(env.tasks("train", 6, 0), key=lambda task: str(task.data["prompt"]))


def reward(answer: str, *functions: Any, rows: Any = None, **settings: Any) -> Any:
    env = prompts_env(tasks=ROWS if rows is None else rows, reward=functions, **settings)
    task = env.tasks("train", 1, 0)[0] if rows else first(env)
    return env.step(env.start(task), answer)


@pytest.mark.parametrize(
    ("function", "right", "success"),
    [
        (simple, 1.0, True),
        (half, 0.5, False),
        (correct, 1.0, True),
        (only, 1.0, True),
        (double, 2.0, True),
        (seven, 7.0, True),
        (judge, 0.75, False),
        (judge.rate, 0.375, False),
        (easy, 0.25, False),
    ],
)
def test_a_reward_function_of_each_form_rates_an_answer(function: Any, right: float, success: bool) -> None:
    step = reward("1", function)
    assert (step.reward, step.success, step.valid) == (right, success, True)
    assert (step.outcome, step.info) == (Outcome.TERMINATED, {})


def test_a_function_receives_prompts_completions_and_columns() -> None:
    SEEN.clear()
    reward("1", seen)
    (given,) = SEEN
    assert given.pop("log_metric")
    assert given.pop("log_extra")
    assert given == {
        "prompts": ["0 + 1?"],
        "completions": ["1"],
        "answer": ["1"],
        "level": [0],
        "split": ["train"],
    }


def test_a_prompt_of_messages_gives_messages() -> None:
    SEEN.clear()
    prompt = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2 + 3?"}]
    env = prompts_env(tasks=[{"prompt": prompt, "split": "train", "completion": "5"}], reward=seen)
    state = env.start(env.tasks("train", 1, 0)[0])
    assert state.observation == (Message(role="system", content="Be short."), Message(role="user", content="2 + 3?"))
    env.step(state, "5")
    assert SEEN[0]["prompts"] == [prompt]
    assert SEEN[0]["completions"] == [[{"role": "assistant", "content": "5"}]]
    assert "completion" not in SEEN[0], "the answer of the data set is no argument, as in TRL"
    told = prompts_env(tasks=[{"prompt": prompt, "split": "train"}], reward=seen, instructions="Be long.")
    (task,) = told.tasks("train", 1, 0)
    with pytest.raises(ValueError, match="got a system message and instructions; need one"):
        told.start(task)


def test_several_functions_are_weighted_and_named() -> None:
    step = reward("1", correct, logs, half, weights=[1, 0.2, 0], success=half, success_at=0.5)
    assert step.reward == pytest.approx(1.1)
    assert step.success
    assert step.info == {
        REWARD_PARTS: {"letters": 1.0, "correct": 1.0, "logs": 0.5, "half": 0.5},
        "logged": {"shout": "1"},
    }
    assert not reward("2", correct, half, success=half, success_at=0.5).success
    assert reward("2", logs).info[REWARD_PARTS] == {"letters": 1.0}


def test_none_leaves_a_function_out_and_is_named_where_no_function_rates() -> None:
    env = prompts_env(tasks=ROWS, reward=[correct, easy], success=correct)
    found = {task.data["level"]: env.step(env.start(task), "no") for task in env.tasks("train", 6, 0)}
    assert {level: step.reward for level, step in found.items()} == {0: 0.25, 1: 0.0, 2: 0.0}
    assert found[1].info == {REWARD_PARTS: {"correct": 0.0}}
    with pytest.raises(EnvFault, match=r"task prompts-\w+ got None from none, easy; need a number from one of them"):
        reward("1", none, easy, success=none, rows=[{"prompt": "a", "level": 1, "split": "train"}])


def test_an_answer_that_the_function_of_success_does_not_rate_is_not_judged() -> None:
    with pytest.raises(EnvFault, match="got None from none, which decides success; need True, False or a number"):
        reward("1", correct, none, success=none)


def test_what_a_function_logs_is_checked() -> None:
    for function, message in (
        (logs_nan, r"got nan as a metric of the reward function logs_nan .*need a finite number"),
        (logs_number, r"got 3 for log_extra in the reward function logs_number .*need a list with one value"),
        (logs_unnamed, r"got 3 as the name of log_extra in the reward function logs_unnamed .*need a text"),
    ):
        with pytest.raises(EnvFault, match=message):
            reward("1", function)


def test_a_logged_value_replaces_no_other_one() -> None:
    for functions, message in (
        ((logs, logs_too), "got the metric 'letters' of logs_too beside that of logs; need a name each; rename one in"),
        ((logs, logs_shout), "got the extra 'shout' of logs_shout beside that of logs; need a name each"),
        ((correct, logs_correct), "got the metric 'correct' of logs_correct beside the reward of that function"),
        ((none, correct, logs_none), "got the metric 'none' of logs_none beside the reward of that function"),
        ((logs_twice,), "got 'letters' as a second log_metric in the reward function logs_twice .*each name once"),
        ((shouts_twice,), "got 'shout' as a second log_extra in the reward function shouts_twice .*each name once"),
    ):
        with pytest.raises(EnvFault, match=message):
            reward("1", *functions, **({"success": functions[-1]} if len(functions) > 1 else {}))


def test_no_rows_a_missing_file_and_equal_rows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tasks: got no rows; need at least one"):
        prompts_env(tasks=[], reward=simple)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ValueError, match="prompts: got no rows of tasks; need at least one"):
        prompts_env(tasks=tmp_path / "empty.jsonl", reward=simple).tasks("train", 0, 0)
    for place, message in (
        (
            tmp_path / "gone.jsonl",
            r"got tasks='.*gone.jsonl', which does not exist; need a file of JSON .* of the hub$",
        ),
        (tmp_path / "emty.jsonl", r"emty.jsonl', which does not exist; .*of the hub; did you mean 'empty.jsonl'\?$"),
        (tmp_path, "which is a folder; need a file of JSON"),
        ("gsm8k", "which does not exist; need a file .* or owner/name for a data set of the hub"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            prompts_env(tasks=place, reward=simple).check_files()
    for place in ("", "https://host/tasks.jsonl"):
        with pytest.raises(ValueError, match=f"tasks: got {place!r}, which is no path; need a file of JSON"):
            prompts_env(tasks=place, reward=simple)
    prompts_env(tasks=ROWS, reward=simple).check_files()
    one, two = sorted(task.id for task in prompts_env(tasks=ROWS[:1] * 2, reward=simple).tasks("train", 2, 0))
    assert two == f"{one}-2"


def test_a_function_gets_a_copy_of_its_task() -> None:
    env = prompts_env(tasks=ROWS, reward=spoils)
    state = env.start(first(env))
    assert [env.step(state, "1").reward for _ in range(2)] == [1.0, 1.0]


RESULTS: dict[str, tuple[Any, float | str]] = {
    "bool": ([True], 1.0),
    "tuple": ((0.5,), 0.5),
    "array": (np.array([0.5], dtype=np.float32), 0.5),
    "tensor": (torch.tensor([0.25]), 0.25),
    "numpy scalar": ([np.float32(0.5)], 0.5),
    "too long": ([0.5, 0.5], "need a list with one number for each completion, here one"),
    "empty": ([], "need a list with one number for each completion"),
    "number": (0.5, "got 0.5 from the reward function gives .*need a list with one number"),
    "nothing": (None, "got None from the reward function gives"),
    "text": ("1", "need a list with one number"),
    "mapping": ({"a": 1.0}, "need a list with one number"),
    "nan": ([float("nan")], "got nan from the reward function gives .*need a finite number, or True or False"),
    "an integer beyond floats": ([10**400], "got 1000.* from the reward function gives .*need a finite number"),
    "text in a list": (["1"], "got '1' from .*need a finite number"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_list_of_one_number(name: str) -> None:
    result, expected = RESULTS[name]
    GIVEN.append(result)
    if isinstance(expected, float):
        assert reward("1", gives).reward == expected
    else:
        with pytest.raises(EnvFault, match=rf"(?s){expected}") as raised:
            reward("1", gives)
        assert f"test_prompts_env.py, line {gives.__code__.co_firstlineno}" in str(raised.value)


def test_none_as_a_reward_is_named_with_its_function() -> None:
    GIVEN.append(None)
    with pytest.raises(
        EnvFault, match=r"got None from the reward function pays \(.*test_prompts_env\.py, line \d+\); need a"
    ):
        reward("1", pays)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            no_answer,
            r"no_answer\(task: object\).*test_prompts_env.py, line \d+\); need a function \(completions, \*\*columns",
        ),
        (of_tools, "need a function"),
        (prompts_alone, "need a function"),
        (needs_state, "need one without 'trainer_state', which only TRL's trainer has"),
        (lambda task, answer: 1, "need one at the top of a module"),
        (scaled(1.0), r"scaled.<locals>.inner .*give it a name there, as in `search = make_search"),
        (partial(half, factor=1), "an object of partial .*give it a name there"),
    ],
)
def test_a_function_of_another_form_is_refused(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){message}"):
        prompts_env(tasks=ROWS, reward=function)


def test_wrong_settings_are_refused() -> None:
    for settings, message in (
        ({"reward": [correct, half]}, r"success: got ''; need the function that decides success.* success=half"),
        ({"reward": [correct, half], "success": simple}, "need the function that decides success, one of"),
        ({"reward": correct, "weights": [1, 2]}, "weights: got 2 weights; need 1"),
        ({"reward": [correct, correct]}, "each once"),
        ({"reward": []}, "at least one function"),
    ):
        with pytest.raises(ValueError, match=message):
            prompts_env(tasks=ROWS, **settings)
    missing = prompts_env(tasks=ROWS, reward=needs_hint)
    with pytest.raises(ValueError, match=r"got the columns prompt, answer, .*; need 'hint', which .* needs_hint \("):
        missing.tasks("train", 1, 0)
    with pytest.raises(ValueError, match=r"got no tools; .*prompts_env\(tasks=\.\.\., reward=\.\.\.\)"):
        ToolsEnv(rows=(), reward=address_of(simple))


def test_an_answer_ends_the_episode() -> None:
    env = prompts_env(tasks=ROWS, reward=simple, plan=solve)
    state = env.start(first(env))
    end = env.step(state, "1")
    assert env.step(end.state, "1").reward == 0
    assert env.plan(state) is None, "the oracle has no answer"
    (task,) = [task for task in env.tasks("train", 6, 0) if task.data["prompt"] == "1 + 1?"]
    assert env.plan(env.start(task)) == ("2",)
    assert env.plan(env.step(env.start(task), "2").state) is None
    assert (env.gives, env.needs) == ({ORACLE}, {WHOLE_TEXT})
    assert not prompts_env(tasks=ROWS, reward=simple).gives
    assert (reward(" ", simple).valid, reward("2", simple).valid) == (False, True)


def test_a_programming_error_is_a_fault_with_its_line() -> None:
    async def played() -> None:
        env = prompts_env(tasks=ROWS, reward=broken)
        host = InProcessHost(env=env)
        await host.step(await host.start(first(env)), "1")

    with pytest.raises(EnvFault, match=r"AttributeError: .*test_prompts_env\.py, line \d+, in broken\)"):
        asyncio.run(played())


def test_the_settings_are_written_and_read() -> None:
    env = prompts_env(tasks=ROWS, reward=[correct, easy, judge, double], success=correct, plan=solve)
    again = load(json.loads(json.dumps(dump(env))))
    assert again == env == pickle.loads(pickle.dumps(env))
    assert env.waits
    assert not prompts_env(tasks=ROWS, reward=correct).waits
    assert reward_function(env.rewards[2]).name == "judge"
    (task,) = again.tasks("train", 1, 0)
    assert again.step(again.start(task), "x").reward == env.step(env.start(task), "x").reward
