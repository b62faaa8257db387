"""Notices that a run shows once."""

from bough.train.notices import Notices


def test_unequal_shares_of_an_update_are_reported_once() -> None:
    shown: list[str] = []
    notices = Notices(notify=shown.append)
    notices.shares({"update/tokens": 100.0})
    notices.shares({"update/tokens/0": 60.0, "update/tokens/1": 40.0})
    assert shown == []
    for _ in range(2):
        notices.shares({"update/tokens/0": 90.0, "update/tokens/1": 10.0})
    assert len(shown) == 1
    assert "unequal shares of an update, 10 to 90 tokens" in shown[0]
