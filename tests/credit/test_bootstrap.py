"""Bootstraps of truncated paths: worked examples, and the exact advantage of a small process."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.credit.critics import at_actions, cut_off, episode, judged

from bough.credit import Gae, Poad, TurnPpo, ntpo
from bough.needs import FINAL_VALUES, needs_of
from bough.tree import Outcome, Rewarded, Source, keep_paths, leaves, truncated_states

CARD = judged(episode([2, 3], [0.0, 1.0]), value=[0.1, 0.2, 0.3, 0.4, 0.5])


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        (
            Gae(discount=0.9, lam=0.8),
            judged(episode([2, 2], [0.0, 1.0]), value=[0.2, 0.4, 0.6, 0.8]),
            [0.56562, 0.56336, 0.588, 0.65],
        ),
        (TurnPpo(discount=0.9, lam=0.8), judged(episode([1, 1], [0.0, 1.0]), value=[0.2, 0.6]), [0.952, 0.85]),
        (Poad(discount=0.9, lam=0.8), CARD, [0.998, 0.898, 1.15, 1.05, 0.95]),
        (replace(ntpo(), discount=0.9, lam=0.8), CARD, [0.435482, 0.493725, 0.58848, 0.734, 0.95]),
        (Poad(discount=0.9, lam=0.8, backup="last"), CARD, [0.565082, 0.673725, 0.58848, 0.734, 0.95]),
    ],
    ids=["gae", "turn_ppo", "poad", "ntpo", "last"],
)
def test_worked_examples(rule: Gae | TurnPpo | Poad, given: Rewarded, expected: list[float]) -> None:
    """Each truncated in a state of value .5."""
    rule = replace(rule, whiten=False)
    plain, boot = rule([given]), replace(rule, bootstrap_truncated=True)([cut_off(given, value=0.5)])
    assert at_actions(given.tree, boot[0].advantage) == pytest.approx(expected, abs=2e-5)
    (ended,) = replace(rule, bootstrap_truncated=True)([given])
    assert ended.advantage.tolist() == plain[0].advantage.tolist(), "what terminated has no value after its end"
    assert needs_of(replace(rule, bootstrap_truncated=True)) - needs_of(rule) == {FINAL_VALUES}


# A process of two states and two actions that ends after a turn with a chance of .3: [state, action] and [.., state].
PAYS = np.asarray([[1.0, -0.5], [0.25, 2.0]])
GOES = np.asarray([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]]])
ACTS = np.asarray([[0.7, 0.3], [0.4, 0.6]])
STOPS, DISCOUNT = 0.3, 0.9


def exact() -> tuple[np.ndarray, np.ndarray]:
    """The values of the states, and the advantages of the actions."""
    pays, goes = (ACTS * PAYS).sum(1), np.einsum("sa,sat->st", ACTS, GOES)
    value = np.linalg.solve(np.eye(2) - DISCOUNT * (1 - STOPS) * goes, pays)
    return value, PAYS + DISCOUNT * (1 - STOPS) * GOES @ value - value[:, None]


def paths(turns: int) -> Iterator[tuple[float, list[tuple[int, int]], int | None]]:
    """Every path of at most so many turns from state 0: its chance, its states and actions, the state it is cut in."""

    def go(
        chance: float, state: int, done: list[tuple[int, int]]
    ) -> Iterator[tuple[float, list[tuple[int, int]], int | None]]:
        if len(done) == turns:
            yield chance, done, state
            return
        for action in range(2):
            likely, taken = chance * ACTS[state, action], [*done, (state, action)]
            yield likely * STOPS, taken, None
            for after in range(2):
                yield from go(likely * (1 - STOPS) * GOES[state, action, after], after, taken)

    return go(1.0, 0, [])


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rule", [Gae, TurnPpo, Poad])
def test_with_a_bootstrap_the_mean_advantage_is_exact_wherever_paths_are_cut(
    rule: Callable[..., Gae | TurnPpo | Poad], lam: float
) -> None:
    """Over all paths of at most two turns, with the exact values as the critic's."""
    value, advantage = exact()
    error = {}
    for bootstrap in (True, False):
        made = rule(discount=DISCOUNT, lam=lam, whiten=False, bootstrap_truncated=bootstrap)
        mass, total = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
        for chance, done, cut_in in paths(2):
            states = [state for state, _ in done]
            given = judged(episode([1] * len(done), [PAYS[each] for each in done]), value=value[states])
            given = given if cut_in is None else cut_off(given, value=value[cut_in])
            (credited,) = made([given])
            for turn, found in enumerate(at_actions(given.tree, credited.advantage)):
                mass[turn, *done[turn]] += chance
                total[turn, *done[turn]] += chance * found
        reached = mass > 0
        error[bootstrap] = np.abs(total / np.where(reached, mass, 1) - advantage)[reached].max()
    assert error[True] < 1e-6
    assert error[False] > 0.2


def test_a_teachers_last_turn_costs_no_discount() -> None:
    tree = episode([1, 3], [0.0, 0.0], sources=[Source.SAMPLED, Source.TEACHER])
    given = cut_off(judged(tree, value=[0.2, 9.0, 9.0, 9.0]), value=0.5)
    (credited,) = TurnPpo(discount=0.9, whiten=False, bootstrap_truncated=True)([given])
    assert at_actions(tree, credited.advantage)[0] == pytest.approx(0.9 * 0.5 - 0.2)


def test_a_truncated_path_without_a_value_is_refused() -> None:
    tree = cut_off(CARD, value=0.5)
    with pytest.raises(ValueError, match=r"task task: got a truncated path and no end value 'value', only \[\]; need"):
        Gae(bootstrap_truncated=True)([replace(tree, end_values={})])
    with pytest.raises(ValueError, match=r"Rewarded.end_values\['value'\]: got shape \(3,\); need \(5,\)"):
        replace(tree, end_values={"value": np.zeros(3)})
    (end,) = leaves(tree.tree).tolist()
    assert keep_paths(tree, np.asarray([end])).end_values["value"][end] == 0.5


def test_the_state_in_which_a_path_was_cut_off() -> None:
    """Everything on the path; nothing where the environment ended it, or the text did not fit."""
    tree = cut_off(judged(episode([2, 1], [0.0, 0.0]), value=[0.0] * 3), value=0.0).tree
    assert {leaf: text.tolist() for leaf, text in truncated_states(tree).items()} == {4: [1, 3, 3, 2, 3, 2]}
    assert truncated_states(CARD.tree) == {}
    assert Outcome.TRUNCATED in tree.outcome
    unread = cut_off(judged(episode([2, 1], [0.0, 0.0], gap=0), value=[0.0] * 3), value=np.nan)
    assert truncated_states(unread.tree) == {}
    (credited,) = Gae(whiten=False, bootstrap_truncated=True)([unread])
    assert not credited.advantage.any()
