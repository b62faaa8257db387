"""Held-out results in sentences and tables, and numbers as text."""

import math

import pytest

from bough.view import Panel
from bough.view.numbers import duration, percent, points, short, signed
from bough.view.results import headline, results


def panel(label: str, solved: int, tasks: int = 100) -> Panel:
    names = tuple(f"t{i}" for i in range(tasks))
    return Panel(label=label, task_ids=names, successes=tuple(i < solved for i in range(tasks)))


def test_headlines() -> None:
    assert headline((panel("after training", 25),)) == (
        "Held-out success is 25.0% after training, 95% interval 17.5% to 34.3%, on 100 tasks."
    )
    assert "fell from 60.0% before to 20.0% after" in headline((panel("before", 60), panel("after", 20)))
    assert headline((panel("before", 30), panel("after", 31))).endswith("This could be chance.")
    assert headline((panel("before", 30), panel("after", 40, tasks=80))) == (
        "Held-out success went from 30.0% before to 50.0% after, on different tasks."
    )


def rewarded(label: str, *rewards: float, graded: bool = True) -> Panel:
    """A panel of failures with these rewards."""
    names = tuple(f"t{i}" for i in range(len(rewards)))
    paid = dict(zip(names, rewards, strict=True))
    return Panel(label=label, task_ids=names, successes=(False,) * len(names), rewards=paid, graded=graded)


def test_headlines_of_graded_rewards() -> None:
    before, after = rewarded("before", 0.1, 0.2, 0.3, 0.4), rewarded("after", 0.4, 0.5, 0.5, 0.8)
    told = headline((before, after))
    assert told.startswith(
        "Held-out reward rose from 0.25 before to 0.55 after: +0.3, 95% interval +0.17 to +0.43, on 4 tasks. "
        "Held-out success went from 0.0% before to 0.0% after"
    )
    assert headline((after, before)).startswith("Held-out reward fell from 0.55 after to 0.25 before: -0.3")
    assert headline((before,)).startswith(
        "Held-out reward is 0.25 before, 95% interval 0.0446 to 0.455, on 4 tasks. Held"
    )
    assert headline((before, rewarded("after", 1.0, 1.0))).startswith(
        "Held-out reward went from 0.25 before to 1 after, on different tasks."
    )
    # A cost that all paths pay leaves success in front, and a reward that is success is not shown.
    paid = (rewarded("before", 0.0, -0.1, graded=False), rewarded("after", -0.1, -0.1, graded=False))
    assert headline(paid).startswith("Held-out success went from 0.0%")
    assert "Held-out reward went from -0.05 before to -0.1 after" in headline(paid)
    assert "reward" not in headline((rewarded("before", 0.0, 0.0), rewarded("after", 0.0, 0.0)))


def test_panels_are_paired_by_task_and_not_by_place() -> None:
    before = Panel(label="before", task_ids=("a", "b", "c"), successes=(True, False, False))
    after = Panel(label="after", task_ids=("c", "b", "a"), successes=(True, False, True))
    again = Panel(label="after", task_ids=("a", "b", "c"), successes=(True, False, True))
    assert after.gain_over(before) == again.gain_over(before)
    with pytest.raises(ValueError, match="got 1 successes for 2 tasks, 1 of them different"):
        Panel(label="x", task_ids=("a", "a"), successes=(True,))
    with pytest.raises(ValueError, match="one or more tasks"):
        Panel(label="x", task_ids=(), successes=())


def test_numbers_as_a_person_reads_them() -> None:
    assert [short(x) for x in (0.0, 0.01234, -0.5, 12.0, 1234.5, 1.2e-5, math.nan)] == [
        *("0", "0.0123", "-0.5", "12", "1,234", "1.2e-05", "nan"),
    ]
    assert [duration(s) for s in (4.21, 59.4, 190.0, 4000.0)] == ["4.2s", "59s", "3m 10s", "1h 06m"]
    assert (percent(0.4375), points(-0.275), signed(-0.001), signed(0.5)) == ("43.8%", "-27.5", "0.00", "+0.50")


def test_tables_have_intervals_and_changes() -> None:
    (table,) = results((panel("after warm-up", 30), panel("after training", 60), panel("again", 5, tasks=10)))
    assert table.title == "Held-out success"
    first, second, third = table.rows
    assert first == ("after warm-up", "30 of 100", "30.0%", "21.9 to 39.6%", "\u2013", "")
    assert second[:3] == ("after training", "60 of 100", "60.0%")
    assert second[4].startswith("+30.0")
    assert third[4:] == ("other tasks", "")
    assert all(len(row) == len(table.head) for row in table.rows)
    assert results(()) == []


def test_graded_rewards_are_the_first_table() -> None:
    panels = (rewarded("before", 0.1, 0.2), rewarded("after", 0.4, 0.6))
    reward, success = results(panels)
    assert (reward.title, success.title) == ("Held-out reward", "Held-out success")
    assert reward.rows[1][:2] == ("after", "0.5")
    assert reward.rows[1][3] == "+0.35"
    assert [table.title for table in results(tuple(rewarded(name, 0.5, graded=False) for name in "ab"))] == [
        "Held-out success",
        "Held-out reward",
    ]
