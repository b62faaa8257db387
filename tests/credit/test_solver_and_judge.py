"""StepORLM: pairs by the solver, then by the judge, and their weights in a loss without a reference."""

import math

import numpy as np
import pytest
from tests.objective.preference_pairs import P, T, lay
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.cli.find import find_run
from bough.credit import SolverAndJudge
from bough.needs import REFERENCE
from bough.objective import WDpo
from bough.tree import Outcome, Rewarded, StageError


def path_of(right: bool, steps: tuple[float, ...]) -> Rewarded:
    """A path with the solver's verdict and the judge's verdicts on its steps."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,))]
    for number in range(len(steps)):
        last = number + 1 == len(steps)
        nodes.append(N(parent=2 * number, kind=ACTION, tokens=(2,)))
        outcome = Outcome.TERMINATED if last else Outcome.OPEN
        nodes.append(N(parent=2 * number + 1, kind=OBSERVATION, tokens=(3,), outcome=outcome, success=right and last))
    tree = build(*nodes)
    paid = np.zeros(tree.nodes)
    paid[1::2] = steps
    return Rewarded(tree=tree, channels={"steps": paid, "env": np.full(tree.nodes, float(right))})


TENTH = (1.0, *[0.0] * 9)


@pytest.mark.parametrize(
    ("one", "two", "gap"),
    [
        (path_of(True, (1, 0)), path_of(False, (1,) * 9 + (0,)), 1.0),
        (path_of(True, (0, 0)), path_of(False, (1, 1)), 1.0),
        (path_of(True, (1, 1)), path_of(True, (1, 1, 1, 0, 0)), 0.4),
        (path_of(False, (1, 0, 0, 0, 0)), path_of(False, TENTH + TENTH[:0] + (1.0,) + (0.0,) * 9), 0.1),
        (path_of(False, (1, 0, 0, 0, 0)), path_of(False, (1, 1) + (0,) * 8), 0.0),
    ],
)
def test_the_weights_of_the_card(one: Rewarded, two: Rewarded, gap: float) -> None:
    first, second = (float(each.path_advantage[0]) for each in SolverAndJudge()([one, two]))
    assert min(first - second, 1.0) == pytest.approx(gap)


def test_a_missing_channel_is_refused() -> None:
    with pytest.raises(StageError, match=r"SolverAndJudge.steps: got 'other' .* Judged\(column=steps\)"):
        SolverAndJudge(steps="other")([path_of(True, (1,))])


@pytest.mark.parametrize(("gap", "value"), [(2.5, 0.598139), (0.4, 0.239256)])
def test_the_loss_of_the_card_has_no_reference(gap: float, value: float) -> None:
    paths = [P(turns=[T(logprob=[-1.0])], advantage=gap), P(turns=[T(logprob=[-3.0])], advantage=0.0)]
    loss = WDpo(max_weight=1.0, reference=False)
    assert REFERENCE not in loss.needs
    assert float(loss(lay(paths)).value.detach()) == pytest.approx(value, abs=2e-6)
    weight = min(gap, 1.0)
    assert value == pytest.approx(weight * math.log1p(math.exp(-0.2)), abs=2e-6)


def test_no_pair_has_no_loss_and_wrong_weights_are_refused() -> None:
    even = [P(turns=[T(logprob=[-1.0])], advantage=1.0), P(turns=[T(logprob=[-3.0])], advantage=1.0)]
    assert float(WDpo(max_weight=1.0, reference=False)(lay(even)).value) == 0
    with pytest.raises(ValueError, match=r"WDpo.max_weight: got 0; need a number above 0"):
        WDpo(max_weight=0)


def test_step_orlm_trains_on_these_pairs() -> None:
    run = find_run("step_orlm(judge=judge)", "frozenlake")
    assert isinstance(run.method.credit, SolverAndJudge)
    assert run.method.objective == WDpo(beta=0.1, max_weight=1.0, reference=False)
    flawed, sound = path_of(True, (1, 0, 1)), path_of(True, (1, 1, 1))
    lower, higher = run.method.credit([flawed, sound])
    assert higher.path_advantage[0] > 0 > lower.path_advantage[0], "right answers differ by their steps"
