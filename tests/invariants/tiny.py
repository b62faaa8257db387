"""A tiny transformers model in float64, and the log-probabilities of packed tokens under it."""

from functools import cache

import torch
from torch import Tensor

from bough.batch import Batch, ChunkedForward, chosen_logprobs
from bough.objective import LossInputs, Objective
from bough.policy.model import CausalModel

VOCAB = 13


@cache
def tiny() -> CausalModel:
    """A Llama of two layers with grouped heads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.3,
    )
    return CausalModel(LlamaForCausalLM(config).double())


def read(batch: Batch) -> tuple[Tensor, Tensor]:
    """[M] log-probabilities and entropies of the trained tokens."""
    model = tiny()
    forest = batch.prefix_tree(merge=False)
    (page,) = ChunkedForward(model.hidden, forest, len(forest)).backward()
    weight, bias = model.head()
    logprob, entropy = chosen_logprobs(
        page.hidden,
        weight,
        batch.target[page.trained],
        bias,
        entropy=True,
        allowed=batch.allowed[page.trained],
        sets=batch.allowed_sets,
    )
    assert entropy is not None
    order = page.trained.argsort()
    return logprob[order], entropy[order]


def loss(objective: Objective, batch: Batch, share: Tensor) -> Tensor:
    """The objective on a batch whose tokens weigh `share`; the reference policy is as unsure as can be."""
    logprob, entropy = read(batch)
    columns = LossInputs(
        logprob=logprob,
        entropy=entropy,
        rollout_logprob=batch.rollout_logprob,
        reference=torch.full_like(logprob, -2.5).detach(),
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=share,
    )
    return objective(columns).value


def gradient(value: Tensor) -> Tensor:
    """Of every weight, in one row."""
    return torch.cat([grad.flatten() for grad in torch.autograd.grad(value, list(tiny().model.parameters()))])


def apart(one: Tensor, other: Tensor) -> float:
    """How far one gradient is from another, relative to the other."""
    return float((one - other).norm() / other.norm())
