"""Notices that a run shows once."""

from dataclasses import replace

from tests.trees import chains

from bough.train.notices import Notices
from bough.view import Alarm


def test_unequal_shares_of_an_update_are_reported_once() -> None:
    shown: list[str] = []
    notices = Notices(report=lambda alarm: shown.append(str(alarm)))
    notices.shares({"update/tokens": 100.0})
    notices.shares({"update/tokens/0": 60.0, "update/tokens/1": 40.0})
    assert shown == []
    for _ in range(2):
        notices.shares({"update/tokens/0": 90.0, "update/tokens/1": 10.0})
    assert len(shown) == 1
    assert "unequal shares of an update, 10 to 90 tokens" in shown[0]


def test_the_notice_of_failed_paths_says_that_others_took_their_place() -> None:
    shown: list[str] = []
    tree = chains([1.0, 0.0])
    failed = replace(tree, info=({"fault": "the server is gone"}, *tree.info[1:]))
    Notices(report=lambda alarm: shown.append(str(alarm))).faults([tree, failed])
    (line,) = shown
    assert line.startswith("1 path of a batch failed (paths/failed): the server is gone. ")
    assert "others were sampled in their place" in line


def test_half_of_the_groups_without_a_signal_are_an_alarm_after_ten_steps() -> None:
    shown: list[Alarm] = []
    notices = Notices(report=shown.append)
    for step in range(9):
        notices.groups(step % 2, 2)
    notices.groups(0, 2)
    assert shown == [], "4 of 20"
    for _ in range(3):
        notices.groups(2, 2)
    assert shown == [], "9 of 20"
    notices.groups(2, 2)
    notices.groups(2, 2)
    (alarm,) = shown
    assert (alarm.kind, alarm.found.partition(" groups")[0]) == ("equal groups", "10 of 20")
    assert alarm.meaning
    assert "explorer.n" in alarm.action
