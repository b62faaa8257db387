"""Builds the inputs of an objective from a batch and model outputs, in the token view or the path view."""

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from bough.batch import Batch
from bough.learner.token_outputs import Forward, TokenOutputs
from bough.needs import CRITIC, DEMONSTRATIONS, MEAN_TURN_ENTROPY
from bough.objective import LossInputs, Need, Normalizer
from bough.objective.inputs import PathIds, ValueInputs
from bough.tree import PathCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveContext:
    """Inputs of an objective besides the batch.

    Attributes:
        reference: The frozen policy.
        mean_turn_entropy: [turns] nats, mean entropy of earlier steps at each turn; nan without earlier steps.
        progress: Fraction of the training that is done, in [0, 1].
        scheduled_update: For the learning rate, the number of updates up to here if no step had skipped its update;
            None for the number of updates done.
        temperature: Divides the logits from here on; None for the learner's.
        schedule: Factor on the learning rate; None for the optimizer's `schedule`.
        clipped_norm: See `LossInputs`; None where no objective needs it.
        turn_number: See `LossInputs`.
    """

    reference: Forward | None = None
    mean_turn_entropy: Tensor | None = None
    progress: float = 0.0
    scheduled_update: int | None = None
    temperature: float | None = None
    schedule: float | None = None
    clipped_norm: float | None = None
    turn_number: int | None = None

    def to(self, device: torch.device) -> "ObjectiveContext":
        """The same inputs on another device, the reference as it is."""
        entropy = self.mean_turn_entropy
        return replace(self, mean_turn_entropy=None if entropy is None else entropy.to(device))


NO_CONTEXT = ObjectiveContext()


def loss_weights(batch: Batch, normalizer: Normalizer) -> Tensor:
    """[M]: the weight of each token in the mean over an optimizer step; demonstrations have a mean of their own."""
    weight = torch.zeros(len(batch.at), device=batch.at.device)
    for some, others in ((batch.expert, PathCounts()), (~batch.expert, batch.counted_only)):
        weight[some] = normalizer(batch.paths[some], batch.inverse_length[some], batch.equal_length[some], others)
    return weight


def value_scales(batch: Batch, loss_weight: Tensor) -> dict[str, float]:
    """By value head: weight of the sampled tokens divided by weight of the tokens with a value target."""
    sampled = float(loss_weight[~batch.expert].sum())
    known = {name: float(loss_weight[~target.isnan()].sum()) for name, target in batch.value_targets.items()}
    return {name: sampled / part for name, part in known.items() if part > 0}


def before_forward(
    batch: Batch,
    needs: frozenset[Need],
    context: ObjectiveContext,
    *,
    loss_weight: Tensor,
    old: Tensor | None = None,
    reference: Tensor | None = None,
) -> LossInputs:
    """The inputs of an objective that the batch determines; `with_outputs` adds the model's outputs.

    Until then `logprob` holds the rollout's log-probabilities.

    Args:
        batch: M trained tokens.
        needs: The objective's.
        context: For the objective.
        loss_weight: [M], see `loss_weights`.
        old: [M], log-probabilities before the update, when the objective needs them.
        reference: [M], log-probabilities under the reference policy, when the objective needs them.
    """
    unknown, scale = torch.full_like(batch.rollout_logprob, torch.nan), value_scales(batch, loss_weight)
    entropy = context.mean_turn_entropy
    if entropy is not None:
        entropy = torch.cat([entropy, unknown.new_full((1,), torch.nan)])[batch.turn.clamp(max=len(entropy))]
    elif MEAN_TURN_ENTROPY in needs:
        entropy = unknown
    return LossInputs(
        logprob=batch.rollout_logprob,
        rollout_logprob=batch.rollout_logprob,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=loss_weight,
        metric_scale=1 / (float(loss_weight[~batch.expert].sum()) or 1.0),
        old=old,
        reference=reference,
        mean_turn_entropy=entropy,
        values={
            name: ValueInputs(value=unknown, old=batch.old_values[name], target=target, scale=scale.get(name, 1.0))
            for name, target in batch.value_targets.items()
        },
        expert=batch.expert if DEMONSTRATIONS in needs else None,
        progress=context.progress,
        clipped_norm=context.clipped_norm,
        turn_number=context.turn_number,
    )


def with_outputs(inputs: LossInputs, outputs: TokenOutputs, needs: frozenset[Need]) -> LossInputs:
    """The inputs of an objective with a model's outputs for the same tokens.

    Raises:
        ValueError: when the objective needs the values of a critic, and there is none.
    """
    if CRITIC in needs and not outputs.values:
        raise ValueError("got an objective on values, and no critic; need `critic=ValueHead()` in the run")
    unknown = torch.full_like(outputs.logprob, torch.nan).detach()
    blank = ValueInputs(value=unknown, old=unknown, target=unknown)
    values = {name: replace(inputs.values.get(name, blank), value=value) for name, value in outputs.values.items()}
    return replace(inputs, logprob=outputs.logprob, entropy=outputs.entropy, values=values, hidden=outputs.hidden)


def by_path(inputs: LossInputs, batch: Batch, normalizer: Normalizer) -> LossInputs:
    """The same inputs in the path view.

    Args:
        inputs: Of the whole batch of an optimizer step.
        batch: Packed with its paths.
        normalizer: Computes the weights of the tokens of each path.

    Raises:
        ValueError: when the batch was packed without paths.
    """
    index = batch.path_index
    if index is None:
        raise ValueError("got a batch without paths for an objective that needs them; pack it with `paths=True`")
    at = index.trained
    each = torch.ones_like(at)
    if normalizer.by == "unique_tokens":
        weight = inputs.loss_weight[at] / batch.paths[at]
    else:
        weight = torch.zeros(len(at), device=at.device)
        for some, others in ((batch.expert[at], PathCounts()), (~batch.expert[at], batch.counted_only)):
            weight[some] = normalizer(each[some], index.inverse_length[some], each[some] > 0, others)
    return replace(
        inputs.select(at),
        positive=index.advantage.clamp(min=0),
        negative=index.advantage.clamp(max=0),
        loss_weight=weight,
        path_ids=PathIds(**{each.name: getattr(index, each.name) for each in fields(PathIds)}),
    )
