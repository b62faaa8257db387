from bough.tree import Outcome
from bough.view import choose_groups

WON, LOST, BROKE = (Outcome.TERMINATED, True, 1.0), (Outcome.TERMINATED, False, 0.0), (Outcome.FAILED, True, 9.0)


def test_best_worst_and_most_divided(chained) -> None:
    groups = [[chained(WON, WON, WON, LOST)], [chained(LOST, LOST)], [chained(WON), chained(LOST)], [chained(WON, WON)]]
    chosen = choose_groups(groups)
    assert chosen is not None
    assert chosen.best is groups[3]
    assert chosen.worst is groups[1]
    assert chosen.divided is groups[2]


def test_ties_go_to_more_paths_and_then_to_the_first(chained) -> None:
    groups = [[chained(WON, LOST)], [chained(WON, LOST, WON, LOST)], [chained(LOST, LOST, WON, WON)]]
    chosen = choose_groups(groups)
    assert chosen is not None
    assert chosen.best is chosen.worst is chosen.divided is groups[1]


def test_failed_paths_do_not_count(chained) -> None:
    groups = [[chained(BROKE, LOST)], [chained(WON, LOST)], [chained(BROKE)]]
    chosen = choose_groups(groups)
    assert chosen is not None
    assert chosen.best is groups[1]
    assert chosen.worst is groups[0]


def test_nothing_to_choose_from(chained) -> None:
    assert choose_groups([]) is None
    assert choose_groups([[chained(BROKE)]]) is None
