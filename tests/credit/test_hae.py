from dataclasses import replace

import numpy as np
import pytest
from tests.credit.critics import at_actions, cut_off, episode, judged

from bough.credit import Hae
from bough.needs import FINAL_VALUES
from bough.tree import Rewarded, Source

RULE = Hae(whiten=False)
PARTS = {"switch": [0, 1], "subgoal": [1, 3], "action": [3, 4]}
"""Five tokens: the decision, two of a subgoal, the action, the stop."""


def turns(switches: list[bool], subgoals: list[bool] | None = None) -> list[dict[str, object]]:
    kept = {name: span for name, span in PARTS.items() if name != "subgoal"}
    writes = switches if subgoals is None else subgoals
    return [
        {"switch": switch, "spans": PARTS if written else kept}
        for switch, written in zip(switches, writes, strict=True)
    ]


def card(**changed: object) -> Rewarded:
    """The card's case; where a head is not asked, it says 9.9."""
    given = {"switches": [True, False, True, False], "subgoals": None, "rewards": [0.0, 0.0, 0.0, 1.0], **changed}
    tree = episode([5] * 4, given["rewards"], info=turns(given["switches"], given["subgoals"]))
    low, high, switch = np.full((3, 4, 5), 9.9)
    low[:, 3] = [0.5, 0.6, 0.4, 0.7]
    high[:, 0] = [0.3, np.nan, 0.5, np.nan]
    switch[:, 0] = [0.1, 0.2, 0.3, 0.4]
    return judged(tree, low=low.ravel(), high=np.nan_to_num(high, nan=9.9).ravel(), switch=switch.ravel())


def table(given: Rewarded, rule: Hae) -> np.ndarray:
    (credited,) = rule([given])
    return np.asarray(at_actions(given.tree, credited.advantage)).reshape(4, 5)


def value_targets(given: Rewarded, head: str) -> np.ndarray:
    (credited,) = RULE([given])
    return np.asarray(at_actions(given.tree, credited.value_targets[head])).reshape(4, 5)


def test_the_cards_case() -> None:
    found = table(card(), RULE)
    assert found[:, 3] == pytest.approx([-0.042813, -0.125, 0.53575, 0.3], abs=2e-5)
    assert found[[0, 2], 1] == pytest.approx([0.537069, 0.45], abs=2e-5)
    assert found[[0, 2], 2] == pytest.approx([0.537069, 0.45], abs=2e-5)
    # The decision: what is paid to the end of the segment and what the planner expects after it, less W.
    wanted = [0.95**2 * 0.5 - 0.1, 0.95 * 0.5 - 0.2, 0.95 - 0.3, 1 - 0.4]
    assert found[:, 0] == pytest.approx(wanted, abs=2e-5)
    assert not found[:, 4].any(), "the stop token is in no part"
    assert not found[[1, 3], 1:3].any(), "nothing between the decision and the action of a turn that keeps"


def test_a_truncated_path_goes_on_with_the_planners_value() -> None:
    """H is .6 where it ends; the released code takes L of the last turn, .7, and H of the last segment, .5."""
    cut = cut_off(card(), high=0.6)
    found = table(cut, replace(RULE, bootstrap_truncated=True))
    assert found[:, 3] == pytest.approx([-0.042813, -0.125, 1.050175, 0.87], abs=2e-5)
    assert found[[0, 2], 1] == pytest.approx([1.001337, 0.9915], abs=2e-5)
    assert found[2:, 0] == pytest.approx([0.95 + 0.95**2 * 0.6 - 0.3, 1 + 0.95 * 0.6 - 0.4], abs=2e-5)
    released = table(cut_off(card()), replace(RULE, bootstrap_truncated=True, as_released=True))
    assert released[:, 3] == pytest.approx([-0.042813, -0.125, 1.135913, 0.965], abs=2e-5)
    assert released[[0, 2], 1] == pytest.approx([0.923959, 0.90125], abs=2e-5)
    assert released[2:, 0] == pytest.approx([0.95 + 0.95**2 * 0.5 - 0.3, 1 + 0.95 * 0.5 - 0.4], abs=2e-5)
    assert np.array_equal(table(cut, RULE), table(card(), RULE)), "not asked for"
    assert FINAL_VALUES in replace(RULE, bootstrap_truncated=True).needs
    assert not {FINAL_VALUES} & (RULE.needs | replace(RULE, bootstrap_truncated=True, as_released=True).needs)


def test_goals() -> None:
    low, high, switch = (value_targets(card(), head) for head in ("low", "high", "switch"))
    assert low[:, 3] == pytest.approx([0.457187, 0.475, 0.93575, 1.0], abs=2e-5)
    assert high[[0, 2], 0] == pytest.approx([0.837069, 0.95], abs=2e-5)
    assert switch[:, 0] == pytest.approx([0.95**2 * 0.5, 0.95 * 0.5, 0.95, 1.0], abs=2e-5)
    for head, count in ((low, 4), (high, 2), (switch, 4)):
        assert np.isfinite(head).sum() == count


def test_the_first_turn_begins_a_segment_whatever_it_says() -> None:
    kept = table(card(switches=[False, False, True, False], subgoals=[True, False, True, False]), RULE)
    assert np.array_equal(kept, table(card(), RULE))


def test_a_subgoal_that_is_written_again_and_kept_gets_nothing() -> None:
    again = table(card(subgoals=[True] * 4), RULE)
    assert not again[[1, 3], 1:3].any()
    assert np.array_equal(again, table(card(), RULE))


def test_an_answer_without_parts_is_an_action() -> None:
    given = card()
    info = tuple({k: v for k, v in each.items() if k != "spans"} for each in given.tree.info)
    tree = type(given.tree)(task=given.tree.task, info=info, **given.tree.columns())
    low = np.array(given.estimates["low"])
    low[1::6] = [0.5, 0.6, 0.4, 0.7]
    bare = Rewarded(tree=tree, channels=given.channels, estimates={**given.estimates, "low": low})
    found = table(bare, RULE)
    assert found == pytest.approx(np.repeat([[-0.042813], [-0.125], [0.53575], [0.3]], 5, axis=1), abs=2e-5)


def test_a_token_with_a_bit_of_two_parts_is_of_the_first() -> None:
    given = card()
    both = {"switch": [0, 2], "subgoal": [1, 4], "action": [3, 4]}
    info = tuple({**each, "spans": both} if "spans" in each else each for each in given.tree.info)
    tree = type(given.tree)(task=given.tree.task, info=info, **given.tree.columns())
    found = table(Rewarded(tree=tree, channels=given.channels, estimates=given.estimates), RULE)
    apart = table(given, RULE)
    assert np.array_equal(found[0], apart[0][[0, 0, 1, 1, 4]])


def test_each_part_is_whitened_by_itself() -> None:
    found = table(card(), Hae())
    for values in (found[:, 3], found[[0, 2], 1], found[:, 0]):
        assert values.mean() == pytest.approx(0, abs=1e-6)
        assert values.std() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("by", "cost"), [("turn", 0.3), ("path", 0.3 / 4)])
def test_keeping_costs(by: str, cost: float) -> None:
    fined = table(card(), replace(RULE, keep_penalty=0.3, keep_by=by))
    paid = table(card(rewards=[0.0, -cost, 0.0, 1.0 - cost]), RULE)
    assert fined == pytest.approx(paid, abs=1e-6)


def test_a_teachers_turn_is_as_if_it_had_not_been() -> None:
    given = card()
    tree = episode(
        [5] * 5,
        [0.0, 0.0, 0.0, 0.0, 1.0],
        info=turns([True, True, False, True, False]),
        sources=[Source.SAMPLED, Source.TEACHER, *[Source.SAMPLED] * 3],
    )
    said = {
        name: np.insert(np.asarray(at_actions(given.tree, given.estimates[name])).reshape(4, 5), 1, 7.0, axis=0).ravel()
        for name in ("low", "high", "switch")
    }
    (credited,) = RULE([judged(tree, **said)])
    found = np.asarray(at_actions(tree, credited.advantage)).reshape(5, 5)
    assert not found[1].any()
    assert np.array_equal(np.delete(found, 1, axis=0), table(given, RULE))


@pytest.mark.parametrize("field", [{"discount": 0.0}, {"lam_low": 1.1}, {"lam_high": -1.0}, {"keep_penalty": -0.3}])
def test_fields(field: dict[str, float]) -> None:
    (name,) = field
    with pytest.raises(ValueError, match=f"Hae.{name}: got"):
        Hae(**field)
