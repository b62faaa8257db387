import numpy as np
import pytest
from hypothesis import given
from tests.credit.seen import paid, paths_of
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded, seeds

from bough.credit import Aspo, Grpo, dr_grpo
from bough.needs import annotation, needs_of
from bough.tree import Outcome, Source


@pytest.mark.parametrize(("position", "expected"), [([10, 30, 50], [1.2, 0.8, 0.4]), ([5, 95], [1.36, 0.24])])
def test_worked_example_beside_paths_that_are_not_shaped(position: list[int], expected: list[float]) -> None:
    """The last path of the task is not chosen, another task is: neither moves a mean."""
    many = len(position)
    shaped = Aspo().shape(
        np.full(many + 2, 0.8),
        np.asarray([*position, 1, 1], dtype=np.float64),
        np.asarray([100.0] * many + [3.0, 50.0]),
        np.asarray([0] * (many + 1) + [1]),
        np.asarray([True] * many + [False, True]),
    )
    assert shaped == pytest.approx([*expected, 0.8, 0.8], abs=2e-5)


def test_positions_are_tokens_before_the_first_turn_that_carries_the_mark() -> None:
    """Three solved paths of 6 tokens mark their 1st, 2nd and no turn; a failed one marks its 1st.

    Positions 0 and 2, mean 1, over the mean length 6: +- 2 / 6 beside an advantage of 0.25.
    """
    rewards = [[0.0, 0.0, 1.0]] * 3 + [[0.0, 0.0, 0.0]]
    where = [(0, 2), (1,), (), (0,)]
    infos = [[{"code": turn in turns} for turn in range(3)] for turns in where]
    (credited,) = Aspo(base=dr_grpo(), mark="code", cap=0.99)([paid(*rewards, infos=infos)])
    assert paths_of(credited) == pytest.approx([0.25 * 1.99, 0.25 * 0.01, 0.25, -0.75], abs=2e-5)
    (credited,) = Aspo(base=dr_grpo(), mark="code", delta=-0.6)([paid(*rewards, infos=infos)])
    assert paths_of(credited) == pytest.approx([0.25 + 0.1, 0.25 - 0.1, 0.25, -0.75], abs=2e-5)
    (late,) = Aspo(base=dr_grpo(), mark="code", delta=0.6)([paid(*rewards, infos=infos)])
    assert paths_of(late) == pytest.approx([0.25 - 0.1, 0.25 + 0.1, 0.25, -0.75], abs=2e-5)


def test_a_span_says_where_in_the_turn() -> None:
    infos = [[{"code": True, "spans": {"code": [0, 1]}}], [{"code": True, "spans": {"code": [1, 2]}}], [{}]]
    (credited,) = Aspo(base=dr_grpo(), mark="code", delta=-0.2)([paid([1.0], [1.0], [0.0], infos=infos)])
    assert paths_of(credited) == pytest.approx([1 / 3 + 0.05, 1 / 3 - 0.05, -2 / 3], abs=2e-5)


def test_what_others_wrote_is_no_distance() -> None:
    nodes = [N(parent=-1, kind=PROMPT)]
    for source in (Source.TEACHER, Source.SAMPLED):
        nodes.append(N(parent=0, kind=ACTION, tokens=(4, 5), source=source))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION))
        ending = {"env_reward": 1.0, "outcome": Outcome.TERMINATED, "success": True, "info": {"code": True}}
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION, tokens=(4, 5), **ending))  # type: ignore[arg-type]
    nodes.append(N(parent=0, kind=ACTION, outcome=Outcome.TERMINATED))
    (credited,) = Aspo(base=dr_grpo(), mark="code", delta=-0.3)([rewarded(build(*nodes))])
    # Positions 0 and 2, lengths 2 and 4.
    assert paths_of(credited) == pytest.approx([1 / 3 + 0.1, 1 / 3 - 0.1, -2 / 3], abs=2e-5)


def test_all_solved_is_a_tie_that_stays_a_tie() -> None:
    infos = [[{"code": True}, {}], [{}, {"code": True}]]
    (credited,) = Aspo(mark="code")([paid([0.0, 1.0], [0.0, 1.0], infos=infos)])
    assert paths_of(credited) == [0.0, 0.0]


@given(seeds())
def test_no_sign_changes(rng: np.random.Generator) -> None:
    rewards = [[0.0, float(rng.integers(0, 2))] for _ in range(8)]
    infos = [[{"code": bool(rng.integers(0, 2))} for _ in range(2)] for _ in range(8)]
    trees = [paid(*rewards, infos=infos)]
    shaped, base = (np.asarray(paths_of(rule(trees)[0])) for rule in (Aspo(mark="code", delta=-90.0), Grpo()))
    assert np.array_equal(np.sign(shaped), np.sign(base))
    assert np.all(np.abs(shaped - base) <= 0.7 * np.abs(base) + 1e-6)


def test_what_it_needs_and_takes() -> None:
    assert needs_of(Aspo(mark="code")) == {annotation("code")}
    assert needs_of(Aspo()) == needs_of(Aspo(mark="call:pay")) == {annotation("call")}
    assert needs_of(Aspo(mark="valid")) == frozenset()
    with pytest.raises(ValueError, match=r"Aspo.cap: got 1.0; need a number from 0 to below 1"):
        Aspo(cap=1.0)
