"""DoraemonGPT: paths start at nodes drawn from all open ones, and success and failure have different signs."""

import math
import random

import pytest
from tests.explore.stage import World
from tests.search.game import Game, search, word
from tests.search.talk import actions, talk
from tests.search.talk import search as on_letters

from bough.engine import Scripted
from bough.env import InProcessHost
from bough.rollout import Limits
from bough.search import Admissible, Best, ConstantValue, DrawOpen, Search, UntilEnds
from bough.searches.doraemon import doraemon


def test_a_node_is_drawn_from_all_open_nodes_by_its_score() -> None:
    """Nodes of three depths; the shares of 4000 draws are those of the soft maximum."""
    known, _ = search(
        Search(select=Best(), expand=Admissible(), evaluate=ConstantValue(), eager=True, rounds=2), Game(depth=4)
    )
    scores = {node.number: 0.5 * node.depth * (node.number % 2) for node in known.nodes}

    class Score:
        def __call__(self, node) -> float:  # type: ignore[no-untyped-def]
            return scores[node.number]

    draw = DrawOpen(by=Score(), sharpness=2.0)
    drawn = [draw(known)[0].number for _ in range(4000)]
    total = sum(math.exp(2 * scores[node.number]) for node in known.live())
    assert {node.depth for node in known.live()} == {1, 2}
    for node in known.live():
        assert drawn.count(node.number) / 4000 == pytest.approx(math.exp(2 * scores[node.number]) / total, abs=0.03)


def test_ends_add_decaying_values_of_their_sign_to_all_ancestors_and_the_root() -> None:
    """The card's [1, .6065, .3679], and minus that for a failure; the released code adds it for both."""
    for letter, sign in (("a", 1.0), ("b", -1.0)):
        engine = Scripted(script=lambda _, letter=letter: (ord(letter),))
        known, _ = search(doraemon(answers=1), Game(depth=3, pays={"aaa": 1.0}), engine=engine)
        end = known.nodes[-1]
        assert [node.q for node in end.path()[::-1]] == pytest.approx(
            [sign, sign, sign * 0.6065, sign * 0.3679], abs=1e-4
        )


def test_paths_branch_anywhere_and_the_search_ends_after_some_answers() -> None:
    starts = set[str]()
    for answers in (1, 2, 6):
        engine = Scripted(script=lambda request: (ord(random.Random(request.seed).choice("ab")),))
        known, _ = search(doraemon(answers=answers), Game(depth=4), engine=engine)
        assert len(known.ends()) == answers
        starts |= {word(node) for node in known.nodes if len(node.children) > 1}
    assert len({len(start) for start in starts}) > 1, "at several depths"


def test_the_second_action_at_a_node_is_different_and_reads_what_the_first_led_to() -> None:
    engine = talk(lambda read, _: "b" if "- a ->" in read else "a", lambda _: "")
    place = InProcessHost(env=World(length=1))
    tree = on_letters(engine, doraemon(answers=2), host=place, limits=Limits(turns=1))
    assert set(actions(tree)) == {"a", "b"}


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"DrawOpen\.sharpness: got -1"):
        DrawOpen(sharpness=-1)
    with pytest.raises(ValueError, match=r"UntilEnds\.max_ends: got 0"):
        UntilEnds(max_ends=0)
