import pytest

from bough.tree import Credited, Kind, Outcome
from bough.view import show_tree
from bough.view.branch import branches


def test_a_tree_is_branches_of_turns(two_paths: Credited) -> None:
    (trunk,) = branches(two_paths)
    assert [turn.action for turn in trunk.turns] == ["right"]
    assert trunk.turns[0].answer == "SAG"
    assert trunk.end is None
    won, lost = trunk.branches
    assert won.end is not None
    assert (won.end.outcome, won.end.success, won.end.value) == ("solved", True, 1.0)
    assert [end.outcome for end in trunk.ends()] == ["solved", "not solved"]
    assert lost.turns[0].answer == "you fell & sank"


def test_a_turn_has_its_rewards_credit_and_certainty(two_paths: Credited) -> None:
    (trunk,) = branches(two_paths)
    shared, won = trunk.turns[0], trunk.branches[0].turns[0]
    # The two paths have advantages +0.5 and -0.5, and each has half a say at the action they share.
    assert (shared.positive, shared.negative, shared.advantage) == (0.25, -0.25, 0.0)
    assert (won.positive, won.negative) == (0.5, 0.0)
    assert (shared.rewards, won.rewards) == ({}, {"goal": 1.0})
    assert won.logprob == pytest.approx(-1.0)
    assert won.entropy == pytest.approx(0.25)
    assert (won.source, won.valid) == ("sampled", True)


def test_a_rebuilt_context_and_a_failed_path(grown) -> None:
    credited = grown(
        [
            (-1, Kind.PROMPT, "go"),
            (0, Kind.ACTION, "look"),
            (1, Kind.OBSERVATION, "a door"),
            (2, Kind.EDIT, "summary: a door"),
            (3, Kind.ACTION, "open", Outcome.TRUNCATED),
            (0, Kind.ACTION, "wait", Outcome.FAILED),
        ]
    )
    first, second = branches(credited)
    assert [(turn.action, turn.answer, turn.rebuilt) for turn in first.turns] == [
        ("look", "a door", "summary: a door"),
        ("open", "", ""),
    ]
    assert first.end is not None
    assert second.end is not None
    assert (first.end.outcome, second.end.outcome) == ("ran out of budget", "failed, not counted")


def test_a_branch_may_begin_with_what_came_back(grown) -> None:
    credited = grown(
        [
            (-1, Kind.PROMPT, "roll"),
            (0, Kind.ACTION, "dice"),
            (1, Kind.OBSERVATION, "six", Outcome.TERMINATED, True, 1.0),
            (1, Kind.OBSERVATION, "one", Outcome.TERMINATED),
        ]
    )
    (trunk,) = branches(credited)
    assert [branch.turns[0].action for branch in trunk.branches] == [None, None]
    assert trunk.branches[0].turns[0].rewards == {"goal": 1.0}


def test_a_group_as_text(two_paths: Credited) -> None:
    assert show_tree([two_paths]).splitlines() == [
        "lake-1: 2 paths, 1 solved, mean return 0.5",
        "| Reach G.",
        "| AFG",
        "└─ right                  0.00",
        "   ├─ right                 +0.50  reward 1",
        "   │  = solved, return 1",
        "   └─ down <b>              -0.50",
        "      = not solved, return 0",
    ]


def test_an_empty_group_as_text() -> None:
    assert show_tree([]) == "no task: 0 paths, 0 solved"
