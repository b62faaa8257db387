"""From a batch and what was seen of it to the columns of an objective, token by token or path by path."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from bough.batch import Batch
from bough.learner.token_outputs import Forward, Seen
from bough.objective import Columns, Head, Need, Share, Walk
from bough.tree.needs import CRITIC, DEMONSTRATIONS, MEAN_TURN_ENTROPY


@dataclass(frozen=True, slots=True, kw_only=True)
class Aids:
    """What an objective may want to know besides the batch.

    Attributes:
        reference: The frozen policy.
        usual_entropy: [turns] nats, mean entropy of earlier steps at each turn; nan where there was none.
        progress: Share of the training that is done.
        scale: By the name of a value head, as in `Head`; of the optimizer step, see `scales`.
    """

    reference: Forward | None = None
    usual_entropy: Tensor | None = None
    progress: float = 0.0
    scale: Mapping[str, float] = field(default_factory=dict[str, float])


NO_AIDS = Aids()


def shares(batch: Batch, share: Share) -> Tensor:
    """[M]: what each token counts in the mean over an optimizer step; demonstrations have a mean of their own."""
    weight = torch.zeros(len(batch.at), device=batch.at.device)
    for some in (batch.expert, ~batch.expert):
        weight[some] = share(batch.paths[some], batch.inverse_length[some], batch.even[some])
    return weight


def scales(batch: Batch, share: Tensor) -> dict[str, float]:
    """By the name of a value head: what was sampled over what has a goal, both weighted by `share` [M]."""
    sampled = float(share[~batch.expert].sum())
    known = {name: float(share[~goal.isnan()].sum()) for name, goal in batch.goals.items()}
    return {name: sampled / part for name, part in known.items() if part > 0}


def by_token(
    batch: Batch, seen: Seen, needs: frozenset[Need], aids: Aids, *, share: Tensor, old: Tensor | None
) -> Columns:
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
    if CRITIC in needs and not seen.values:
        raise ValueError("got an objective on values, and no critic; need `critic=ValueHead()` in the run")
    usual = aids.usual_entropy
    nothing = torch.full_like(seen.logprob, torch.nan).detach()
    if usual is not None:
        usual = torch.cat([usual, nothing.new_full((1,), torch.nan)])[batch.turn.clamp(max=len(usual))]
    return Columns(
        logprob=seen.logprob,
        behaviour=batch.behaviour,
        gain=batch.gain,
        lose=batch.lose,
        share=share,
        entropy=seen.entropy,
        old=old,
        usual_entropy=nothing if usual is None and MEAN_TURN_ENTROPY in needs else usual,
        values={
            name: Head(
                value=value,
                old=batch.thoughts.get(name, nothing),
                goal=batch.goals.get(name, nothing),
                scale=aids.scale.get(name, 1.0),
            )
            for name, value in seen.values.items()
        },
        expert=batch.expert if DEMONSTRATIONS in needs else None,
        progress=aids.progress,
    )


def by_path(columns: Columns, batch: Batch, share: Share) -> Columns:
    """The same columns in the path view.

    Args:
        columns: Of the whole batch of an optimizer step.
        batch: Packed with its paths.
        share: The normaliser, applied to the tokens of each path.

    Raises:
        ValueError: when the batch was packed without paths.
    """
    walks = batch.walks
    if walks is None:
        raise ValueError("got a batch without paths for an objective that needs them; pack it with `paths=True`")
    at = walks.trained
    each = torch.ones_like(at)
    if share.by == "unique_tokens":
        weight = columns.share[at] / batch.paths[at]
    else:
        weight = torch.zeros(len(at), device=at.device)
        for some in (batch.expert[at], ~batch.expert[at]):
            weight[some] = share(each[some], walks.inverse_length[some], each[some] > 0)
    advantage = walks.advantage
    view = {
        name: column[at]
        for name in ("logprob", "behaviour", "entropy", "reference", "old", "usual_entropy", "expert")
        if (column := getattr(columns, name)) is not None
    }
    return replace(
        columns,
        **view,
        gain=advantage.clamp(min=0),
        lose=advantage.clamp(max=0),
        share=weight,
        values={
            name: replace(head, value=head.value[at], old=head.old[at], goal=head.goal[at])
            for name, head in columns.values.items()
        },
        walk=Walk(
            path=walks.path,
            turn=walks.turn,
            task=walks.task,
            fork=walks.fork,
            path_of_turn=walks.path_of_turn,
            answer=walks.answer,
            visits=walks.visits,
            end=walks.end,
        ),
    )
