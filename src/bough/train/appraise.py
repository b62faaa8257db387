"""What models other than the policy think of a batch, before anyone is credited."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from bough.batch import pack
from bough.policy.critic import Critic
from bough.policy.policy import Policy
from bough.train.look import Forward, read, survey
from bough.tree import Credited, Floats, Rewarded


def appraise(
    rewarded: Sequence[Rewarded],
    policy: Policy,
    *,
    critic: Critic | None,
    reference: Forward | None,
    temperature: float,
    micro_tokens: int,
) -> list[Rewarded]:
    """The same trees with estimates: a critic's values by head, the "reference" log-probabilities.

    Args:
        rewarded: The trees.
        policy: Whose hidden states the critic reads.
        critic: None for no values.
        reference: None for no log-probabilities of it.
        temperature: Divides the logits.
        micro_tokens: Most tokens of one forward pass.
    """
    lengths = [len(each.tree.token) for each in rewarded]
    zeros = [np.zeros(length, dtype=np.float32) for length in lengths]
    batch = pack([Credited(rewarded=each, gain=zero, lose=zero) for each, zero in zip(rewarded, zeros, strict=True)])
    heads = () if critic is None else critic.settings.heads
    thought = {name: np.full(sum(lengths), np.nan, dtype=np.float32) for name in heads}
    if reference is not None:
        thought["reference"] = np.full(sum(lengths), np.nan, dtype=np.float32)
    batch = batch.to(policy.device)
    forest, origin = batch.forest(), batch.origin.cpu().numpy()
    said = dict[str, Tensor]()
    if critic is not None:
        reading = read(policy, forest, micro_tokens)
        said |= survey(policy, batch, reading, temperature=temperature, critic=critic).values
    if reference is not None:
        said["reference"] = survey(
            reference, batch, read(reference, forest, micro_tokens), temperature=temperature
        ).logprob
    for name, values in said.items():
        thought[name][origin] = values.float().cpu().numpy()
    end = np.cumsum([0, *lengths]).tolist()
    cut: list[dict[str, Floats]] = [
        {name: column[end[i] : end[i + 1]] for name, column in thought.items()} for i in range(len(rewarded))
    ]
    return [replace(each, estimates={**each.estimates, **own}) for each, own in zip(rewarded, cut, strict=True)]
