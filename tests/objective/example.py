"""The worked example of all policy losses: two paths of three and two tokens, one that gains and one that loses."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bough.objective import Loss, LossInputs, Normalizer, Objective
from bough.objective.inputs import PathIds

OLD = 0.5
NEW = ((0.7, 0.55, 0.3), (0.9, 0.4))
ADVANTAGE = (1.0, -1.0)


def path_ids(lengths: Sequence[int], turns: Sequence[Sequence[int]] | None = None) -> PathIds:
    """Paths of one task, with tokens in turns as given, else of one turn each."""
    turns = [[length] for length in lengths] if turns is None else turns
    each = torch.tensor([length for path in turns for length in path])
    path_of_turn = torch.arange(len(turns)).repeat_interleave(torch.tensor([len(path) for path in turns]))
    turn = torch.arange(len(each)).repeat_interleave(each)
    assert [sum(path) for path in turns] == list(lengths)
    return PathIds(
        path=path_of_turn[turn],
        turn=turn,
        task=torch.zeros(len(lengths), dtype=torch.int64),
        context_id=torch.arange(len(each)),
        path_of_turn=path_of_turn,
    )


def example(
    new: Sequence[Sequence[float]] = NEW,
    *,
    old: float = OLD,
    advantage: Sequence[float] = ADVANTAGE,
    by: Normalizer | None = None,
    turns: Sequence[Sequence[int]] | None = None,
    **more: object,
) -> LossInputs:
    """Paths of the given probabilities, each with one advantage; every token had the probability `old`."""
    lengths = [len(path) for path in new]
    paths = path_ids(lengths, turns)
    logprob = torch.tensor([p for path in new for p in path], dtype=torch.float64).log().requires_grad_()
    credit = torch.tensor(advantage, dtype=torch.float64)[paths.path]
    ones = torch.ones(len(logprob), dtype=torch.int64)
    inverse = 1.0 / torch.tensor(lengths, dtype=torch.float64)[paths.path]
    given = LossInputs(
        logprob=logprob,
        rollout_logprob=torch.full_like(logprob, math.log(old)).detach(),
        positive=credit.clamp(min=0),
        negative=credit.clamp(max=0),
        loss_weight=(Normalizer() if by is None else by)(ones, inverse, ones > 0).double(),
        path_ids=paths,
    )
    return replace(given, **more)  # type: ignore[arg-type]


def shown(*which: bool) -> LossInputs:
    """The example with some of its paths written by a demonstration, with a gain of 1 and a mean of their own."""
    given = example()
    assert given.path_ids is not None
    expert = torch.tensor(which)[given.path_ids.path]
    return example(
        expert=expert,
        loss_weight=torch.where(expert, 1 / expert.sum().clamp(min=1), 1 / (~expert).sum().clamp(min=1)).double(),
        positive=given.positive.where(~expert, 1.0),
        negative=given.negative.where(~expert, 0.0),
        rollout_logprob=given.rollout_logprob.where(~expert, 0.0),
    )


def run(objective: Objective, given: LossInputs, of: Tensor | None = None) -> tuple[float, list[float], Loss]:
    """Value, gradient of the log-probabilities (or of another column), and the loss itself."""
    loss = objective(given)
    (slope,) = torch.autograd.grad(loss.value, given.logprob if of is None else of, materialize_grads=True)
    assert not any(metric.requires_grad for metric in loss.metrics.values())
    return loss.value.item(), slope.tolist(), loss
