"""Analyses of the parent's result and the siblings', before each action."""

import random

import pytest
from tests.explore.stage import World
from tests.search.talk import questions, search, talk

from bough.engine import InjectedFault
from bough.env import InProcessHost
from bough.rollout import Limits
from bough.search import Best, Introspect, Sample, Search
from bough.searches.i_mcts import i_mcts

FAR = InProcessHost(env=World(length=3))


def obedient(read: str, luck: random.Random) -> str:
    """Writes the letter that the analysis names; b without one."""
    del luck
    return read.rpartition("do ")[2][0] if "do " in read else "b"


def analysis(read: str) -> str:
    """Names the letter that the siblings did not try; judges nothing."""
    tried = [line[2] for line in read.splitlines() if line.startswith("- ")]
    return f"do {next(each for each in 'bac' if each not in tried)}" if "tried next" in read else "on track"


def test_the_analysis_of_executed_siblings_leads_to_what_is_different() -> None:
    engine = talk(obedient, analysis)
    how = Search(select=Best(), expand=Sample(width=2, hint=Introspect()), rounds=1)
    tree = search(engine, how, host=FAR)
    first = questions(engine)
    assert len(first) == 1, "the first action at the root needs none"
    assert "- b -> b\n" in first[0], "the sibling was executed, and its result is told"
    texts = {str(info["text"]) for info in tree.info if "prior" in info}
    assert texts == {"b", "a"}


def test_the_result_of_the_parent_is_analysed_too() -> None:
    engine = talk(obedient, analysis)
    how = Search(select=Best(), expand=Sample(width=1, hint=Introspect()), rounds=2)
    search(engine, how, host=FAR)
    (asked,) = questions(engine)
    assert "> b\nThe result:\nb\n" in asked
    assert "(nothing yet)" in asked


def test_i_mcts_solves_what_it_does_not_without_introspection() -> None:
    """The policy alone always writes b; its analyses lead to `a`, three times."""
    engine = talk(obedient, analysis)
    tree = search(engine, i_mcts(width=2, rounds=12), host=FAR, limits=Limits(turns=3))
    assert (tree.success == 1).any()
    silent = talk(obedient, lambda read: "" if "tried next" in read else "on track")
    tree = search(silent, i_mcts(width=2, rounds=12), host=FAR, limits=Limits(turns=3))
    assert not (tree.success == 1).any()


def test_without_an_answer_the_siblings_are_told() -> None:
    read: list[str] = []

    def act(text: str, luck: random.Random) -> str:
        read.append(text)
        return luck.choice("ab")

    engine = talk(act, lambda _: InjectedFault.FAULT)
    search(engine, Search(select=Best(), expand=Sample(width=2, hint=Introspect()), rounds=1), host=FAR)
    assert "From what was tried before:\n- " in read[-1]


def test_placeholders_are_checked() -> None:
    with pytest.raises(ValueError, match=r"Introspect\.text: got the placeholders \['plan'\]"):
        Introspect(text="{plan}")
