import pytest

from bough.env import State
from bough.tree import Outcome, Task
from bough.worlds.shop import Shop


def task(*goods: str) -> Task:
    return Task(id="shop-1", data={"list": list(goods)})


def test_a_list_bought_in_any_order_is_success_and_pays_one_in_all() -> None:
    shop = Shop(wanted=3)
    state, paid = shop.start(task("eggs", "fish", "tea")), 0.0
    assert state.observation == "list: eggs fish tea\nbasket: "
    for thing in ("tea", " Eggs", "fish"):
        assert state.admissible
        step = shop.step(state, thing)
        state, paid = step.state, paid + step.reward
    assert (step.outcome, step.success, step.valid) == (Outcome.TERMINATED, True, True)
    assert paid == pytest.approx(1)
    assert state.observation == "list: eggs fish tea\nbasket: tea eggs fish"


@pytest.mark.parametrize(("action", "valid"), [("fish", True), ("eggs", True), ("a boat", False), ("", False)])
def test_any_other_answer_ends_the_episode(action: str, valid: bool) -> None:
    shop = Shop()
    state = shop.step(shop.start(task("eggs", "tea")), "eggs").state
    step = shop.step(state, action)
    assert (step.outcome, step.success, step.reward, step.valid) == (Outcome.TERMINATED, False, 0.0, valid)
    assert step.state == state


def test_the_plan_is_what_is_missing() -> None:
    shop = Shop()
    state = shop.step(shop.start(task("eggs", "fish", "tea")), "fish").state
    assert shop.plan(state) == ("eggs", "tea")


@pytest.mark.parametrize("goods", [[], ["eggs", "eggs"], ["a boat"], "eggs", None])
def test_a_list_that_is_none(goods: object) -> None:
    with pytest.raises(ValueError, match=r"Shop: task x got the list .*; need different things"):
        Shop().start(Task(id="x", data={"list": goods}))


@pytest.mark.parametrize("wanted", [0, 13])
def test_lists_of_no_size(wanted: int) -> None:
    with pytest.raises(ValueError, match=f"Shop.wanted: got {wanted}; need a number from 1 to 12"):
        Shop(wanted=wanted)


def test_a_state_of_another_environment() -> None:
    with pytest.raises(TypeError, match="Shop: got a state with a value of type int"):
        Shop().step(State(observation="", key="", value=3), "eggs")
