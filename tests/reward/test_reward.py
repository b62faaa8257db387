import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, random_tree, seeds

from bough.reward import EnvReward, Format, InvalidAction, Length, Success, compute_rewards
from bough.tree import Kind, Outcome, Ternary, Tree, counted, turns

DONE = Outcome.TERMINATED


def episode() -> Tree:
    """Three paths: solved in two turns, unsolved in one, solved in one; some actions are badly written."""
    return build(
        N(parent=-1, kind=PROMPT, valid=False),
        N(parent=0, kind=ACTION, env_reward=0.5, valid=False, well_formed=True),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, env_reward=1.0),
        N(parent=3, kind=OBSERVATION, outcome=DONE, success=True),
        N(parent=0, kind=ACTION, valid=False, well_formed=False),
        N(parent=5, kind=OBSERVATION, outcome=Outcome.TRUNCATED, success=False),
        N(parent=0, kind=ACTION, outcome=DONE, success=True, valid=True, well_formed=True),
    )


def test_worked_example() -> None:
    (paid,) = compute_rewards(
        [episode()], [EnvReward(weight=2.0), Success(), InvalidAction(), Format(penalty=0.3), Length(per_turn=0.1)]
    )
    assert {name: column.tolist() for name, column in paid.channels.items()} == {
        "env": [0, 1, 0, 2, 0, 0, 0, 0],
        "success": [0, 0, 0, 1, 0, 0, 0, 1],
        "invalid_action": [0, -0.1, 0, 0, 0, -0.1, 0, 0],
        "format": [0, 0, 0, 0, 0, -0.3, 0, 0],
        "length": [0, 0, 0, -0.2, 0, 0, 0, -0.1],
    }
    assert paid.returns().tolist() == pytest.approx([1 + 2 + 1 - 0.1 - 0.2, -0.1 - 0.3, 1 - 0.1])


def test_two_rewards_do_not_pay_under_one_name() -> None:
    with pytest.raises(ValueError, match=r"two that pay under \['env'\]; need a name of its own"):
        compute_rewards([episode()], [EnvReward(), EnvReward(weight=2.0)])


def test_an_action_after_which_paths_end_well_and_badly_is_paid_at_their_ends() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION),
        N(parent=1, kind=OBSERVATION, outcome=DONE, success=True),
        N(parent=1, kind=OBSERVATION, outcome=DONE, success=False),
    )
    (paid,) = compute_rewards([tree], [Success()])
    assert paid.channels["success"].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert paid.returns().tolist() == [1.0, 0.0]


def test_an_action_after_which_a_path_is_solved_and_another_goes_on_is_paid_at_the_end() -> None:
    for late in (False, True):
        tree = build(
            N(parent=-1, kind=PROMPT),
            N(parent=0, kind=ACTION),
            N(parent=1, kind=OBSERVATION, outcome=DONE, success=True),
            N(parent=1, kind=OBSERVATION),
            N(parent=3, kind=ACTION, outcome=DONE, success=late),
        )
        (paid,) = compute_rewards([tree], [Success(), Length(per_turn=0.1)])
        assert paid.returns().tolist() == pytest.approx([0.9, 0.8 if late else 0.0])


@pytest.mark.parametrize("piece", [InvalidAction, Format])
def test_penalties_are_given_as_costs(piece: type[InvalidAction] | type[Format]) -> None:
    with pytest.raises(ValueError, match=r"penalty: got -0.1; need 0 or more, it is subtracted"):
        piece(penalty=-0.1)
    with pytest.raises(ValueError, match=r"Length.per_turn: got nan"):
        Length(per_turn=float("nan"))


def test_failing_fast_is_never_paid() -> None:
    tree = chains([0.0, 0.0, 1.0, 1.0], turns=[1, 3, 1, 3])
    (paid,) = compute_rewards([tree], [Success(), Length(per_turn=0.1)])
    assert paid.returns().tolist() == pytest.approx([0.0, 0.0, 0.9, 0.7])


@given(seeds())
def test_each_path_is_paid_for_its_own_ending(rng: np.random.Generator) -> None:
    trees = [random_tree(rng, unusual=0.0, task="a"), random_tree(rng, unusual=0.0, task="a")]
    for paid in compute_rewards(trees, [Success(weight=3.0), Length(per_turn=0.5)]):
        tree = paid.tree
        for leaf, total in zip(counted(tree), paid.returns(), strict=True):
            won = tree.success[leaf] == Ternary.YES
            assert total == (3.0 - 0.5 * turns(tree)[leaf] if won else 0.0)
        assert not np.any(paid.reward[tree.kind != Kind.ACTION])
