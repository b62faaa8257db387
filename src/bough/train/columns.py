"""From a batch and what was seen of it to the columns of an objective, token by token or path by path."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from bough.batch import Batch
from bough.objective import LossInputs, Need, Normalizer, PathIds, ValueInputs
from bough.train.token_outputs import Forward, TokenOutputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveContext:
    """What an objective may want to know besides the batch.

    Attributes:
        reference: The frozen policy.
        usual_entropy: [turns] nats, mean entropy of earlier steps at each turn; nan where there was none.
        progress: Share of the training that is done.
        scale: By the name of a value head, as in `Head`; of the optimizer step, see `scales`.
    """

    reference: Forward | None = None
    mean_turn_entropy: Tensor | None = None
    progress: float = 0.0
    scale: Mapping[str, float] = field(default_factory=dict[str, float])


NO_CONTEXT = ObjectiveContext()


def loss_weights(batch: Batch, share: Normalizer) -> Tensor:
    """[M]: what each token counts in the mean over an optimizer step; demonstrations have a mean of their own."""
    weight = torch.zeros(len(batch.at), device=batch.at.device)
    for some in (batch.expert, ~batch.expert):
        weight[some] = share(batch.paths[some], batch.inverse_length[some], batch.even[some])
    return weight


def value_scales(batch: Batch, share: Tensor) -> dict[str, float]:
    """By the name of a value head: what was sampled over what has a goal, both weighted by `share` [M]."""
    sampled = float(share[~batch.expert].sum())
    known = {name: float(share[~goal.isnan()].sum()) for name, goal in batch.value_targets.items()}
    return {name: sampled / part for name, part in known.items() if part > 0}


def by_token(
    batch: Batch,
    seen: TokenOutputs,
    needs: frozenset[Need],
    aids: ObjectiveContext,
    *,
    share: Tensor,
    old: Tensor | None,
) -> LossInputs:
    """The columns of a batch, each trained token once.

    Args:
        batch: M trained tokens.
        seen: What the policy thinks of them.
        needs: Of the objective.
        aids: For the objective.
        share: [M].
        old: [M] or None.

    Raises:
        ValueError: when the objective needs the values of a critic, and there is none.
    """
    if "values" in needs and not seen.values:
        raise ValueError("got an objective on values, and no critic; need `critic=ValueHead()` in the run")
    usual = aids.mean_turn_entropy
    nothing = torch.full_like(seen.logprob, torch.nan).detach()
    if usual is not None:
        usual = torch.cat([usual, nothing.new_full((1,), torch.nan)])[batch.turn.clamp(max=len(usual))]
    return LossInputs(
        logprob=seen.logprob,
        rollout_logprob=batch.rollout_logprob,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=share,
        entropy=seen.entropy,
        old=old,
        mean_turn_entropy=nothing if usual is None and "mean_turn_entropy" in needs else usual,
        values={
            name: ValueInputs(
                value=value,
                old=batch.old_values.get(name, nothing),
                target=batch.value_targets.get(name, nothing),
                scale=aids.scale.get(name, 1.0),
            )
            for name, value in seen.values.items()
        },
        expert=batch.expert if "experts" in needs else None,
        progress=aids.progress,
    )


def by_path(columns: LossInputs, batch: Batch, share: Normalizer) -> LossInputs:
    """The same columns in the path view.

    Args:
        columns: Of the whole batch of an optimizer step.
        batch: Packed with its paths.
        share: The normaliser, applied to the tokens of each path.

    Raises:
        ValueError: when the batch was packed without paths.
    """
    path_index = batch.path_index
    if path_index is None:
        raise ValueError("got a batch without paths for an objective that needs them; pack it with `paths=True`")
    at = path_index.trained
    each = torch.ones_like(at)
    if share.by == "unique_tokens":
        weight = columns.loss_weight[at] / batch.paths[at]
    else:
        weight = torch.zeros(len(at), device=at.device)
        for some in (batch.expert[at], ~batch.expert[at]):
            weight[some] = share(each[some], path_index.inverse_length[some], each[some] > 0)
    advantage = path_index.advantage
    view = {
        name: column[at]
        for name in ("logprob", "rollout_logprob", "entropy", "reference", "old", "mean_turn_entropy", "expert")
        if (column := getattr(columns, name)) is not None
    }
    return replace(
        columns,
        **view,
        positive=advantage.clamp(min=0),
        negative=advantage.clamp(max=0),
        loss_weight=weight,
        values={
            name: replace(head, value=head.value[at], old=head.old[at], target=head.target[at])
            for name, head in columns.values.items()
        },
        path_ids=PathIds(
            path=path_index.path,
            turn=path_index.turn,
            task=path_index.task,
            context_id=path_index.context_id,
            path_of_turn=path_index.path_of_turn,
            response_id=path_index.response_id,
            visits=path_index.visits,
            end=path_index.end,
        ),
    )
