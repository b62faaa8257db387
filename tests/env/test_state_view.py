"""Pictures of states: those of worlds change with the state, texts stay texts, and what is no SVG is refused."""

from dataclasses import dataclass
from xml.etree import ElementTree

import pytest

from bough.env import Env, State
from bough.env.state_view import has_state_view, view_state
from bough.env.svg import MARKED, box, lines
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.quiz import Quiz
from bough.worlds.screens import Screens
from bough.worlds.shop import Shop
from bough.worlds.sokoban import Sokoban
from bough.worlds.sql import Sql


@pytest.mark.parametrize(
    ("env", "mark"), [(FrozenLake(), "☺"), (Sokoban(), "☺"), (Shop(), "☑"), (Screens(), "←"), (Sql(), "1: ")]
)
def test_a_world_draws_its_states(env: Env, mark: str) -> None:
    task = env.tasks("train", 1, 0)[0]
    before = env.start(task)
    plan = env.plan(before)  # type: ignore[attr-defined]
    after = env.step(before, plan[0]).state
    pictures = [view_state(env, state) for state in (before, after)]
    assert all(picture is not None and ElementTree.fromstring(picture).get("viewBox") for picture in pictures)
    assert pictures[0] != pictures[1]
    assert mark in str(pictures[1])


def test_texts_in_a_picture_are_texts() -> None:
    drawn = ElementTree.fromstring(lines([("<script>alert(1)</script> &", True)]))
    assert [each.tag.rpartition("}")[2] for each in drawn] == ["rect", "text"]
    assert drawn[1].text == "☑ <script>alert(1)</script> &"
    assert "<b>" not in "".join(box("<b> and a text that is too long", 0, 0, 90, 20))


def test_a_field_with_the_focus_and_a_used_table_are_marked() -> None:
    """The phone marks the field that takes text, and shows the message of an impossible action; SQL marks tables."""
    phone = Screens()
    state = phone.start(phone.tasks("train", 1, 0)[0])
    assert "nothing to scroll" in str(view_state(phone, phone.step(state, "scroll down").state))
    sql = Sql()
    before = sql.start(sql.tasks("train", 1, 0)[0])
    after = sql.step(before, sql.plan(before)[0]).state  # type: ignore[index]
    assert MARKED not in str(view_state(sql, before))
    assert MARKED in str(view_state(sql, after))


@dataclass(frozen=True)
class Drawn(Sokoban):
    def view_state(self, state: State) -> str:
        return "<svg/>" if state.observation else "no picture"


def test_a_method_of_the_environment_draws_and_others_draw_nothing() -> None:
    env = Drawn()
    state = env.start(env.tasks("train", 1, 0)[0])
    assert view_state(env, state) == "<svg/>"
    with pytest.raises(ValueError, match="need a text that starts with <svg"):
        view_state(env, State(observation="", key="", value=state.value))
    assert has_state_view(env)
    assert not has_state_view(Quiz())
