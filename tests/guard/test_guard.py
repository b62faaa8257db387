import asyncio

import pytest
from tests.guard.guards import ChangesArguments, Denies, Fails, NoText, SaysYes, Waits

from bough.guard import Allow, Deny, Guard, check_action, denied_observation
from bough.tree import Action, BadCall, Message, ToolCall


@pytest.mark.parametrize(
    ("guard", "reason"),
    [
        (Fails(), r"the guard Fails raised .*KeyError.*rules"),
        (Fails(error=asyncio.CancelledError()), r"the guard Fails raised CancelledError"),
        (Fails(error=SystemExit(3)), r"the guard Fails raised SystemExit: 3"),
        (SaysYes(), "the guard SaysYes returned bool; need Allow or Deny"),
        (NoText(), "no b"),
        (Denies(reason=""), "the guard Denies raised .*ValueError: Deny.reason: got ''; need a sentence"),
        (Denies(reason=None), "Deny.reason: got None; need a sentence"),  # type: ignore[arg-type]
        (Denies(reason="no \ud800"), r"^no \?$"),
    ],
)
def test_a_guard_without_a_decision_denies(guard: Guard, reason: str) -> None:
    decision = asyncio.run(check_action(guard, "b", (), ()))
    assert isinstance(decision, Deny)
    with pytest.raises(ValueError, match=reason):
        raise ValueError(decision.reason)


def test_a_guard_allows() -> None:
    assert asyncio.run(check_action(NoText(), "a", (), ())) == Allow()


def test_a_guard_can_be_cancelled() -> None:
    async def main() -> None:
        checking = asyncio.create_task(check_action(Waits(), "a", (), ()))
        await asyncio.sleep(0)
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking

    asyncio.run(main())


def test_a_guard_does_not_change_the_action() -> None:
    action = Action(calls=(ToolCall(name="pay", arguments={"amount": 3}),))
    assert asyncio.run(check_action(ChangesArguments(), action, (), ())) == Allow()
    assert action == Action(calls=(ToolCall(name="pay", arguments={"amount": 3}),))


def test_each_call_gets_its_answer() -> None:
    calls = (ToolCall(name="pay", arguments={}, call_id="1"), BadCall(text="{", problem="no JSON"))
    seen = denied_observation(Action(calls=calls), Deny(reason="too late"))
    assert seen == tuple(Message(role="tool", content="denied: too late", call_id=each) for each in ("1", ""))
    assert denied_observation("pay", Deny(reason="too late")) == "denied: too late"
