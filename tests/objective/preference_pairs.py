"""Paths with preferences for tests: what each turn is worth, how likely its tokens are, where it was written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from bough.objective import LossInputs
from bough.objective.inputs import PathIds


@dataclass(frozen=True, kw_only=True)
class T:
    """One turn: log-probabilities of its tokens, of the policy, the reference and the policy before the update."""

    logprob: Sequence[float]
    reference: Sequence[float] | None = None
    old: Sequence[float] | None = None
    advantage: float | None = None
    context_id: int | None = None
    response_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class P:
    """One path; its advantage is that of its turns, unless they say their own."""

    turns: Sequence[T]
    advantage: float = 0.0
    task: int = 0


def pair(winner: Sequence[float], loser: Sequence[float], task: int = 0, **references: Sequence[float]) -> list[P]:
    """Two paths of one turn, of which the first is better; `winner_reference` and so on for the other columns."""
    sides = {"winner": winner, "loser": loser}
    return [
        P(
            turns=[
                T(logprob=logprob, reference=references.get(f"{name}_reference"), old=references.get(f"{name}_old"))
            ],
            advantage=1.0 if name == "winner" else -1.0,
            task=task,
        )
        for name, logprob in sides.items()
    ]


@dataclass
class _Laid:
    path: list[int] = field(default_factory=list)
    turn: list[int] = field(default_factory=list)
    context_id: list[int] = field(default_factory=list)
    response_id: list[int] = field(default_factory=list)
    path_of_turn: list[int] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=lambda: {n: [] for n in ("p", "r", "o", "a")})


def lay(paths: Sequence[P]) -> LossInputs:
    """The path view of some paths. Turns that name no fork have places of their own; the first have their task's."""
    laid = _Laid()
    for number, path in enumerate(paths):
        for place, turn in enumerate(path.turns):
            alone = 1000 + len(laid.context_id)
            laid.context_id.append(turn.context_id if turn.context_id is not None else alone if place else path.task)
            laid.response_id.append(alone if turn.response_id is None else turn.response_id)
            laid.path_of_turn.append(number)
            for index, logprob in enumerate(turn.logprob):
                laid.path.append(number)
                laid.turn.append(len(laid.context_id) - 1)
                laid.columns["p"].append(logprob)
                laid.columns["r"].append(logprob if turn.reference is None else turn.reference[index])
                laid.columns["o"].append(logprob if turn.old is None else turn.old[index])
                laid.columns["a"].append(path.advantage if turn.advantage is None else turn.advantage)
    p, r, o, a = (torch.tensor(column, dtype=torch.float64) for column in laid.columns.values())
    ids = {
        name: torch.tensor(getattr(laid, name), dtype=torch.int64)
        for name in ("path", "turn", "context_id", "response_id")
    }
    return LossInputs(
        logprob=p.requires_grad_(),
        rollout_logprob=p.detach().clone(),
        positive=a.clamp(min=0),
        negative=a.clamp(max=0),
        loss_weight=torch.full_like(p, 1 / max(1, len(p))).detach(),
        reference=r,
        old=o,
        path_ids=PathIds(
            task=torch.tensor([path.task for path in paths], dtype=torch.int64),
            path_of_turn=torch.tensor(laid.path_of_turn, dtype=torch.int64),
            **ids,
        ),
    )
