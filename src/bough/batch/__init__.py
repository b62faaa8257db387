"""Batches: trees as rows of tokens that a model can learn from, without padding."""

from bough.batch.attention import segments
from bough.batch.batch import Batch, Part
from bough.batch.logprob import chosen_logprobs
from bough.batch.pack import pack, pack_demonstrations

__all__ = ["Batch", "Part", "chosen_logprobs", "pack", "pack_demonstrations", "segments"]
