# ruff: noqa: ARG001
"""What the policy is told besides the observation."""

import random
from dataclasses import replace

import numpy as np
import pytest
from tests.explore.stage import World
from tests.search.talk import actions, answer, letter, questions, search, talk

from bough.engine import InjectedFault, Scripted
from bough.env import InProcessHost
from bough.rollout import Limits
from bough.search import (
    Best,
    Critique,
    DepthFirst,
    FixedHint,
    Hints,
    KindHint,
    Level,
    Reflections,
    RolloutValue,
    Sample,
    Search,
    Siblings,
)
from bough.searches.i_mcts import i_mcts
from bough.searches.web_pilot import web_pilot
from bough.tree import Source, Ternary

SHORT = InProcessHost(env=World(length=1))


def read(engine: Scripted) -> list[str]:
    """What the policy read when it acted, the last observation alone."""
    texts = ["".join(chr(token) for token in each.prompt_tokens if token) for each in engine.requests]
    return [text.rpartition("{")[2].rstrip("}") for text in texts if text.startswith("{go: }")]


def different(read: str, luck: random.Random) -> str:
    """The first letter that the hint does not name."""
    return next(each for each in "cba" if f"- {each}" not in read)


def test_siblings_are_told_to_be_different() -> None:
    """Left alone this policy always says c, which is wrong; told of what it said it comes to a."""
    engine = talk(different, lambda _: "never")
    hint = Siblings(text="Not: {actions}")
    tree = search(engine, Search(select=Best(), expand=Sample(width=3, hint=hint)), host=SHORT)
    assert read(engine) == [".", ".\nNot: - c", ".\nNot: - c\n- b"]
    assert answer(tree) == "a"
    found = actions(tree)
    assert [found[action]["source"] for action in "cba"] == [Source.SAMPLED, Source.TEACHER, Source.TEACHER]
    plain = search(talk(different, lambda _: ""), Search(select=Best(), expand=Sample(width=3)), host=SHORT)
    assert answer(plain) == "c"


def test_siblings_that_were_carried_out_say_what_came_of_it() -> None:
    """One action at a time, as depth-first search writes them: the second is told how the first ended."""
    engine = talk(different, lambda _: "never")
    one = Search(
        select=DepthFirst(), expand=Sample(width=1, hint=Siblings(text="{actions}")), expansions_per_node=3, merge=False
    )
    tree = search(engine, one, host=SHORT)
    assert read(engine) == [".", ".\n- c -> c", ".\n- c -> c\n- b -> b"]
    assert answer(tree) == "a"


@pytest.mark.parametrize(
    "how",
    [
        replace(i_mcts(rounds=1), expand=Sample(width=3, hint=Siblings(execute_first=True))),
        web_pilot(width=3, rounds=3).search,
    ],
)
def test_siblings_are_told_with_what_came_of_them(how: Search) -> None:
    """Each action is carried out once, before the next is written; the last one when the search gets there."""
    engine = talk(different, lambda _: "5")
    tree = search(engine, how, host=InProcessHost(env=World(length=2)))
    told = [text.partition("before:\n")[2].partition("\nDo")[0] for text in read(engine) if "before:" in text]
    assert told == ["- c -> c", "- c -> c\n- b -> b"]
    assert tree.counts.turns == np.sum(tree.valid != Ternary.UNKNOWN)


def test_an_end_that_a_hint_came_upon_is_found() -> None:
    """The second action succeeds when it is carried out for the third to be written; nothing selects it."""
    engine = talk(lambda read, _: next(each for each in "bac" if f"- {each}" not in read), lambda _: "5")
    one = Search(select=Best(), expand=Sample(width=3, hint=Siblings(execute_first=True)))
    tree = search(engine, one, host=SHORT)
    assert answer(tree) == "a"
    assert tree.counts.turns == 2


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_siblings_are_carried_out_within_the_budget(turns: int) -> None:
    engine = talk(lambda read, _: next(each for each in "dcba" if f"- {each}" not in read), lambda _: "5")
    one = Search(select=Best(), expand=Sample(width=4, hint=Siblings(execute_first=True)), stop_value=None)
    tree = search(engine, one, host=SHORT, limits=Limits(tree_turns=turns))
    assert tree.counts.turns == turns


def test_reflections_are_on_the_newest_failures_and_asked_for_once() -> None:
    """Each place is told why the last two ends were failures; nobody asks about one end twice."""

    def act(read: str, luck: random.Random) -> str:
        told = "".join(x for x in "bcd" if f"because {x}" in read)
        return {"": "b", "b": "c", "bc": "d", "cd": "a"}[told]

    engine = talk(act, lambda read: f"because {read.rpartition('> ')[2][0]}")
    hint = Hints(parts=(FixedHint(text="Think."), Reflections(keep=2)))
    one = Search(select=DepthFirst(), expand=Sample(width=1, hint=hint), expansions_per_node=5, merge=False)
    tree = search(engine, one, host=SHORT)
    assert read(engine) == [
        ".\nThink.",
        ".\nThink.\nEarlier attempts failed:\n- because b",
        ".\nThink.\nEarlier attempts failed:\n- because b\n- because c",
        ".\nThink.\nEarlier attempts failed:\n- because c\n- because d",
    ]
    assert answer(tree) == "a"
    assert len(questions(engine)) == 3
    assert tree.counts.calls == 7


def test_a_reflection_that_nobody_gave_is_counted() -> None:
    engine = talk(lambda *_: "b", lambda _: InjectedFault.FAULT)
    one = Search(select=DepthFirst(), expand=Sample(width=1, hint=Reflections()), expansions_per_node=2, merge=False)
    tree = search(engine, one, host=SHORT)
    assert len(questions(engine)) == 2
    assert tree.counts.unanswered == 1


def test_two_places_of_a_round_share_a_reflection() -> None:
    """Rollouts failed below both; in the next round both are told of the newest, about which one question is asked."""
    engine = talk(lambda read, luck: luck.choice("ab") if read.endswith("{.}") else "b", lambda _: "so")
    hint = Reflections(keep=1)
    two = Search(select=Level(), expand=Sample(width=6, hint=hint), evaluate=RolloutValue(), eager=True, rounds=2)
    tree = search(engine, two, host=InProcessHost(env=World(length=2)))
    assert {action for action in actions(tree) if len(action) == 2} == {"ab", "bb"}
    assert sum("- so" in text for text in read(engine)) == 12
    assert len(questions(engine)) == 1


def test_a_critique_is_of_the_last_action() -> None:
    engine = talk(letter, lambda read: f"{read.rpartition('> ')[2][0]} is wrong")
    tree = search(engine, Search(select=Level(), expand=Sample(width=2, hint=Critique()), eager=True, rounds=2))
    said = read(engine)
    assert said[:2] == [".", "."]
    assert set(said[2:]) == {f"{action}\n{action} is wrong" for action in actions(tree) if len(action) == 1}
    assert len(questions(engine)) == len({action for action in actions(tree) if len(action) == 1})


@pytest.mark.parametrize(("number", "kind"), [("1", "x"), ("2", "y")])
def test_a_critic_chooses_the_kind_of_step(number: str, kind: str) -> None:
    engine = talk(lambda read, _: "a" if "step: y" in read else "b", lambda _: number)
    hint = KindHint(kinds=("x", "y"))
    tree = search(engine, Search(select=Best(), expand=Sample(width=2, hint=hint)), host=SHORT)
    assert answer(tree) == {"x": "b", "y": "a"}[kind]
    assert len(questions(engine)) == 1


def test_without_a_choice_nothing_is_said() -> None:
    engine = talk(letter, lambda _: "7")
    tree = search(engine, Search(select=Best(), expand=Sample(width=1, hint=KindHint()), rounds=1))
    assert read(engine) == ["."]
    assert tree.counts.unanswered == 1


@pytest.mark.parametrize(
    "hint", [Siblings(), Reflections(), KindHint(), Critique()], ids=lambda hint: type(hint).__name__
)
def test_a_hint_that_can_not_be_paid_ends_the_search(hint: object) -> None:
    for calls in range(1, 9):
        engine = talk(letter, lambda _: "1")
        one = Search(select=Level(), expand=Sample(width=2, hint=hint), eager=True, stop_value=None)  # type: ignore[arg-type]
        tree = search(engine, one, limits=Limits(tree_calls=calls))
        assert len(engine.requests) == calls
        assert tree.answer.sum() == 1


def test_prompts_are_checked() -> None:
    with pytest.raises(ValueError, match=r"Siblings\.text: got the placeholders \['kind'\]"):
        Siblings(text="{kind}")
    with pytest.raises(ValueError, match=r"Reflections\.keep: got 0"):
        Reflections(keep=0)
    with pytest.raises(ValueError, match=r"KindHint\.kinds: got \('one',\)"):
        KindHint(kinds=("one",))
