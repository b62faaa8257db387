"""Trains and calibrates a reward model on trees."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bough.critics.reward_model.calibration import calibrate, platt
from bough.critics.reward_model.fit import check_labels, fit
from bough.critics.reward_model.folder import Decode, TrainedRewardModel, fingerprint
from bough.critics.reward_model.labels import LabelledSteps, split_tasks, steps_of
from bough.critics.reward_model.settings import RewardModel
from bough.tree import Floats, Tree, sigmoid


def train_on(
    trees: Sequence[Tree],
    settings: RewardModel,
    *,
    decode: Decode | None = None,
    vocab_tokens: int = 0,
    device: str = "cpu",
) -> TrainedRewardModel:
    """A reward model with its calibration report: trained on most tasks, measured on the others.

    Args:
        trees: The trees, each of one seat.
        settings: The settings.
        decode: The text of tokens under the policy's tokenizer; None leaves the tokenizer unchecked.
        vocab_tokens: Size of the vocabulary; at least the largest token of the trees is taken.
        device: The device of the weights.

    Raises:
        NothingToLearn: when the trees have no labels to learn from, or there is one task.
        OSError: when the folder of `settings.path` is missing or incomplete.
    """
    steps = steps_of(trees, settings)
    out = split_tasks(steps, settings.held_out, settings.seed)
    learned, held = steps.of_tasks(~out), steps.of_tasks(out)
    check_labels(learned, settings)
    vocab = max(vocab_tokens, max(int(text.max()) for text in steps.text if len(text)) + 1)
    network = fit(learned, settings, vocab_tokens=vocab, device=device)
    scale, shift = _unit(learned, network.scores(learned.text)) if settings.ranks else (1.0, 0.0)
    model = TrainedRewardModel(
        settings=settings,
        network=network,
        tokenizer="" if decode is None else fingerprint(decode, network.vocab_tokens),
        scale=scale,
        shift=shift,
    )
    return replace(model, report=calibrate(held, sigmoid(scale * network.scores(held.text) + shift)))


def _unit(steps: LabelledSteps, score: Floats) -> tuple[float, float]:
    """Scale and shift of a ranker's probability, from the labels of its training steps."""
    known = ~np.isnan(steps.label)
    return platt(score[known], np.clip(steps.label[known], 0.0, 1.0))
