import math

import pytest
import torch
from tests.forks import script
from torch import Tensor

from bough.needs import ENTROPY, REFERENCE, needs_of
from bough.objective import Entropy, Imitation, Kl, Loss, LossInputs, Normalizer, Objective, PpoClip, Sum

OLD = math.log(0.5)
NEW = [0.7, 0.55, 0.3, 0.9, 0.4]
ADVANTAGE = [1.0, 1.0, 1.0, -1.0, -1.0]
PATHS = torch.tensor([1, 1, 1, 1, 1])
INVERSE = torch.tensor([1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2], dtype=torch.float64)
EVEN = torch.ones(5, dtype=torch.bool)


def columns(
    logprob: list[float], advantage: list[float], loss_weight: Tensor | None = None, **more: Tensor
) -> LossInputs:
    count, credit = len(logprob), torch.tensor(advantage, dtype=torch.float64)
    return LossInputs(
        logprob=torch.tensor(logprob, dtype=torch.float64, requires_grad=True),
        entropy=more.get("entropy"),
        rollout_logprob=more.get("behaviour", torch.full((count,), OLD, dtype=torch.float64)),
        reference=more.get("reference"),
        positive=credit.clamp(min=0),
        negative=credit.clamp(max=0),
        loss_weight=torch.full((count,), 1 / count, dtype=torch.float64) if loss_weight is None else loss_weight,
    )


def fixture(normalizer: Normalizer) -> LossInputs:
    """Two paths of three and two trained tokens, one that gains and one that loses."""
    return columns([math.log(p) for p in NEW], ADVANTAGE, normalizer(PATHS, INVERSE, EVEN))


def value_and_grad(objective: Objective, given: LossInputs) -> tuple[float, list[float], Loss]:
    loss = objective(given)
    (grad,) = torch.autograd.grad(loss.value, given.logprob)
    return loss.value.item(), grad.tolist(), loss


@pytest.mark.parametrize(
    ("normalizer", "loss", "grad"),
    [
        (Normalizer(by="path_tokens"), -0.076, [0, -0.22, -0.12, 0.36, 0.16]),
        (Normalizer(by="unique_tokens"), -0.076, [0, -0.22, -0.12, 0.36, 0.16]),
        (Normalizer(by="paths"), 0.153333, [0, -0.183333, -0.1, 0.45, 0.2]),
        (Normalizer(by="constant", horizon_tokens=1), -0.19, [0, -0.55, -0.3, 0.9, 0.4]),
        (Normalizer(by="constant", horizon_tokens=3), -0.063333, [0, -0.183333, -0.1, 0.3, 0.133333]),
    ],
)
def test_worked_example_of_clipping_and_normalisers(normalizer: Normalizer, loss: float, grad: list[float]) -> None:
    value, slope, _ = value_and_grad(PpoClip(high=0.28, dual=3.0), fixture(normalizer))
    assert value == pytest.approx(loss, abs=2e-5)
    assert slope == pytest.approx(grad, abs=2e-5)


def test_metrics_of_the_worked_example() -> None:
    metrics = PpoClip(dual=1.5)(fixture(Normalizer())).metrics
    assert {name: metric.item() for name, metric in metrics.items()} == pytest.approx(
        {
            "ratio": (1.4 + 1.1 + 0.6 + 1.8 + 0.8) / 5,
            "clip_high": 0.2,
            "clip_low": 0.0,
            "clip_dual": 0.2,
            "kl_behaviour": sum(2 * p - 1 - math.log(2 * p) for p in NEW) / 5,
        },
        abs=1e-6,
    )
    assert not any(metric.requires_grad for metric in metrics.values())


def test_dual_clip_bounds_what_a_losing_token_costs() -> None:
    steep = columns([OLD + math.log(5.0)], [-1.0])
    assert value_and_grad(PpoClip(dual=3.0), steep)[:2] == (pytest.approx(3.0), [0.0])
    assert value_and_grad(PpoClip(), steep)[0] == pytest.approx(5.0)


def test_a_ratio_too_large_for_a_float_is_clipped_without_nan() -> None:
    far = columns([0.0], [1.0], rollout_logprob=torch.tensor([-1000.0], dtype=torch.float64))
    assert value_and_grad(PpoClip(), far)[:2] == (pytest.approx(-1.2), [0.0])


@pytest.mark.parametrize("dual", [None, 1.5, 3.0])
def test_clipping_is_the_textbook_formula(dual: float | None) -> None:
    ratio = torch.linspace(0.2, 4.0, 77, dtype=torch.float64)
    for advantage in (-2.0, 0.5):
        given = columns((ratio.log() + OLD).tolist(), [advantage] * len(ratio))
        plain = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(1 - 0.1, 1 + 0.3))
        if dual is not None and advantage < 0:
            plain = torch.minimum(plain, torch.tensor(-advantage * dual, dtype=torch.float64))
        assert PpoClip(low=0.1, high=0.3, dual=dual)(given).value.item() == pytest.approx(plain.mean().item())


def test_gain_and_lose_at_one_token_are_clipped_apart() -> None:
    # At ratio 1.5 what gains is clipped and what loses is not: only the loss keeps its slope.
    both = columns([OLD + math.log(1.5)], [0.0])
    both = LossInputs(
        logprob=both.logprob,
        entropy=None,
        rollout_logprob=both.rollout_logprob,
        reference=None,
        positive=torch.tensor([2.0], dtype=torch.float64),
        negative=torch.tensor([-1.0], dtype=torch.float64),
        loss_weight=both.loss_weight,
    )
    value, grad, _ = value_and_grad(PpoClip(), both)
    assert value == pytest.approx(-(2.0 * 1.2 - 1.0 * 1.5))
    assert grad == pytest.approx([1.5])


@pytest.mark.parametrize(
    ("estimator", "values", "slopes"),
    [("k1", [0.5, -1.0], [1, 1]), ("k2", [0.125, 0.5], [0.5, -1]), ("k3", [0.106531, 0.718282], [0.393469, -1.718282])],
)
def test_worked_example_of_kl(estimator: str, values: list[float], slopes: list[float]) -> None:
    reference = torch.tensor([-1.5, -1.0], dtype=torch.float64)
    given = columns([-1.0, -2.0], [0.0, 0.0], torch.ones(2, dtype=torch.float64), reference=reference)
    penalty = Kl(coefficient=0.1, estimator=estimator)  # type: ignore[arg-type]
    value, grad, loss = value_and_grad(penalty, given)
    assert value == pytest.approx(0.1 * sum(values), abs=2e-6)
    assert grad == pytest.approx([0.1 * slope for slope in slopes], abs=2e-6)
    assert loss.metrics["kl_reference"].item() == pytest.approx(sum(values), abs=2e-5)


def test_which_estimate_has_the_gradient_of_which_divergence() -> None:
    torch.manual_seed(0)
    scores = torch.randn(5, dtype=torch.float64, requires_grad=True)
    policy, reference = scores.log_softmax(0), torch.randn(5, dtype=torch.float64).log_softmax(0)
    forth = torch.autograd.grad((policy.exp() * (policy - reference)).sum(), scores, retain_graph=True)[0]
    back = torch.autograd.grad((reference.exp() * (reference - policy)).sum(), scores, retain_graph=True)[0]

    def mean_gradient(estimator: str) -> Tensor:
        """In the mean over tokens drawn from the policy: each vocabulary token weighs its probability."""
        given = LossInputs(
            logprob=policy,
            entropy=None,
            rollout_logprob=policy.detach(),
            reference=reference,
            positive=torch.zeros(5, dtype=torch.float64),
            negative=torch.zeros(5, dtype=torch.float64),
            loss_weight=policy.detach().exp(),
        )
        loss = Kl(coefficient=1.0, estimator=estimator)(given)  # type: ignore[arg-type]
        return torch.autograd.grad(loss.value, scores, retain_graph=True)[0]

    assert torch.allclose(mean_gradient("k1"), torch.zeros(5, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(mean_gradient("k2"), forth, atol=1e-12)
    assert torch.allclose(mean_gradient("k3"), back, atol=1e-12)
    assert not torch.allclose(forth, back, atol=1e-2)


def test_entropy_is_a_bonus_and_imitation_a_likelihood() -> None:
    entropy = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    given = columns([-1.0, -2.0], [1.0, -1.0], entropy=entropy)
    bonus = Entropy(coefficient=0.5)(given)
    assert bonus.value.item() == pytest.approx(-1.0)
    assert torch.autograd.grad(bonus.value, entropy)[0].tolist() == [-0.25, -0.25]
    assert bonus.metrics["entropy"].item() == pytest.approx(2.0)
    value, grad, loss = value_and_grad(Imitation(coefficient=2.0), given)
    assert value == pytest.approx(1.0)
    assert grad == [-1.0, 0.0]
    assert loss.metrics["imitation_nll"].item() == pytest.approx(0.5)


def test_a_sum_adds_losses_needs_and_metrics() -> None:
    reference = torch.tensor([-1.5, -1.0], dtype=torch.float64)
    given = columns([-1.0, -2.0], [1.0, -1.0], reference=reference, entropy=torch.ones(2, dtype=torch.float64))
    terms = (PpoClip(), Kl(coefficient=0.1), Entropy(coefficient=0.2))
    total = Sum(terms=terms)
    assert needs_of(total) == {REFERENCE, ENTROPY}
    loss, parts = total(given), [term(given) for term in terms]
    assert loss.value.item() == pytest.approx(sum(part.value.item() for part in parts))
    assert loss.metrics.keys() == set().union(*(part.metrics for part in parts))
    with pytest.raises(ValueError, match=r"two terms that report \['entropy'\]"):
        Sum(terms=(Entropy(), Entropy()))(given)


def test_what_is_missing_is_named() -> None:
    given = columns([-1.0], [1.0])
    with pytest.raises(ValueError, match="Kl: got columns without `reference`"):
        Kl()(given)
    with pytest.raises(ValueError, match="Entropy: got columns without `entropy`"):
        Entropy()(given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PpoClip(low=1.0), r"PpoClip.low: got 1.0; need a number from 0 to below 1"),
        (lambda: PpoClip(high=-0.1), r"PpoClip.high: got -0.1; need 0 or more"),
        (lambda: PpoClip(dual=1.0), r"PpoClip.dual: got 1.0; need a number above 1, or None"),
        (lambda: Kl(coefficient=-1.0), r"Kl.coefficient: got -1.0; need at least 0"),
        (lambda: Entropy(coefficient=math.nan), r"Entropy.coefficient: got nan; need a finite number"),
        (lambda: Imitation(coefficient=-1.0), r"Imitation.coefficient: got -1.0; need at least 0"),
        (lambda: Sum(terms=()), r"Sum.terms: got \(\); need at least one objective"),
        (lambda: Normalizer(by="constant"), r"need horizon_tokens with by='constant', and only there"),
        (lambda: Normalizer(horizon_tokens=5), r"need horizon_tokens with by='constant', and only there"),
        (lambda: Normalizer(by="constant", horizon_tokens=0), r"Normalizer.horizon_tokens: got 0; need at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_shares_of_a_token_that_paths_share() -> None:
    # Two paths of four trained tokens, two of them in common.
    paths, inverse = torch.tensor([2, 2, 1, 1, 1, 1]), torch.tensor([0.5, 0.5, 0.25, 0.25, 0.25, 0.25]).double()
    even = torch.ones(6, dtype=torch.bool)
    assert Normalizer()(paths, inverse, even).tolist() == [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
    assert Normalizer(by="paths")(paths, inverse, even).tolist() == [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
    assert Normalizer(by="unique_tokens")(paths, inverse, even).tolist() == pytest.approx([1 / 6] * 6)
    assert Normalizer(by="constant", horizon_tokens=2)(paths, inverse, even).tolist() == [
        0.5,
        0.5,
        0.25,
        0.25,
        0.25,
        0.25,
    ]
    with pytest.raises(ValueError, match=r"got 1 trained tokens shared by paths of different lengths; need chains"):
        Normalizer(by="paths")(paths, inverse, torch.tensor([False, True, True, True, True, True]))


def test_matrices_are_rows_of_tokens_without_padding() -> None:
    mask = torch.tensor([[True, True, False], [False, True, False]])
    logprob = torch.tensor([[-1.0, -2.0, 9.0], [9.0, -3.0, 9.0]], requires_grad=True)
    advantage = torch.tensor([[2.0, 2.0, 9.0], [9.0, -1.0, 9.0]])
    given = LossInputs.from_matrices(
        logprob=logprob, advantage=advantage, mask=mask, old=logprob.detach() - 1, normalizer=Normalizer(by="paths")
    )
    assert given.logprob.tolist() == given.rollout_logprob.tolist() == [-1, -2, -3]
    assert (given.positive.tolist(), given.negative.tolist()) == ([2, 2, 0], [0, 0, -1])
    assert given.loss_weight.tolist() == [0.25, 0.25, 0.5]
    assert given.old is not None
    assert given.old.tolist() == [-2, -3, -4]
    assert given.path_ids is not None
    assert given.path_ids.path.tolist() == [0, 0, 1]
    # One ratio for a whole row: the mean of the gaps of its tokens.
    whole = PpoClip(high=9.0, ratio="sequence")(
        LossInputs.from_matrices(logprob=logprob, rollout_logprob=logprob.detach() - 1, advantage=advantage, mask=mask)
    )
    assert whole.metrics["ratio"].item() == pytest.approx(math.e)
    with pytest.raises(ValueError, match=r"from_matrices: got no trained token in row 1; need at least one"):
        LossInputs.from_matrices(logprob=logprob, advantage=advantage, mask=mask & torch.tensor([[True], [False]]))


MATRICES = """
import numpy as np
import torch
from bough.objective import LossInputs

matrix, mask = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)
for wrong in (
    {"advantage": matrix[:, 0]},
    {"advantage": matrix[:, :1]},
    {"old": matrix[:, :2]},
    {"mask": mask.float()},
    {"entropy": np.zeros((2, 3))},
    {"logprob": matrix[0]},
    {"task": torch.zeros(2)},
):
    try:
        LossInputs.from_matrices(**{"logprob": matrix, "advantage": matrix, "mask": mask, **wrong})
    except ValueError as error:
        print(error)
"""


def test_matrices_of_another_shape_or_dtype_are_refused() -> None:
    """Without the tests' checks of annotations, as users call it."""
    assert script(MATRICES).wait().fine().replace("LossInputs.from_matrices: ", "").splitlines() == [
        "advantage: got float32 [2]; need a float tensor [2, 3], the shape of logprob",
        "advantage: got float32 [2, 1]; need a float tensor [2, 3], the shape of logprob",
        "old: got float32 [2, 2]; need a float tensor [2, 3], the shape of logprob",
        "mask: got float32 [2, 3]; need a bool tensor [2, 3], the shape of logprob",
        "entropy: got numpy.ndarray; need a float tensor [2, 3], the shape of logprob",
        "logprob: got float32 [3]; need a float tensor [N, T]",
        "task: got float32 [2]; need an int64 tensor [2]",
    ]
