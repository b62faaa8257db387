"""A tree of questions along one dialogue."""

import asyncio
import random

import numpy as np
import pytest
from tests.explore.stage import STOP, runner

from bough.engine import Request, Scripted
from bough.env import InProcessHost, ScriptedSeats
from bough.needs import FORKS, needs_of
from bough.rollout import Explorer
from bough.search import BestOf, TreeInstruct
from bough.tree import Kind, Source, Task, Ternary, Tree, path, text_in
from bough.worlds.socratic import ScriptedStudent, Socratic
from bough.worlds.socratic.env import ANGLES

ENV = ScriptedSeats(env=Socratic(max_turns=16), scripts={"student": ScriptedStudent()})
TASK = Task(id="a", data={"bugs": ["range", "order"]})


def talk(explorer: Explorer, *, listens: bool) -> tuple[Tree, list[str]]:
    """A dialogue with an instructor that asks at random, or what its hint does not list; and the prompts."""
    prompts: list[str] = []

    def script(request: Request) -> tuple[int, ...]:
        read = "".join(chr(token) for token in request.prompt_tokens if token != STOP)
        prompts.append(read)
        new = [angle for angle in ANGLES if f"- {angle}" not in read] if listens else ["explain"]
        return tuple(map(ord, random.Random(request.seed).choice(new)))

    async def one() -> Tree:
        place = runner(Scripted(script=script), InProcessHost(env=ENV))
        (tree,) = (await place.run(explorer, [TASK], seed=0)).trees
        return tree

    return asyncio.run(one()), prompts


def said(tree: Tree) -> list[str]:
    node = int(np.flatnonzero(tree.answer)[0])
    steps = path(tree, node).tolist()
    return [text_in(tree.info[each]) or "" for each in steps if tree.kind[each] == Kind.ACTION]


def test_failed_questions_are_not_repeated_on_their_level() -> None:
    tree, prompts = talk(TreeInstruct(), listens=True)
    assert tree.success[np.flatnonzero(tree.answer)] == Ternary.YES
    assert any("These questions were not understood:\n- " in each for each in prompts)
    assert len(tree.info) == 1 + 2 * len(said(tree)), "one path"


def test_three_failed_questions_on_a_level_are_followed_by_a_lesson() -> None:
    """This instructor always asks the same, which leads to no bug: every level has to be taught."""
    tree, _ = talk(TreeInstruct(), listens=False)
    assert said(tree)[:12] == ["explain", "explain", "explain", "teach"] * 3
    assert tree.success[np.flatnonzero(tree.answer)] == Ternary.YES
    taught = [node for node in range(tree.nodes) if tree.info[node].get("text") == "teach"]
    assert {int(tree.source[node]) for node in taught} == {Source.FORCED}
    plain, _ = talk(BestOf(n=4), listens=False)
    assert plain.success[np.flatnonzero(plain.answer)] != Ternary.YES
    never, _ = talk(TreeInstruct(teach=""), listens=False)
    assert "teach" not in said(never)


@pytest.mark.parametrize("questions", [1, 3])
@pytest.mark.parametrize("says", ["", "teach"])
def test_questions_that_the_environment_does_not_count_bring_no_lesson(says: str, questions: int) -> None:
    """This instructor says nothing, or teaches too early, in every second turn."""
    turns = 0

    def script(request: Request) -> tuple[int, ...]:
        nonlocal turns
        turns += bool(request)
        return tuple(map(ord, says if turns % 2 else "explain"))

    async def one() -> Tree:
        env = ScriptedSeats(env=Socratic(max_turns=24), scripts={"student": ScriptedStudent()})
        place = runner(Scripted(script=script), InProcessHost(env=env))
        (tree,) = (await place.run(TreeInstruct(questions=questions), [TASK], seed=0)).trees
        return tree

    tree = asyncio.run(one())
    taught = (tree.source == Source.FORCED) & (tree.kind == Kind.ACTION)
    assert taught.sum() == 2
    assert (tree.valid[taught] == Ternary.YES).all()


def test_a_lesson_that_is_refused_is_not_repeated_at_once() -> None:
    tree, _ = talk(TreeInstruct(teach="  "), listens=False)
    assert said(tree)[:8] == ["explain"] * 8, "it is not admissible"


def test_it_steps_no_state_twice_and_mistakes_are_named() -> None:
    assert FORKS not in needs_of(TreeInstruct())
    with pytest.raises(ValueError, match=r"TreeInstruct\.questions: got 0"):
        TreeInstruct(questions=0)
    with pytest.raises(ValueError, match=r"TreeInstruct\.text"):
        TreeInstruct(text="{nothing}")
