"""Estimates of other models for a batch before credit: a critic's values, reference log-probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from bough.batch import pack
from bough.critics.critic import Critic
from bough.learner.greedy import greedy_logprobs
from bough.learner.token_outputs import Forward, read, token_outputs_of_batch, values_of
from bough.policy.policy import Policy
from bough.tree import Credited, Floats, Ints, Rewarded, count_path_tokens, truncated_states


def add_estimates(
    rewarded: Sequence[Rewarded],
    policy: Policy,
    *,
    critic: Critic | None,
    bootstrap: bool = False,
    reference: Forward | None,
    guide: Forward | None = None,
    temperature: float,
    micro_tokens: int,
) -> list[Rewarded]:
    """Return the trees with estimates: a critic's values by head, the "reference" log-probabilities, the "greedy" ones.

    With `bootstrap` the critic also values the final states of truncated paths, in the same forward pass.

    Args:
        rewarded: The trees.
        policy: Computes the hidden states for the critic.
        critic: None for no values.
        bootstrap: Whether to set `Rewarded.end_values`.
        reference: None for no reference log-probabilities.
        guide: Its most probable token in place of each sampled one has the policy's log-probability "greedy"; None
            for none.
        temperature: Divides the logits.
        micro_tokens: Maximum tokens of one forward pass.
    """
    lengths = [len(each.tree.token) for each in rewarded]
    batch = pack([Credited(rewarded=each, path_advantage=np.zeros(count_path_tokens(each.tree))) for each in rewarded])
    heads = () if critic is None else critic.settings.heads
    estimates = {name: np.full(sum(lengths), np.nan, dtype=np.float32) for name in heads}
    if reference is not None:
        estimates["reference"] = np.full(sum(lengths), np.nan, dtype=np.float32)
    batch = batch.to(policy.device)
    packed, origin = batch.prefix_tree(), batch.origin.cpu().numpy()
    ends = [truncated_states(each.tree) if bootstrap else dict[int, Ints]() for each in rewarded]
    states = [state for leaves in ends for state in leaves.values()]
    predicted, after = dict[str, Tensor](), dict[str, Floats]()
    if critic is not None:
        values = values_of(policy, critic, batch.prefix_tree(states=states) if states else packed, micro_tokens)
        predicted |= {name: value[: len(origin)] for name, value in values.items()}
        if bootstrap:
            after = {name: value[len(origin) :].float().cpu().numpy() for name, value in values.items()}
    if reference is not None:
        forward = read(reference, packed, micro_tokens)
        predicted["reference"] = token_outputs_of_batch(reference, batch, forward, temperature=temperature).logprob
    if guide is not None:
        estimates["greedy"] = np.full(sum(lengths), np.nan, dtype=np.float32)
        predicted["greedy"] = greedy_logprobs(policy, guide, packed, temperature=temperature, max_tokens=micro_tokens)
    for name, values in predicted.items():
        estimates[name][origin] = values.float().cpu().numpy()
    end = np.cumsum([0, *lengths]).tolist()
    cut: list[dict[str, Floats]] = [
        {name: column[end[i] : end[i + 1]] for name, column in estimates.items()} for i in range(len(rewarded))
    ]
    return [
        replace(each, estimates={**each.estimates, **own}, end_values=own_ends)
        for each, own, own_ends in zip(rewarded, cut, _end_values(rewarded, ends, after), strict=True)
    ]


def _end_values(
    rewarded: Sequence[Rewarded], ends: Sequence[Mapping[int, Ints]], values: Mapping[str, Floats]
) -> list[dict[str, Floats]]:
    """`Rewarded.end_values` of each tree, from the concatenated values of all `ends`."""
    begin = np.cumsum([0, *map(len, ends)]).tolist()
    found: list[dict[str, Floats]] = []
    for i, (each, leaves) in enumerate(zip(rewarded, ends, strict=True)):
        own = {name: np.full(each.tree.nodes, np.nan, dtype=np.float32) for name in values}
        for name, column in own.items():
            column[list(leaves)] = values[name][begin[i] : begin[i + 1]]
        found.append(own)
    return found
