"""Trains a reward model on labelled steps."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bough.critics.reward_model.labels import LabelledSteps, NothingToLearn
from bough.critics.reward_model.network import RewardNetwork, new_network, rows_of
from bough.critics.reward_model.settings import RewardModel
from bough.tree import Ints

functional: Any = nn.functional


def fit(steps: LabelledSteps, settings: RewardModel, *, vocab_tokens: int, device: str) -> RewardNetwork:
    """A network trained on the labels, or on the pairs, of steps. The same arguments give the same network.

    Raises:
        NothingToLearn: when there are no labels to learn from; the message has the remedy.
        OSError: when the folder of `settings.path` is missing or incomplete.
    """
    check_labels(steps, settings)
    network = new_network(settings, vocab_tokens=vocab_tokens, device=device)
    groups: Sequence[Ints] = _pair_groups(steps) if settings.ranks else _row_groups(steps)
    adam = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    generator = np.random.default_rng(settings.seed)
    batches = [each for _ in range(settings.epochs) for each in _batches(len(groups), settings.batch, generator)]
    for number, batch in enumerate(batches):
        for parameters in adam.param_groups:
            parameters["lr"] = settings.learning_rate * (1 - number / len(batches))
        numbers: list[int] = batch.tolist()
        some: Ints = np.concatenate([groups[at] for at in numbers])
        loss = pair_loss(network, steps, some) if settings.ranks else label_loss(network, steps, some)
        adam.zero_grad(set_to_none=True)
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        nn.utils.clip_grad_norm_(network.parameters(), settings.clip_norm)
        adam.step()  # pyright: ignore[reportUnknownMemberType]
    return network.requires_grad_(False)


def check_labels(steps: LabelledSteps, settings: RewardModel) -> None:
    """Check that there is something to learn from.

    Raises:
        NothingToLearn: when there are no pairs, no labels, or equal ones.
    """
    if settings.ranks:
        if not len(steps.better):
            raise NothingToLearn(
                f"RewardModel.labels: got 'pairs' and no siblings whose labels differ by {settings.gap} or more, in "
                f"{len(steps.text)} steps; need trees that fork and reach both outcomes (a search, or several chains a "
                "task), or a smaller gap"
            )
        return
    known = steps.label[~np.isnan(steps.label)]
    if not len(known) or known.min() == known.max():
        raise NothingToLearn(
            f"RewardModel.labels: got {len(known)} labelled steps"
            + (f", all {known[0]:.3g}" if len(known) else "")
            + "; need trees whose paths reach both outcomes"
        )


def label_loss(network: RewardNetwork, steps: LabelledSteps, some: Ints) -> Tensor:
    """The mean binary cross-entropy of the steps `some`."""
    score = network([steps.text[at] for at in some.tolist()])
    label = torch.as_tensor(steps.label[some], dtype=score.dtype, device=score.device)
    return functional.binary_cross_entropy_with_logits(score, label)


def pair_loss(network: RewardNetwork, steps: LabelledSteps, some: Ints) -> Tensor:
    """The mean of -log sigmoid(s+ - s-) over the pairs `some`."""
    sides = np.concatenate([steps.better[some], steps.worse[some]])
    once, place = np.unique(sides, return_inverse=True)
    score = network([steps.text[at] for at in once.tolist()])[torch.as_tensor(place, device=network.head.weight.device)]
    better, worse = score.chunk(2)
    return -functional.logsigmoid(better - worse).mean()


def _row_groups(steps: LabelledSteps) -> Sequence[Ints]:
    """The labelled steps by the row in which they are read together."""
    known = np.flatnonzero(~np.isnan(steps.label))
    row = rows_of([steps.text[at] for at in known.tolist()]).row
    order = np.argsort(row, kind="stable")
    return np.split(known[order], np.flatnonzero(np.diff(row[order])) + 1)


def _pair_groups(steps: LabelledSteps) -> Sequence[Ints]:
    """Each pair alone."""
    return [np.asarray([at]) for at in range(len(steps.better))]


def _batches(count: int, size: int, generator: np.random.Generator) -> Iterator[Ints]:
    order = generator.permutation(count)
    yield from (order[begin : begin + size] for begin in range(0, count, size))
