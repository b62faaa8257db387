from itertools import permutations

import pytest

from bough.tree import Action, BadCall, Message, ToolCall, after_action, in_call_order

ASK = Message(role="user", content="Weather?")
END = Message(role="assistant", content="Rain.")


def call(call_id: str) -> ToolCall:
    return ToolCall(name="weather", arguments={}, call_id=call_id)


def calls(*ids: str) -> Message:
    return Message(role="assistant", content="", tool_calls=tuple(map(call, ids)))


def result(call_id: str, content: str = "") -> Message:
    return Message(role="tool", content=content or call_id, call_id=call_id)


@pytest.mark.parametrize("order", permutations(("bern", "oslo", "rome")))
def test_results_follow_the_order_of_their_calls(order: tuple[str, ...]) -> None:
    asked = calls("bern", "oslo", "rome")
    for end in ((), (END,), (ASK,), (calls("next"), result("next"), END)):
        ordered = in_call_order((ASK, asked, *map(result, order), *end))
        assert ordered == (ASK, asked, *map(result, ("bern", "oslo", "rome")), *end)


@pytest.mark.parametrize(
    "messages",
    [
        (ASK, END, ASK),
        (ASK, calls("bern", "oslo")),
        (ASK, calls("", ""), result("", "1"), result("", "2"), END),
        (ASK, calls("bern", "oslo"), result("", "1"), result("", "2")),
        (ASK, END, result("", "the call was text"), END),
        (result("", "no call before it"), END),
        (),
    ],
)
def test_what_has_an_order_stays(messages: tuple[Message, ...]) -> None:
    assert in_call_order(messages) == messages


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ((calls("bern"), result("oslo")), r"\[2\]: got a result of the call 'oslo'; need one of each of \['bern'\]"),
        ((END, result("bern")), r"\[2\]: got a result of the call 'bern'; need one of each of \[\]"),
        ((calls("bern"), result("bern"), END, result("bern")), r"\[4\]: got a result of the call 'bern'"),
        ((calls("bern", "oslo"), result("oslo")), r"\[1\]: got no result of the call 'bern'"),
        ((calls("bern"), END), r"\[1\]: got no result of the call 'bern'; need one, next to it"),
        (
            (calls(""), result("", "1"), result("", "2")),
            r"\[1\]: got 2 results of 1 calls; need one of each, next to it",
        ),
        ((calls("bern", "oslo"), result("")), r"\[1\]: got 1 results of 2 calls"),
        ((calls("bern"), ASK, result("bern")), r"\[1\]: got no result of the call 'bern'"),
        ((calls("bern"), result("bern"), result("bern")), r"\[3\]: got a second result of the call 'bern'"),
        ((calls("bern", "oslo"), result("bern"), result("")), r"\[3\]: got a result of the call ''"),
        ((calls("bern", "bern"), result("bern"), result("bern")), r"\[1\]: got calls with equal ids"),
    ],
)
def test_results_without_a_call_and_calls_without_a_result(messages: tuple[Message, ...], told: str) -> None:
    with pytest.raises(ValueError, match=f"messages{told}"):
        in_call_order((ASK, *messages))


def test_results_after_an_action_are_in_the_order_of_its_calls() -> None:
    action = Action(calls=(call("1"), BadCall(text="(", problem="no"), call("2")))
    bad = Message(role="tool", content="bad")
    note = Message(role="user", content="note")
    one, two = result("1"), result("2")
    assert after_action(action, (two, bad, one, note)) == (one, bad, two, note)
    assert after_action(action, (bad, one, two)) == (one, bad, two)
    # Without ids, with equal ones, and after a text the messages stay.
    assert after_action(action, (bad, bad)) == (bad, bad)
    assert after_action(Action(calls=(call("1"), call("1"))), (one, one)) == (one, one)
    assert after_action("go", (note,)) == (note,)


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (("1", "3"), "got a result of the call '3'"),
        (("1", "1"), "got two results of the call '1'"),
        (("1",), "call '2'"),
    ],
)
def test_a_result_that_fits_no_call_names_its_id(ids: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        after_action(Action(calls=(call("1"), call("2"))), tuple(map(result, ids)))
