"""Log-probabilities of the tokens that another model finds most probable."""

import torch
from torch import Tensor

from bough.batch import PackedPrefixTree, chosen_logprobs
from bough.learner.token_outputs import Forward, read

ROWS = 256
"""Positions whose logits are in memory at once."""


@torch.no_grad()
def greedy_logprobs(
    model: Forward, guide: Forward, packed: PackedPrefixTree, *, temperature: float, max_tokens: int
) -> Tensor:
    """[M]: a model's log-probability of the guide's most probable token, at the predicting positions of a packed tree.

    Args:
        model: Computes the log-probabilities, nats.
        guide: Chooses the tokens; ties go to the lowest id.
        packed: The tokens of both forward passes.
        temperature: Divides the model's logits.
        max_tokens: Maximum tokens of one forward pass.
    """
    weight, bias = guide.head()
    chosen: list[Tensor] = []
    places: list[Tensor] = []
    for chunk in read(guide, packed, max_tokens).forward():
        parts = [
            torch.nn.functional.linear(chunk.hidden[at : at + ROWS], weight, bias).argmax(-1)
            for at in range(0, len(chunk.hidden), ROWS)
        ]
        chosen.append(torch.cat(parts) if parts else chunk.trained[:0])
        places.append(chunk.trained)
    if not places:
        return weight.new_zeros(0)
    token = torch.cat(chosen)[torch.cat(places).argsort()]
    weight, bias = model.head()
    found = torch.zeros(len(token), device=weight.device)
    for chunk in read(model, packed, max_tokens).forward():
        logprob, _ = chosen_logprobs(
            chunk.hidden, weight, token[chunk.trained], bias=bias, cap=model.logit_cap, temperature=temperature
        )
        found[chunk.trained] = logprob.to(found.dtype)
    return found
