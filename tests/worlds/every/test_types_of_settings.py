"""Settings of the wrong type or out of range, given in Python."""

from collections.abc import Callable
from typing import Any

import pytest

from bough.env import Env, HttpEnv, OpenSpiel, Verifiers
from bough.worlds.alfworld import AlfWorld
from bough.worlds.bfcl import Bfcl
from bough.worlds.code import CodeTasks
from bough.worlds.dialogue import Dialogue
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.miniwob import MiniWob
from bough.worlds.quiz import Quiz
from bough.worlds.reasoning import ReasoningGym
from bough.worlds.scienceworld import ScienceWorld
from bough.worlds.screens import Screens
from bough.worlds.search import KnowledgeGraph, SearchQa
from bough.worlds.shop import Shop
from bough.worlds.sokoban import Sokoban
from bough.worlds.sql import Sql


@pytest.mark.parametrize(
    ("cls", "fields", "message"),
    [
        (AlfWorld, {"max_steps": "9"}, "AlfWorld.max_steps: got '9'; need an integer"),
        (AlfWorld, {"max_steps": True}, "AlfWorld.max_steps: got True; need an integer"),
        (AlfWorld, {"max_steps": 0}, "AlfWorld.max_steps: got 0; need 1 or more"),
        (Bfcl, {"max_steps": 2.5}, "Bfcl.max_steps: got 2.5; need an integer"),
        (Bfcl, {"categories": "base"}, "Bfcl.categories: got 'base'; need a tuple, each item"),
        (CodeTasks, {"attempts": "3"}, "CodeTasks.attempts: got '3'; need an integer"),
        (Dialogue, {"patience": None}, "Dialogue.patience: got None; need an integer"),
        (FrozenLake, {"size": "5"}, "FrozenLake.size: got '5'; need an integer"),
        (FrozenLake, {"size": -(10**400)}, "FrozenLake.size: got -1000"),
        (FrozenLake, {"slip": float("nan")}, "FrozenLake.slip: got nan; need a probability"),
        (HttpEnv, {"url": "http://host", "items": "9"}, "HttpEnv.items: got '9'; need an integer"),
        (KnowledgeGraph, {"entities": "many"}, "KnowledgeGraph.entities: got 'many'; need an integer"),
        (KnowledgeGraph, {"hops": (2,)}, "KnowledgeGraph.hops: got (2,); need a tuple of 2 items"),
        (MiniWob, {"deadline_s": "1"}, "MiniWob.deadline_s: got '1'; need a number"),
        (OpenSpiel, {"forfeit_after": "3"}, "OpenSpiel.forfeit_after: got '3'; need an integer"),
        (Quiz, {"threshold": float("nan")}, "Quiz.threshold: got nan; need a share"),
        (ReasoningGym, {"size": "3"}, "ReasoningGym.size: got '3'; need an integer"),
        (ScienceWorld, {"max_steps": "3"}, "ScienceWorld.max_steps: got '3'; need an integer"),
        (Screens, {"max_steps": "3"}, "Screens.max_steps: got '3'; need an integer"),
        (SearchQa, {"top": 0}, "SearchQa.top: got 0; need at least 1"),
        (SearchQa, {"top": "5"}, "SearchQa.top: got '5'; need an integer"),
        (SearchQa, {"metric": "bleu"}, "SearchQa.metric: got 'bleu'; need 'f1', 'set_f1' or 'em'"),
        (Shop, {"wanted": 2.5}, "Shop.wanted: got 2.5; need an integer"),
        (Sokoban, {"boxes": None}, "Sokoban.boxes: got None; need an integer"),
        (Sql, {"max_queries": "6"}, "Sql.max_queries: got '6'; need an integer"),
        (Sql, {"oracle": "nothing"}, "Sql.oracle: got 'nothing'; need 'lookups', 'query' or 'components'"),
        (Sql, {"single_turn": 1}, "Sql.single_turn: got 1; need True or False"),
        (Verifiers, {"taskset": 3}, "Verifiers.taskset: got 3; need a text"),
    ],
)
def test_a_setting_of_the_wrong_type_is_refused(cls: Callable[..., Env], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"got") as caught:
        cls(**fields)
    assert str(caught.value).startswith(message)


def test_an_integer_is_a_number_and_none_is_a_value_where_the_type_has_it() -> None:
    env = SearchQa(noise=0, max_errors=None)
    assert (env.noise, env.max_errors) == (0, None)


def test_a_subclass_without_fields_is_checked_too() -> None:
    class LongQuiz(Quiz):
        """The quiz under another name."""

    assert LongQuiz(threshold=1).threshold == 1
    with pytest.raises(ValueError, match=r"LongQuiz.threshold: got 'high'; need a number"):
        LongQuiz(threshold="high")  # type: ignore[arg-type]
