"""Losses on preferences: worked examples, defects of released code, and what no preference teaches."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from tests.objective.example import run
from tests.objective.preference_pairs import P, T, lay, pair

from bough.needs import OLD_LOGPROBS, REFERENCE, needs_of
from bough.objective import (
    Dpo,
    Inpo,
    Kl,
    LossInputs,
    Objective,
    Orpo,
    Pairs,
    SelfPlay,
    SimPo,
    StepApo,
    Sum,
    Tpo,
    WDpo,
    mcts_dpo,
    step_dpo,
)

EVERY: Sequence[Objective] = (
    Dpo(),
    Dpo(smoothing=0.1, pairs=Pairs(choice="all")),
    step_dpo(),
    mcts_dpo(),
    WDpo(),
    StepApo(),
    Orpo(),
    SimPo(),
    Tpo(adaptive=False),
    Inpo(),
    SelfPlay(),
    SelfPlay(eta=4.0, unit="turn"),
)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def two_pairs() -> LossInputs:
    return lay(
        [
            *pair([-1.0], [-2.0], winner_reference=[-1.5], loser_reference=[-1.5]),
            *pair([-3.0], [-1.0], task=1, winner_reference=[-2.0], loser_reference=[-2.0]),
        ]
    )


def test_dpo_reproduces_the_worked_example_and_does_not_fuse_pairs() -> None:
    value, grad, loss = run(Dpo(), two_pairs())
    assert value == pytest.approx(0.721268, abs=2e-5)
    # What Trinity-RFT computes, one pair of the sums: leads of 1 and -2 add up to -1.
    assert -log_sigmoid(-0.1) == pytest.approx(0.744397, abs=2e-5)
    # Each pair has its own slope: -beta * sigmoid(-margin) over the number of pairs.
    slopes = [0.1 / (1 + math.exp(0.1)) / 2, 0.1 / (1 + math.exp(-0.2)) / 2]
    assert grad == pytest.approx([-slopes[0], slopes[0], -slopes[1], slopes[1]])
    assert {name: metric.item() for name, metric in loss.metrics.items()} == pytest.approx(
        {"pairs": 2.0, "pair_accuracy": 0.5, "pair_margin": -0.05}
    )


def test_smoothing_takes_a_share_of_preferences_for_wrong() -> None:
    value, _, _ = run(Dpo(smoothing=0.2), two_pairs())
    wanted = [-0.8 * log_sigmoid(z) - 0.2 * log_sigmoid(-z) for z in (0.1, -0.2)]
    assert value == pytest.approx(sum(wanted) / 2)


def test_dpo_sums_over_tokens_and_simpo_and_orpo_take_means() -> None:
    given = lay(pair([-0.2, -0.4, -0.9], [-1.5, -0.5], winner_reference=[-0.5] * 3, loser_reference=[-1.0] * 2))
    assert run(Dpo(), given)[0] == pytest.approx(-log_sigmoid(0.1 * ((-1.5 + 1.5) - (-2.0 + 2.0))))
    assert run(SimPo(), given)[0] == pytest.approx(-log_sigmoid(2.5 * (-0.5 + 1.0) - 0.5))
    assert run(Orpo(beta=0.0), given)[0] == pytest.approx(0.5)


def test_orpo_reproduces_the_worked_example() -> None:
    given = lay([*pair([-0.3, -0.7], [-1.0]), *pair([-1.0], [-0.2, -0.6], task=1)])
    value, _, loss = run(Orpo(), given)
    assert value == pytest.approx((0.5 + 0.03203 + 1.0 + 0.150267) / 2, abs=2e-5)
    assert loss.metrics["pair_margin"].item() == pytest.approx(-0.13844, abs=2e-5)
    assert loss.metrics["winner_nll"].item() == pytest.approx(0.75)


def test_orpo_over_the_tokens_of_all_winners() -> None:
    """Winners of two tokens, mean -.5, and one, -1: 2 / 3 by tokens; each token pulls alike."""
    given = lay([*pair([-0.3, -0.7], [-1.0]), *pair([-1.0], [-0.2, -0.6], task=1)])
    value, slope, loss = run(Orpo(nll="tokens"), given)
    assert value == pytest.approx(2 / 3 + (0.03203 + 0.150267) / 2, abs=2e-5)
    assert loss.metrics["winner_nll"].item() == pytest.approx(2 / 3)
    assert run(Orpo(nll="tokens", beta=0.0), given)[1] == pytest.approx([-1 / 3, -1 / 3, 0, -1 / 3, 0, 0])
    assert len(slope) == 6
    alone = lay([*pair([-0.3], [-0.3])])
    assert run(Orpo(nll="tokens"), alone)[0] == run(Orpo(), alone)[0]


@pytest.mark.parametrize("sure", [(0.0, -1.0), (-1.0, 0.0), (0.0, 0.0)])
def test_odds_of_what_is_certain_are_finite(sure: tuple[float, float]) -> None:
    value, grad, _ = run(Orpo(), lay(pair([sure[0]], [sure[1]])))
    assert math.isfinite(value)
    assert all(math.isfinite(slope) for slope in grad)


@pytest.mark.parametrize(("q", "loss", "slope"), [((0.6, -0.4), 1.3133, -0.2193), ((0.1, -0.1), 0.7981, -0.165)])
def test_step_apo_reproduces_the_worked_example(q: tuple[float, float], loss: float, slope: float) -> None:
    better, worse = (P(turns=[T(logprob=[-1.0])], advantage=each) for each in q)
    value, grad, _ = run(StepApo(), lay([worse, better]))
    assert value == pytest.approx(loss, abs=1e-4)
    assert grad == pytest.approx([-slope, slope], abs=1e-4)


def test_step_apo_pairs_what_gains_with_what_loses_and_without_alpha_is_dpo() -> None:
    given = lay([P(turns=[T(logprob=[-1.0 - i])], advantage=a) for i, a in enumerate((0.5, 0.2, -0.1, -0.9))])
    assert run(StepApo(), given)[2].metrics["pairs"].item() == 4.0
    same = Dpo(beta=0.3, pairs=Pairs(unit="turn", choice="opposite"))
    assert run(StepApo(alpha=0.0), given)[:2] == run(same, given)[:2]


def test_wdpo_weighs_pairs_by_their_gap() -> None:
    far = lay(
        [
            P(turns=[T(logprob=[-1.0], reference=[-2.0])], advantage=2.0),
            P(turns=[T(logprob=[-1.0])], advantage=1.0),
            P(turns=[T(logprob=[-1.0], reference=[-0.5])], advantage=0.0),
        ]
    )
    leads = {(2, 1): 1.0, (2, 0): 1.5, (1, 0): 0.5}
    wanted = -sum((a - b) * log_sigmoid(0.1 * margin) for (a, b), margin in leads.items()) / 4
    assert run(WDpo(), far)[0] == pytest.approx(wanted)
    even = lay([*pair([-1.0], [-2.0]), *pair([-3.0], [-1.0], task=1)])
    assert run(WDpo(), even)[:2] == run(Dpo(), even)[:2]


def ranked(advantage: Sequence[float], moved: Sequence[float]) -> LossInputs:
    return lay(
        [P(turns=[T(logprob=[-1.0], reference=[-1.0 - m])], advantage=a) for a, m in zip(advantage, moved, strict=True)]
    )


def test_tpo_reproduces_the_worked_example_in_the_right_direction() -> None:
    value, grad, _ = run(Tpo(beta=1.0, adaptive=False), ranked([1.0, 0.0, -1.0], [0.5, 0.2, -0.1]))
    discount = [1 / math.log(1 + rank) for rank in (1, 2, 3)]
    weights = [
        (1.0, discount[0] - discount[1], 0.3),
        (1.5, discount[0] - discount[2], 0.6),
        (0.5, discount[1] - discount[2], 0.3),
    ]
    assert value == pytest.approx(-sum(positive * far * log_sigmoid(margin) for positive, far, margin in weights))
    assert grad == pytest.approx([-0.6100, 0.1864, 0.4236], abs=1e-4)
    # The released loss, - log sigmoid(beta * L) with L a loss already, moves the best down and the worst up.
    score = torch.tensor([0.5, 0.2, -0.1], dtype=torch.float64, requires_grad=True)
    label = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
    signed = (score[:, None] - score) * (label[:, None] - label).sign()
    rank_loss = -torch.nn.functional.logsigmoid(signed).sum() / 6
    released = torch.autograd.grad(-torch.nn.functional.logsigmoid(0.1 * rank_loss), score)[0]
    assert (-released).tolist() == pytest.approx([-0.0124, 0.0, 0.0124], abs=1e-4)
    assert all(ours * theirs < 0 for ours, theirs in zip(grad[::2], released.tolist()[::2], strict=True))


def test_tpo_without_weights_is_dpo_summed_over_each_list() -> None:
    given = ranked([1.0, 0.0, -1.0], [0.5, 0.2, -0.1])
    assert run(Tpo(weights=False, adaptive=False), given)[0] == pytest.approx(
        3 * run(Dpo(pairs=Pairs(choice="all")), given)[0]
    )


def test_tpo_weighs_each_list_alike_and_not_by_the_order_of_paths() -> None:
    one, other = ranked([1.0, 0.0, -1.0], [0.5, 0.2, -0.1]), ranked([-1.0, 1.0, 0.0], [-0.1, 0.5, 0.2])
    tpo = Tpo(adaptive=False)
    assert run(tpo, one)[0] == pytest.approx(run(tpo, other)[0])
    paths = [
        P(turns=[T(logprob=[-1.0], reference=[-1.0 - m])], advantage=a, task=task)
        for task in (3, 7)
        for a, m in ((1.0, 0.5), (0.0, 0.2), (-1.0, -0.1))
    ]
    assert run(tpo, lay(paths))[0] == pytest.approx(run(tpo, one)[0])


def test_inpo_asks_for_the_stated_distance_from_the_mixture() -> None:
    given = lay(
        pair(
            [-1.0, -0.5],
            [-2.0],
            winner_reference=[-1.2, -0.8],
            loser_reference=[-1.1],
            winner_old=[-1.1, -0.6],
            loser_old=[-1.7],
        )
    )
    h = (-1.5 + 2.0) - 0.3 * (-2.0 + 1.1) - 0.7 * (-1.7 + 1.7)
    value, grad, loss = run(Inpo(eta=0.1, tau=0.03), given)
    assert value == pytest.approx((h - 5) ** 2)
    assert grad == pytest.approx([2 * (h - 5), 2 * (h - 5), -2 * (h - 5)])
    assert loss.metrics["pair_margin"].item() == pytest.approx(h)
    assert run(Inpo(), lay(pair([-1.0], [-2.0])))[0] == pytest.approx(25.0)


def test_selfplay_reproduces_the_worked_example() -> None:
    given = lay([P(turns=[T(logprob=[-1.0, -1.0])], advantage=a) for a in (1.0, 0.0, 0.0, -1.0)])
    value, grad, loss = run(SelfPlay(eta=8.0), given)
    assert value == pytest.approx((9 + 0 + 0 + 9) / 8 / 4)
    assert grad == pytest.approx([-0.1875, -0.1875, 0, 0, 0, 0, 0.1875, 0.1875])
    assert run(SelfPlay(), given)[1] == pytest.approx(grad)
    assert loss.metrics["units"].item() == 4.0
    there = lay([P(turns=[T(logprob=[-1.0], old=[-1.0 - m])], advantage=m) for m in (3.0, 0.0, 0.0, -3.0)])
    assert run(SelfPlay(eta=8.0), there)[0] == pytest.approx(0.0)
    assert run(SelfPlay(eta=8.0), there)[2].metrics["selfplay_move"].item() == pytest.approx(1.5)


NOTHING = {
    "no paths": [],
    "one path": [P(turns=[T(logprob=[-1.0])], advantage=1.0)],
    "all tie": [P(turns=[T(logprob=[-1.0 - i])], advantage=0.7) for i in range(4)],
    "one a task": [P(turns=[T(logprob=[-1.0 - i])], advantage=float(i), task=i) for i in range(4)],
    # Lengths of which the means of equal numbers may differ in the last bit.
    "tie at other lengths": [P(turns=[T(logprob=[-1.0] * n)] * n, advantage=0.1) for n in (1, 3, 7, 11)],
}


@pytest.mark.parametrize("objective", EVERY, ids=repr)
@pytest.mark.parametrize("paths", NOTHING.values(), ids=NOTHING)
def test_without_a_preference_the_loss_is_exactly_zero(objective: Objective, paths: list[P]) -> None:
    given = lay(paths)
    value, grad, loss = run(objective, given)
    assert value == 0.0
    assert grad == [0.0] * len(given.logprob)
    assert all(metric.item() == 0.0 for metric in loss.metrics.values())
    given.logprob.grad = None
    objective(given).value.backward()
    assert given.logprob.grad is not None


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_gradients_are_those_of_the_values(objective: Objective) -> None:
    torch.manual_seed(0)
    paths = [
        P(
            turns=[
                T(
                    logprob=(-torch.rand(n) - 0.1).tolist(),
                    reference=(-torch.rand(n) - 0.1).tolist(),
                    old=(-torch.rand(n) - 0.1).tolist(),
                )
                for n in (2, 1)
            ],
            advantage=a,
            task=task,
        )
        for task, group in enumerate(((1.0, 0.0, -1.0, 0.3), (0.5, -0.5)))
        for a in group
    ]
    given = lay(paths)
    assert torch.autograd.gradcheck(lambda x: objective(replace(given, logprob=x)).value, given.logprob)
    assert any(run(objective, given)[1])


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_descent_prefers_the_winner(objective: Objective) -> None:
    _, grad, _ = run(objective, lay(pair([-1.0], [-1.2], winner_reference=[-1.0], loser_reference=[-1.2])))
    assert grad[0] < 0 < grad[1]


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_what_is_missing_is_named(objective: Objective) -> None:
    given = two_pairs()
    with pytest.raises(ValueError, match="need the path view"):
        objective(replace(given, path_ids=None))
    columns = {REFERENCE: "reference", OLD_LOGPROBS: "old"}
    for name in (columns[need] for need in columns.keys() & needs_of(objective)):
        with pytest.raises(ValueError, match=f"`{name}`"):
            objective(replace(given, **{name: None}))


def test_a_preference_beside_a_divergence() -> None:
    both = Sum(terms=(Dpo(), Kl(coefficient=0.1)))
    value, _, loss = run(both, two_pairs())
    assert value == pytest.approx(run(Dpo(), two_pairs())[0] + run(Kl(coefficient=0.1), two_pairs())[0])
    assert loss.metrics.keys() == {"pairs", "pair_accuracy", "pair_margin", "kl_reference"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dpo(beta=0.0), r"Dpo.beta: got 0.0; need a number above 0"),
        (lambda: Dpo(smoothing=0.5), r"Dpo.smoothing: got 0.5; need a number from 0 to below 0.5"),
        (lambda: WDpo(beta=-1.0), r"WDpo.beta: got -1.0; need a number above 0"),
        (lambda: StepApo(beta=0.0), r"StepApo.beta: got 0.0; need a number above 0"),
        (lambda: StepApo(alpha=-1.0), r"StepApo.alpha: got -1.0; need at least 0"),
        (lambda: Orpo(beta=-0.1), r"Orpo.beta: got -0.1; need at least 0"),
        (lambda: SimPo(beta=0.0), r"SimPo.beta: got 0.0; need a number above 0"),
        (lambda: SimPo(gamma=-1.0), r"SimPo.gamma: got -1.0; need at least 0"),
        (lambda: Tpo(beta=math.nan), r"Tpo.beta: got nan; need a number above 0"),
        (lambda: Inpo(eta=0.0), r"Inpo.eta: got 0.0; need a number above 0"),
        (lambda: Inpo(tau=0.2), r"Inpo.tau: got 0.2; need at most eta=0.1"),
        (lambda: SelfPlay(eta=math.inf), r"SelfPlay.eta: got inf; need a finite number"),
        (lambda: SelfPlay(gap=-1.0), r"SelfPlay.gap: got -1.0; need at least 0"),
        (lambda: Pairs(gap=-1.0), r"Pairs.gap: got -1.0; need 0 or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
