# ruff: noqa: ARG001, ARG002
"""CodeTree: strategies at the root, programs that run in the sandbox, and a critic that accepts or rejects them."""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.explore.stage import World, runner
from tests.search.talk import actions, answer, questions, search, talk

from bough.engine import Scripted
from bough.env import Branching, InProcessHost, Sandbox, Split, State, Step
from bough.rollout import Limits
from bough.search import Ideas, ProgramCritic
from bough.searches.code_tree import code_tree
from bough.tree import Task, Ternary, Tree
from bough.worlds.code import CodeTasks

FAR = InProcessHost(env=World(length=9))

ROW = {
    "id": "abs",
    "split": "test",
    "prompt": "Write f(x): the distance of x to 0.",
    "tests": ["assert f(2) == 2", "assert f(3) == 3", "assert f(-4) == 4", "assert f(0) == 0"],
    "reference": "f = abs",
}


def code(body: str) -> str:
    return f"f = lambda x: {body}"


WRITTEN = {"hint of an expert: return 2": code("2"), "hint of an expert: keep it": code("x"), "use abs": code("abs(x)")}


def act(read: str, luck: random.Random) -> str:
    """The program of the last hint."""
    return max(WRITTEN.items(), key=lambda item: read.rfind(item[0]))[1]


def said(*, accepts: Callable[[str], bool] = lambda read: "abs(x)" in read.rpartition("> ")[2]) -> Callable[[str], str]:
    """The thinker's lists, and the critic's answers."""

    def answered(read: str) -> str:
        if "different strategies" in read:
            return "1. return 2\n2. keep it\n"
        if "different ways" in read:
            return "- use abs\n" if "negative numbers" in read else "return 2\n"
        if "accept or reject" in read:
            return "accept" if accepts(read) else "It is wrong for negative numbers: reject"
        return "One test fails: 2"

    return answered


def found(tmp_path: Path, engine: Scripted, limits: Limits | None = None, **fields: Any) -> Tree:
    """The tree of a search on one task with two visible and two hidden tests."""
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROW))
    settings = {"visible": 2, "attempts": 3, "ends": "attempts", **fields}
    env: Any = CodeTasks(file=str(file), sandbox=Sandbox(wall_s=30, cpu_s=3), **settings)
    (task,) = env.tasks("test", 1, 0)

    async def grown() -> Tree:
        place = runner(engine, InProcessHost(env=env), limits=limits or Limits(turns=3), max_tokens=200)
        return (await place.run(code_tree(width=2), [task], seed=0)).trees[0]

    return asyncio.run(grown())


@pytest.mark.usefixtures("sandbox")
def test_a_rejected_program_is_repaired_and_an_accepted_one_ends_the_search(tmp_path: Path) -> None:
    """The first strategy fails a test; the second passes the visible ones alone, and its repair all."""
    engine = talk(act, said())
    tree = found(tmp_path, engine)
    assert answer(tree) == code("x") + code("abs(x)")
    assert tree.success[tree.answer].tolist() == [Ternary.YES]
    scores = {action: info["score"] for action, info in actions(tree).items() if "score" in info}
    first, repaired = code("2"), code("2") + code("2")
    assert scores == pytest.approx(
        {
            first: 0.5 + 0.4 / 3,
            repaired: 0.5 + 0.4 / 3,
            repaired + code("2"): 0.5,
            code("x"): 4 / 3,
            code("x") + code("abs(x)"): 2.0,
        }
    )
    asked = questions(engine)
    assert sum("different strategies" in each for each in asked) == 1
    assert sum("accept or reject" in each for each in asked) == 2
    (repairs,) = [each for each in asked if "different ways" in each and "negative numbers" in each]
    assert "The strategy of the program: keep it" in repairs


@pytest.mark.usefixtures("sandbox")
def test_what_the_critic_accepts_is_the_answer_whatever_the_hidden_tests_say(tmp_path: Path) -> None:
    tree = found(tmp_path, talk(act, said(accepts=lambda _: True)))
    assert answer(tree) == code("x")
    assert tree.success[tree.answer].tolist() != [Ternary.YES]


@pytest.mark.usefixtures("sandbox")
def test_without_an_accepted_program_the_answer_is_one_that_passes(tmp_path: Path) -> None:
    tree = found(tmp_path, talk(act, said(accepts=lambda _: False)), limits=Limits(turns=1))
    assert answer(tree) == code("x")


@pytest.mark.usefixtures("sandbox")
def test_an_episode_ends_with_the_visible_tests_or_with_the_attempts(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROW))
    for ends, outcome in (("visible", "TERMINATED"), ("attempts", "OPEN")):
        env: Any = CodeTasks(file=str(file), visible=2, attempts=2, ends=ends)
        step = env.step(env.start(env.tasks("test", 1, 0)[0]), code("x"))
        assert (step.outcome.name, step.info["visible"], step.info["passed"], step.success) == (
            outcome,
            1.0,
            0.5,
            False,
        )
    right = env.step(env.start(env.tasks("test", 1, 0)[0]), code("abs(x)"))
    assert (right.outcome.name, right.success, right.reward) == ("OPEN", True, 0.0)
    last = env.step(step.state, code("abs(x)"))
    assert (last.outcome.name, last.success, last.reward, last.info["visible"]) == ("TERMINATED", True, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"CodeTasks\.ends: got 'never'"):
        CodeTasks(ends="never")  # type: ignore[arg-type]


def test_each_idea_gets_one_action_and_without_a_list_there_is_one_without_a_hint() -> None:
    for listed, read in (("1) a\n2) b\n\n3) c", ["a", "b"]), ("", [""])):
        engine = talk(lambda *_: "b", lambda _, listed=listed: listed)
        search(engine, code_tree(width=2), host=FAR, limits=Limits(tree_turns=1))
        hints = ["".join(map(chr, each.prompt_tokens)).partition("expert: ")[2].rstrip("}") for each in engine.requests]
        texts = ["".join(map(chr, each.prompt_tokens)) for each in engine.requests]
        acted = [hint for hint, text in zip(hints, texts, strict=True) if text.startswith("{go: }")]
        assert acted[: len(read)] == read


class Programs:
    """A program is a letter; `pays` has the share of the tests that pass after each list of programs."""

    branching = Branching.COPY
    instructions = "Program."
    pays: ClassVar[dict[str, float]] = {"a": 0.5, "b": 0.2, "aa": 0.4, "ab": 0.6}

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return []

    def start(self, task: Task) -> State:
        return State(observation=".", key="", value="")

    def step(self, state: State, action: str) -> Step:
        done = f"{state.value}{action}"
        return Step(state=State(observation=done, key=done, value=done), reward=self.pays.get(done, 0.1))


@pytest.mark.parametrize(("rating", "kept"), [("0", False), ("5", True)])
def test_a_worse_program_is_repaired_only_if_the_critic_rates_it_higher(rating: str, kept: bool) -> None:
    """The reward is the share of tests where no test is visible: aa passes .4 where a passed .5."""

    def answered(read: str) -> str:
        return "a\nb" if "Name up to" in read else rating if "> a\na\n> a\naa\n" in read else "0"

    engine = talk(lambda read, _: read.rstrip("}")[-1], answered)
    tried = actions(search(engine, code_tree(width=2), host=InProcessHost(env=Programs()), limits=Limits(turns=3)))
    assert ("aaa" in tried) == kept
    assert "aba" in tried, "ab is better than a"


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"Ideas\.width: got 0"):
        Ideas(width=0)
    with pytest.raises(ValueError, match=r"Ideas\.text: got the placeholders \['thought'\]"):
        Ideas(text="{thought}")
    with pytest.raises(ValueError, match=r"ProgramCritic\.rate: got the placeholders"):
        ProgramCritic(rate="{review}")
