"""Curiosity: an inverted U of surprisal, in a tree search and as a preference."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.explore.stage import STOP, says
from tests.search.game import Game, search
from tests.trees import rewarded

from bough.engine import Scripted
from bough.methods.cosmos import cosmos as cosmos_method
from bough.objective import Orpo, Pairs
from bough.search import Curiosity
from bough.searches.cosmos import cosmos
from bough.tree import Kind, Tree, path, path_view, token_advantages
from bough.worlds.story.preset import story

SURPRISAL = {"a": 0.01, "b": 1.5, "c": 6.0}
"""Nats of a letter: expected, new, and incoherent."""


@dataclass
class Table(Scripted):
    """An engine with a fixed surprisal for each letter."""

    def __init__(self) -> None:
        super().__init__(script=says(lambda luck: luck.choice("abc")))

    async def score(  # type: ignore[override]
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        del prompt_tokens, temperature
        letters = [chr(token) for token in continuation_tokens if token != STOP]
        return tuple(-SURPRISAL[letter] for letter in letters)


def told(tree: Tree, node: int) -> str:
    return "".join(str(tree.info[step]["text"]) for step in path(tree, node) if tree.kind[step] == Kind.ACTION)


def test_worked_example() -> None:
    value = Curiosity(peak=1.5, spread=0.75)
    assert [value.index(each) for each in (0.0, 1.5, 3.0)] == pytest.approx([0.1353, 1.0, 0.1353], abs=5e-5)
    assert value.index(0.75) == pytest.approx(0.6065, abs=5e-5)


def test_the_answer_is_the_story_of_moderate_surprisal() -> None:
    """The success of the environment, for `aaa`, counts nothing."""
    game = Game(depth=3, letters="abc", pays={"aaa": 1.0})
    known, tree = search(cosmos(width=12, simulations=60), game, engine=Table())
    (end,) = np.flatnonzero(tree.answer).tolist()
    assert told(tree, end) == "bbb"
    assert tree.value[tree.kind == Kind.ACTION].size
    by_word = {"".join(each.action for each in node.path()): node.value for node in known.nodes}
    index = Curiosity().index
    expected = {word: np.mean([index(SURPRISAL[letter]) for letter in word]) for word in by_word if word}
    seen = {word: value for word, value in by_word.items() if word and not np.isnan(value)}
    assert seen == pytest.approx({word: expected[word] for word in seen})


def test_another_peak_leads_to_another_story() -> None:
    for peak, letter in ((0.0, "a"), (6.0, "c")):
        _, tree = search(cosmos(width=12, simulations=60, peak=peak), Game(depth=3, letters="abc"), engine=Table())
        (end,) = np.flatnonzero(tree.answer).tolist()
        assert told(tree, end) == 3 * letter


def test_the_search_goes_where_it_is_curious() -> None:
    known, _ = search(cosmos(width=12, simulations=25), Game(depth=4, letters="abc"), engine=Table())
    visits = {child.action: child.visits for child in known.root.children}
    assert visits["b"] > max(visits["a"], visits["c"])


def test_the_method_pairs_the_most_curious_step_with_the_least() -> None:
    """The advantage of a step is its value, and siblings are paired by it."""
    run = cosmos_method(story())
    assert run.method.objective == Orpo(pairs=Pairs(unit="turn", choice="best_worst"))
    _, tree = search(cosmos(width=12, simulations=4), Game(depth=1, letters="abc"), engine=Table())
    trees = [rewarded(tree)]
    view, (credited,) = path_view(trees), run.method.credit(trees)
    positive, negative = token_advantages([credited], view)
    advantage = positive - negative
    index = Curiosity().index
    for node in np.flatnonzero((tree.kind == Kind.ACTION) & (tree.visits > 0)).tolist():
        letter = str(tree.info[node]["text"])
        assert advantage[int(tree.span[node])] == pytest.approx(index(SURPRISAL[letter]), abs=1e-6)
    assert sum(tree.visits[tree.parent == 0] > 0) == 3


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"Curiosity.spread: got 0; need a number above 0"):
        Curiosity(spread=0)
