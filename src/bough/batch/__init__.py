"""Batches: trees as rows of tokens, read by a model at the cost of each token once."""

from bough.batch.attention import Attend
from bough.batch.batch import Batch, MiniBatch
from bough.batch.forest import Forest, plant
from bough.batch.logprob import chosen_logprobs, logits_at_once
from bough.batch.pack import pack, pack_demonstrations
from bough.batch.reading import FEW, Page, Reading, spared
from bough.batch.stretch import Stretch

__all__ = [
    "FEW",
    "Attend",
    "Batch",
    "Forest",
    "Page",
    "MiniBatch",
    "Reading",
    "Stretch",
    "chosen_logprobs",
    "logits_at_once",
    "pack",
    "pack_demonstrations",
    "plant",
    "spared",
]
