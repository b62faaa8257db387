"""Actions with a written search before them."""

from dataclasses import replace

import pytest
from tests.env.nim import Nim

from bough.env import Branching, InternalSearch, OpenSpiel, PerfectPlay, ScriptedSeats, State, Step
from bough.env.wrappers.internal_search import MOVE
from bough.tree import Outcome, Task
from bough.worlds.sokoban import Sokoban


def heap(left: int, seat: str = "first") -> State:
    actions = tuple(each for each in ("1", "2") if int(each) <= left)
    return State(observation="", key="", value=left, admissible=actions, seat=seat)


def test_the_tree_has_the_values_of_the_seat_that_writes_it() -> None:
    """From 2 the second seat would take both: to take 1 of 3 loses as well as to take 2."""
    env = InternalSearch(env=Nim(), depth=2)
    assert env.plan(heap(4)) == ("1 [1 1, 2 1] 1, 2 [1 1, 2 -1] -1 move: 1",)
    assert env.plan(heap(4, "second")) == ("1 [1 1, 2 1] 1, 2 [1 1, 2 -1] -1 move: 1",)
    assert InternalSearch(env=Nim(), depth=1).plan(heap(5)) == ("1 -1, 2 1 move: 2",)
    assert InternalSearch(env=Nim(), depth=1, width=1).plan(heap(5)) == ("2 1 move: 2",)
    assert InternalSearch(env=Nim(), depth=3).plan(heap(2)) == ("1 [1 -1] -1, 2 1 move: 2",)


def test_the_last_move_of_a_text_is_made_whatever_the_tree_says() -> None:
    env = InternalSearch(env=Nim())
    plain = env.step(heap(5), "2")
    written = env.step(heap(5), f"1 [1 1] 1 {MOVE} 1, no: 2 1 {MOVE} 2")
    assert written.state == plain.state
    assert (plain.info["searched_characters"], written.info["searched_characters"]) == (0, 26)
    assert not env.step(heap(5), f"1 1 {MOVE} 7").valid
    assert not env.step(heap(5), "2 1").valid


def test_written_searches_play_tic_tac_toe_perfectly() -> None:
    env = InternalSearch(env=OpenSpiel(game="tic_tac_toe"))
    alone = ScriptedSeats(env=env, scripts={"player_1": PerfectPlay()})
    for task in alone.tasks("train", 4, 0):
        step = Step(state=alone.start(task))
        while step.outcome is Outcome.OPEN:
            (text,) = (alone.plan(step.state) or ("",))[:1]
            assert MOVE in str(text)
            step = alone.step(step.state, text)
        assert step.reward >= 0, "perfect play of both does not lose from an opening without a win"


def test_a_state_without_admissible_actions_is_a_leaf() -> None:
    class Stuck(Nim):
        """After two are taken no action is admissible, and the game is not over."""

        def step(self, state: State, action: str) -> Step:
            found = Nim.step(self, state, action)
            return replace(found, state=replace(found.state, admissible=())) if action == "2" else found

    env = InternalSearch(env=Stuck(), depth=3)
    (text,) = env.plan(heap(5)) or ()
    assert "2 [" not in text
    assert env.plan(replace(heap(5), admissible=())) is None


def test_states_that_can_be_stepped_once_are_refused() -> None:
    with pytest.raises(ValueError, match=r"InternalSearch.env: got Nim.*wrap it in Replay"):
        InternalSearch(env=Nim(branching=Branching.NONE)).plan(heap(4))
    with pytest.raises(ValueError, match=r"InternalSearch.depth: got 101; need a number from 1 to 100"):
        InternalSearch(env=Nim(), depth=101)


def test_an_environment_without_a_list_of_moves_is_refused() -> None:
    class Unlisted(Sokoban):
        """Sokoban without admissible actions."""

        def start(self, task: Task) -> State:
            found = super().start(task)
            return State(observation=found.observation, key=found.key, value=found.value)

    env = InternalSearch(env=Unlisted())
    (task,) = env.tasks("train", 1, 0)
    with pytest.raises(ValueError, match="need one that lists admissible actions"):
        env.plan(env.start(task))
    with pytest.raises(ValueError, match=r"InternalSearch.depth: got 0"):
        InternalSearch(env=Nim(), depth=0)
