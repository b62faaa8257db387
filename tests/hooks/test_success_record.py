"""Rewards that compare a path with the task's best so far: their numbers, what is remembered, and that it resumes."""

from typing import Literal

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, as_replayed, build, chains, rewarded

from bough.hooks import FewestCalls, LengthHistory
from bough.hooks.fewest_calls import taken_actions
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.hooks.success_record import SuccessRecordState
from bough.needs import CALLS, needs_of
from bough.tree import Outcome, Rewarded

DONE = Outcome.TERMINATED
CALL: dict[str, object] = {"name": "search", "arguments": {}, "call_id": ""}


def begun(recipe: LengthHistory | FewestCalls) -> SuccessRecordState:
    return recipe.build(HookSetup(vocab_tokens=10))


def written(*paths: tuple[int, bool], task: str = "task") -> Rewarded:
    """Paths of one turn with so many tokens, solved or not."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for tokens, success in paths:
        nodes.append(N(parent=0, kind=ACTION, tokens=(5,) * tokens, env_reward=float(success)))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=DONE, success=success))
    return rewarded(build(*nodes, task=task))


def called(*paths: tuple[int, bool]) -> Rewarded:
    """Paths of one turn with so many calls, solved or not."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for calls, success in paths:
        nodes.append(N(parent=0, kind=ACTION, tokens=(5,), info={"text": "", "calls": [CALL] * calls}))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=DONE, success=success))
    return rewarded(build(*nodes))


def paid(state: SuccessRecordState, channel: str, trees: Rewarded) -> list[float]:
    """What the actions of the paths are paid, in order."""
    (found,) = state.transform([trees], 0)
    return found.channels[channel][found.tree.kind == ACTION].tolist()


def test_the_worked_example_of_hapo() -> None:
    tokens = np.asarray([50.0, 100, 120, 150, 200, 400])
    right, wrong = np.ones(6, dtype=np.bool_), np.zeros(6, dtype=np.bool_)
    cosine = LengthHistory()
    assert cosine.pay(tokens, right, 100) == pytest.approx([0.707107, 0, -0.309017, -0.7, -0.7, -0.7], abs=2e-5)
    assert cosine.pay(tokens, wrong, 100) == pytest.approx([0, 0, -0.309017, -0.707107, -1, -1], abs=2e-5)
    linear, more = LengthHistory(form="linear"), np.asarray([50.0, 100, 110, 120, 150, 200, 400])
    assert linear.pay(more, np.ones(7, dtype=np.bool_), 100) == pytest.approx([0.5, 0, 0, -0.1, -0.4, -0.7, -0.7])
    assert linear.pay(np.asarray([50.0, 110, 150, 200, 400]), np.zeros(5, dtype=np.bool_), 100) == pytest.approx(
        [0, 0, -0.4, -0.9, -1]
    )


@pytest.mark.parametrize("form", ["cosine", "linear"])
def test_a_length_is_paid_in_proportion_to_the_weight(form: Literal["cosine", "linear"]) -> None:
    tokens = np.asarray([50.0, 150, 400])
    for success in (np.ones(3, dtype=np.bool_), np.zeros(3, dtype=np.bool_)):
        whole, part = (LengthHistory(form=form, weight=weight).pay(tokens, success, 100) for weight in (1.0, 0.25))
        assert whole.any()
        assert part == pytest.approx(0.25 * whole)
    assert LengthHistory(weight=0.25).reward_ranges["length_history"].low == -0.25


def test_the_worked_example_of_otc() -> None:
    hook = FewestCalls()
    assert hook.factor(np.asarray([0.0, 1, 2, 3, 4, 8]), 2) == pytest.approx(
        [0, 0.866025, 1, 0.951057, 0.866025, 0.587785], abs=2e-5
    )
    assert hook.factor(np.asarray([0.0, 1, 2]), 0) == pytest.approx([1, 0.5, 0.309017], abs=2e-5)


def test_the_form_for_ppo_has_no_record() -> None:
    hook = FewestCalls(form="ppo")
    assert hook.factor(np.asarray([0.0, 1, 2]), 2) == pytest.approx([1, 0.5, 0.309017], abs=2e-5)
    with pytest.raises(ValueError, match=r"FewestCalls.form: got 'dpo'; need 'grpo' or 'ppo'"):
        FewestCalls(form="dpo")  # type: ignore[arg-type]


def test_actions_are_calls_where_there_are_no_tools() -> None:
    hook = FewestCalls(actions=True)
    assert needs_of(FewestCalls()) == {CALLS}
    assert not needs_of(hook)
    assert taken_actions(chains([1.0, 1.0], turns=(1, 3))).sum() == 4
    trees = rewarded(chains([1.0, 1.0], turns=(1, 3)))
    (found,) = begun(hook).transform([trees], 0)
    assert found.returns() == pytest.approx([1.0, np.sin(1.5 * np.pi / 2)], abs=2e-5)


def test_a_length_is_compared_with_successes_of_earlier_steps_alone() -> None:
    state = begun(LengthHistory())
    assert paid(state, "length_history", written((4, False), (9, False))) == [0, 0]
    assert state.data.records == {}, "failures leave no record"
    assert paid(state, "length_history", written((8, True), (4, True), (2, False))) == [0, 0, 0]
    assert state.data.records == {"task": 4.0}
    assert paid(state, "length_history", written((2, True), (4, True), (8, True), (8, False))) == pytest.approx(
        [0.707107, 0, -0.7, -1], abs=2e-5
    )
    assert state.data.records == {"task": 2.0}
    assert paid(state, "length_history", written((4, True))) == [pytest.approx(-0.7)]
    assert state.data.records == {"task": 2.0}, "a longer success leaves the record"
    assert paid(state, "length_history", written((4, True), task="other")) == [0], "each task has its own"
    assert state.observe() == {"length_history/tasks": 2.0, "length_history/record": 3.0}


def test_replayed_paths_leave_no_record() -> None:
    state = begun(LengthHistory())
    state.transform([as_replayed(written((2, True)))], 0)
    assert state.data.records == {}


def test_the_mean_of_all_successes_is_a_history_too() -> None:
    state = begun(LengthHistory(history="mean"))
    state.transform([written((8, True), (4, True), (100, False))], 0)
    assert state.data.records == {"task": 6.0}
    assert paid(state, "length_history", written((3, True), (6, True))) == pytest.approx([0.707107, 0], abs=2e-5)
    assert state.data.records == {"task": (8 + 4 + 3 + 6) / 4}, "each success counts once, not each step"
    again = begun(LengthHistory(history="mean"))
    restore(again.data, save(state.data))
    for each in (state, again):
        each.transform([written((1, True))], 0)
    assert state.data.records == again.data.records == {"task": 22 / 5}
    with pytest.raises(ValueError, match=r"LengthHistory.history: got 'max'; need 'min' or 'mean'"):
        LengthHistory(history="max")  # type: ignore[arg-type]


def test_calls_are_compared_with_the_present_group_too() -> None:
    state = begun(FewestCalls(weight=2.0))
    assert paid(state, "fewest_calls", called((2, True), (4, True), (1, False), (0, False))) == pytest.approx(
        [0, 2 * (0.866025 - 1), 0, 0], abs=2e-5
    )
    assert paid(state, "fewest_calls", called((0, True), (2, True))) == pytest.approx(
        [0, 2 * (np.cos(0.4 * np.pi) - 1)]
    )


def test_records_are_part_of_a_checkpoint() -> None:
    first = begun(LengthHistory())
    first.transform([written((4, True)), written((7, True), task="ä")], 0)
    second = begun(LengthHistory())
    restore(second.data, save(first.data))
    assert second.data.records == first.data.records == {"task": 4.0, "ä": 7.0}


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"LengthHistory.weight: got 2; need a number from 0 to 1, so that success"):
        LengthHistory(weight=2)
    given = begun(LengthHistory()).transform([rewarded(chains([1.0]))], 0)
    with pytest.raises(ValueError, match="got a reward with this channel"):
        begun(LengthHistory()).transform(given, 0)
