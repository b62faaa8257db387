"""The adaptive step reward of TPO: steps that say the same on both sides of a pair weigh little."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from tests.invariants.test_every_objective import policies
from tests.objective.example import example, run
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.batch import pack
from bough.learner import Learner, Optimizer
from bough.learner.loss_inputs import ObjectiveContext
from bough.needs import HIDDEN_STATES, PATHS, REFERENCE, needs_of
from bough.objective import Loss, LossInputs, Normalizer, Tpo
from bough.tree import Outcome, spread_paths

PLAIN = Tpo(beta=1.0, weights=False)


def pair(
    moved: Sequence[Sequence[float]], hidden: Sequence[Sequence[float]], turns: Sequence[Sequence[int]]
) -> LossInputs:
    """A better and a worse path, by the log ratio and the hidden state of each token."""
    given = example([[math.exp(-1.0)] * len(path) for path in moved], turns=turns)
    flat = torch.tensor([each for path in moved for each in path], dtype=torch.float64)
    state = torch.tensor(hidden, dtype=torch.float64)
    return replace(given, reference=given.logprob.detach() - flat, hidden=state)


def margin(loss: Loss) -> float:
    return loss.metrics["pair_margin"].item()


def test_worked_example() -> None:
    """At a right angle a step weighs 1, and so does one without a peer."""
    given = pair([[1.0, 2.0], [4.0]], [[1, 0], [1, 1], [0, 1]], [[1, 1], [1]])
    value, slope, loss = run(PLAIN, given)
    assert margin(loss) == pytest.approx(-1.0, abs=2e-5)
    assert value == pytest.approx(math.log1p(math.exp(1.0)), abs=2e-5)
    pull = 1 / (1 + math.exp(-1.0))
    assert slope == pytest.approx([-pull, -pull, pull], abs=2e-5)


@pytest.mark.parametrize(("angle", "weight"), [(0.0, 0.0), (60.0, 0.5), (90.0, 1.0), (120.0, 1.5), (180.0, 2.0)])
def test_the_weight_is_one_less_the_cosine(angle: float, weight: float) -> None:
    """The first step of both sides is at an angle, the second at a right angle; lengths do not matter."""
    turned = [3 * math.cos(math.radians(angle)), 3 * math.sin(math.radians(angle))]
    given = pair([[1.0, 0.5], [0.25, 0.0]], [[1, 0], [1, 0], turned, [0, 2]], [[1, 1], [1, 1]])
    assert margin(run(PLAIN, given)[2]) == pytest.approx(weight * 0.75 + 0.5, abs=2e-5)
    assert margin(run(replace(PLAIN, adaptive=False), given)[2]) == pytest.approx(1.25, abs=2e-5)


def test_steps_are_means_over_their_tokens() -> None:
    """Two tokens whose mean is at a right angle to the other side's."""
    given = pair([[1.0, 1.0], [0.5]], [[1, 1], [-1, 1], [1, 0]], [[2], [1]])
    assert margin(run(PLAIN, given)[2]) == pytest.approx(1.5, abs=2e-5)


def test_the_same_step_teaches_nothing() -> None:
    given = pair([[1.0, 0.5], [0.25, 0.0]], [[1, 0], [1, 0], [1, 0], [0, 1]], [[1, 1], [1, 1]])
    slope = run(PLAIN, given)[1]
    assert slope[0] == slope[2] == 0
    assert slope[1] < 0 < slope[3]


def test_a_learner_gives_the_hidden_states_before_each_token() -> None:
    end = Outcome.TERMINATED
    nodes = [
        N(parent=-1, kind=PROMPT, tokens=(1, 2)),
        *(N(parent=0, kind=ACTION, tokens=tokens, outcome=end) for tokens in ((4, 5), (6,))),
        N(parent=0, kind=OBSERVATION, tokens=(3,), outcome=Outcome.FAILED),
    ]
    one = rewarded(build(*nodes))
    batch = pack([spread_paths(one, torch.tensor([1.0, -1.0]).numpy())], paths=True)
    policy, reference = policies("float64")
    seen: list[LossInputs] = []

    class Spied:
        needs = needs_of(Tpo())

        def __call__(self, columns: LossInputs) -> Loss:
            seen.append(columns)
            return Tpo()(columns)

    learner = Learner(policy, Optimizer(micro_tokens=3), total_updates=1, temperature=1.0)
    context = ObjectiveContext(reference=reference.replica())
    learner.backward(batch, Spied(), Normalizer(), context=context)
    (columns,) = seen
    assert columns.hidden is not None
    assert columns.hidden.shape == (3, 16)
    assert not columns.hidden.requires_grad
    weight, bias = policy.replica().head()
    logits = columns.hidden @ weight.T + (0.0 if bias is None else bias)
    own = logits.log_softmax(-1)[torch.arange(3), torch.tensor([4, 5, 6])]
    torch.testing.assert_close(own, columns.logprob.detach(), rtol=1e-6, atol=1e-6)


def test_what_it_needs() -> None:
    assert needs_of(Tpo()) == {PATHS, REFERENCE, HIDDEN_STATES}
    assert needs_of(Tpo(adaptive=False)) == {PATHS, REFERENCE}
    with pytest.raises(ValueError, match="Tpo: got columns without `hidden`; need hidden states"):
        Tpo()(replace(example(), reference=example().logprob.detach()))
