"""Every objective that the room exports, and columns of every kind for them."""

import dataclasses
import inspect
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor

import bough.objective as room
from bough.needs import (
    CLIPPED_NORM,
    CRITIC,
    DEMONSTRATIONS,
    ENTROPY,
    HIDDEN_STATES,
    MEAN_TURN_ENTROPY,
    OLD_LOGPROBS,
    PATHS,
    REFERENCE,
    needs_of,
)
from bough.objective import LossInputs, Objective, PpoClip, Topr
from bough.objective.inputs import PathIds, ValueInputs

INNER = PpoClip()
PLAIN: dict[object, object] = {float: 0.5, int: 1, str: "value", bool: False}
"""What a field without a default gets."""

TRIED = (None, 0.3, 1.5)
"""What a field that may be left empty gets besides its default, where it takes it."""


def objectives() -> dict[str, Objective]:
    """By a name for tests: each with its defaults, and each with one field changed that has few values to choose from.

    A field for another objective gets `PpoClip()`, one for several gets `PpoClip()` and one over paths.
    """
    found: dict[str, Objective] = {}
    for name in room.__all__:
        each = getattr(room, name)
        if inspect.isclass(each) and is_objective(each):
            piece = plain(each)
            found[name] = piece
            found |= {f"{name}({label})": changed for label, changed in variants(piece)}
        elif inspect.isfunction(each) and is_objective(get_type_hints(each).get("return")):
            found[f"{name}()"] = each()
    return found


def is_objective(kind: Any) -> bool:
    return inspect.isclass(kind) and dataclasses.is_dataclass(kind) and hasattr(kind, "needs") and callable(kind)


def plain(kind: Any) -> Any:
    """With defaults where there are any."""
    hints = get_type_hints(kind)
    missing = dataclasses.MISSING
    lacking = [f for f in dataclasses.fields(kind) if f.default is missing and f.default_factory is missing]
    return kind(**{f.name: _something(hints[f.name]) for f in lacking})


def _something(hint: Any) -> Any:
    if hint is Objective:
        return INNER
    if get_origin(hint) is tuple and Objective in get_args(hint):
        return (INNER, Topr())
    return PLAIN[hint]


def variants(piece: Any) -> Iterator[tuple[str, Any]]:
    """The same piece with one field changed; pieces inside it are changed likewise."""
    hints = get_type_hints(type(piece))
    for f in dataclasses.fields(piece):
        now, hint = getattr(piece, f.name), hints[f.name]
        if dataclasses.is_dataclass(now) and not isinstance(now, type):
            others = [(f"{f.name}.{label}", inner) for label, inner in variants(now)]
        else:
            others = [(f"{f.name}={other!r}", other) for other in _options(hint) if other != now]
        for label, other in others:
            try:
                yield label, dataclasses.replace(piece, **{f.name: other})
            except ValueError:
                continue


def _options(hint: Any) -> tuple[object, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    if hint is bool:
        return (False, True)
    if get_origin(hint) in (Union, types.UnionType) and set(get_args(hint)) == {float, type(None)}:
        return TRIED
    return ()


def heads(piece: Any) -> tuple[str, ...]:
    """The names that an objective may mean by the head of a critic: every text in it."""
    names = {"value"}
    for f in dataclasses.fields(piece):
        now = getattr(piece, f.name)
        held = now if isinstance(now, tuple) else (now,)
        names |= {each for each in held if isinstance(each, str)}
        for each in held:
            if dataclasses.is_dataclass(each) and not isinstance(each, type):
                names |= set(heads(each))
    return tuple(sorted(names))


def random_walk(rng: np.random.Generator) -> PathIds:
    """Two tasks of three paths, of one to three turns of one to three tokens; first turns of a task share a fork.

    The visits of a search differ between the turns of a path.
    """
    turns = rng.integers(1, 4, size=6)
    path_of_turn = torch.as_tensor(np.repeat(np.arange(6), turns))
    lengths = rng.integers(1, 4, size=int(turns.sum()))
    turn = torch.as_tensor(np.repeat(np.arange(len(lengths)), lengths))
    task = torch.tensor([0, 0, 0, 1, 1, 1])
    starts = torch.cat([torch.ones(1).bool(), path_of_turn.diff() > 0])
    fork = torch.where(starts, task[path_of_turn], 2 + torch.arange(len(lengths)))
    visits = 1.0 + torch.arange(len(lengths)) % 3
    path = path_of_turn[turn]
    return PathIds(path=path, turn=turn, task=task, context_id=fork, path_of_turn=path_of_turn, visits=visits)


def random_columns(
    rng: np.random.Generator, piece: Objective, *, dtype: torch.dtype = torch.float64, progress: float = 0.4
) -> tuple[LossInputs, list[Tensor]]:
    """Columns in the path view with what the objective needs and nothing else, and those that carry a gradient.

    Advantages are of whole paths in one half of the cases, of turns in the other; some are 0. Targets of heads are near
    them. Ratios are on both sides of every usual bound.
    """
    walk = random_walk(rng)
    count = len(walk.path)
    needs = needs_of(piece)

    def draw(low: float, high: float) -> Tensor:
        return torch.as_tensor(rng.uniform(low, high, size=count)).to(dtype)

    logprob = draw(-2.5, -0.2)
    rollout_logprob = logprob + draw(-0.6, 0.6)
    span, spans = (walk.path, 6) if rng.random() < 0.5 else (walk.turn, len(walk.path_of_turn))
    advantage = torch.as_tensor(rng.normal(size=spans) * (rng.random(spans) < 0.85)).to(dtype)[span]
    # Paths that gain end with success.
    ends = torch.zeros(6, dtype=dtype).index_add(0, walk.path, advantage).sign().long()
    walk = dataclasses.replace(walk, end=ends)
    # The engine is near the learner on some paths, and far from it on others.
    old = (
        rollout_logprob + draw(-1.0, 1.0) * torch.tensor([0.001, 0.6, 0.001, 0.001, 0.6, 0.001], dtype=dtype)[walk.path]
    )
    expert = (walk.path == 2) | (walk.path == 5)
    if DEMONSTRATIONS in needs:
        rollout_logprob, advantage = rollout_logprob.where(~expert, 0.0), advantage.where(~expert, 1.0)
    share = draw(0.1, 1.0)
    usual = draw(0.1, 2.0)
    usual[::5] = torch.nan
    leaves = [logprob.requires_grad_()]
    entropy = draw(0.1, 2.0).requires_grad_()
    values = {name: draw(-1.0, 1.0).requires_grad_() for name in heads(piece)} if CRITIC in needs else {}
    leaves += [entropy] if ENTROPY in needs else []
    leaves += list(values.values())
    given = LossInputs(
        logprob=logprob,
        rollout_logprob=rollout_logprob,
        positive=advantage.clamp(min=0),
        negative=advantage.clamp(max=0),
        loss_weight=share / share.sum(),
        entropy=entropy if ENTROPY in needs else None,
        reference=draw(-2.5, -0.2) if REFERENCE in needs else None,
        old=old if OLD_LOGPROBS in needs else None,
        mean_turn_entropy=usual if MEAN_TURN_ENTROPY in needs else None,
        values={
            name: ValueInputs(value=value, old=value.detach() + draw(-0.6, 0.6), target=advantage + draw(-0.5, 0.5))
            for name, value in values.items()
        },
        expert=expert if DEMONSTRATIONS in needs else None,
        path_ids=walk if PATHS in needs else None,
        progress=progress,
        clipped_norm=1.5 if CLIPPED_NORM in needs else None,
        hidden=torch.as_tensor(rng.normal(size=(count, 3))).to(dtype) if HIDDEN_STATES in needs else None,
    )
    return given, leaves
