"""N-HARPG: normalised steps along a mean gradient that Hessian-vector products correct."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from bough.needs import OLD_LOGPROBS, PATHS, needs_of
from bough.objective import Loss, LossInputs, Need, Objective
from bough.objective.spans import path_ids_of, span_sums


class Harpg(torch.optim.Optimizer):
    """N-HARPG (arXiv 2302.01734): normalised Hessian-aided recursive policy gradient.

    A mean over past gradients lags behind the weights. A Hessian-vector product corrects it, estimated from a second
    batch, which is sampled at a random point of the last move. With x the iterate, g a gradient, B the estimate of the
    Hessian and w[t] the weight of the newest gradient:

        z[t]     = q * x[t] + (1 - q) * x[t-1]                                  q uniform in [0, 1], drawn for each t
        v[t]     = B(z[t]) * (x[t] - x[t-1])                                    a batch sampled at z[t]
        d[t]     = (1 - w[t]) * (d[t-1] + v[t]) + w[t] * g(x[t])                a batch sampled at x[t]
        x[t + 1] = x[t] - rate * d[t] / |d[t]|

    with d[0] = g(x[0]), |.| over all weights together, and no step where d is 0. The mean of v over q is the change of
    the gradient from x[t-1] to x[t]. w[t] = max(weight, 2 / (t + 2)). The paper's rates fall as 1 / t; a schedule of
    the learning rate does that here.

    **Parameters hold the next sampling point**: x[0], z[1], x[1], z[2], x[2], ... So an iteration takes two optimizer
    steps: one with v in the gradients (`along` is then the move), and one with g. On a loss x^2 / 2, from x = 1 with
    rate .1, where q is .061 and .918 for seed 0:

        parameter     1     .994     .9     .808    .8
        gradient      1    -.1       .9    -.1      .8
        d             1              .9             .8

    The paper's estimate of B is a mean over paths of grad(loss) <grad log p, .> + Hessian(loss), see `Displaced`. The
    released code (`STORMHessOptimizer`, on garage) uses the product of two batch means for the first term, with the
    opposite sign; both are errors and are not reproduced.

    Args:
        params: Tensors or groups of them.
        lr: Length of a step, >= 0.
        weight: Minimum weight of the newest gradient, in (0, 1].
        seed: Seed of q.
    """

    def __init__(self, params: Iterable[Any], *, lr: float, weight: float = 0.1, seed: int = 0) -> None:
        if not lr >= 0 or not 0 < weight <= 1:
            raise ValueError(f"Harpg: got lr={lr}, weight={weight}; need 0 or more, a number above 0 and up to 1")
        super().__init__(params, {"lr": lr, "weight": weight, "seed": seed})

    def along(self) -> dict[Tensor, Tensor] | None:
        """By parameter, the last move, before a step with a Hessian-vector product; None before one with a gradient."""
        begun = {parameter: state for parameter, state in self.state.items() if state}
        if not any(int(state["step"]) % 2 for state in begun.values()):
            return None
        return {parameter: cast("Tensor", state["move"]) for parameter, state in begun.items()}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add a Hessian-vector product to the mean, or a gradient and move; then set the next sampling point."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = [(weight, group) for group in self.param_groups for weight in _with_gradient(group)]
        for parameter, _ in moving:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32)
                state["iterate"] = parameter.clone()
                state["move"], state["direction"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        if self.along() is None:
            self._move(moving)
        else:
            for parameter, _ in moving:
                self.state[parameter]["direction"] += _gradient(parameter)
                parameter.copy_(self.state[parameter]["iterate"])
        for parameter, _ in moving:
            self.state[parameter]["step"] += 1
        return loss

    def _move(self, moving: Sequence[tuple[Tensor, dict[str, Any]]]) -> None:
        """Add gradients at the iterate to the mean, move along it, and set parameters to a point of the move."""
        for parameter, group in moving:
            state = self.state[parameter]
            newest = max(group["weight"], 2.0 / (int(state["step"]) // 2 + 2.0))
            state["direction"].lerp_(_gradient(parameter), newest)
        norm = math.sqrt(sum(float(self.state[each]["direction"].double().square().sum()) for each, _ in moving))
        for parameter, group in moving:
            state = self.state[parameter]
            torch.mul(state["direction"], -group["lr"] / norm if norm > 0 else 0.0, out=state["move"])
            state["iterate"] += state["move"]
            back = 1.0 - share_of_move(group["seed"], int(state["step"]) // 2 + 1)
            torch.add(state["iterate"], state["move"], alpha=-back, out=parameter)


def share_of_move(seed: int, iteration: int) -> float:
    """q: uniform in [0, 1), the same for all parameters and in every process."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + iteration)
    return torch.rand((), generator=generator, dtype=torch.float64).item()


def gradient_change(
    gradient: Callable[[], Mapping[str, float]], along: Mapping[Tensor, Tensor], others: Iterable[Tensor] = ()
) -> dict[str, float]:
    """Store in `grad` the change of a gradient along a direction, a Hessian-vector product by a central difference.

        grad = gradient(x + along / 2) - gradient(x - along / 2)

    The backward passes of tree attention and of chunked forward passes are written by hand and cannot be
    differentiated, which excludes double backward. The error is third order in the length of `along`.

    Args:
        gradient: Adds the gradient at the present weights to `grad`; returns metrics.
        along: By parameter, the direction.
        others: Parameters that do not move; they get the mean of both gradients.

    Returns:
        The mean of the metrics of both sides.
    """
    held = {parameter: parameter.detach().clone() for parameter in along}
    found: list[Mapping[str, float]] = []
    with torch.no_grad():
        for side in (0.5, -0.5):
            for parameter, move in along.items():
                torch.add(held[parameter], move, alpha=side, out=parameter)
                if parameter.grad is not None:
                    parameter.grad.neg_()
            with torch.enable_grad():
                found.append(gradient())
        for parameter, value in held.items():
            parameter.copy_(value)
            if parameter.grad is not None:
                parameter.grad.neg_()
        for parameter in others:
            if parameter.grad is not None:
                parameter.grad /= 2
    plus, minus = found
    return {name: (value + minus[name]) / 2 for name, value in plus.items()}


class Displaced:
    """An objective at weights near the sampling weights, importance-weighted to the present ones.

    With `old` the log-probabilities under the sampling weights, each token is weighted by the probability ratio of its
    whole path. `rollout_logprob` is shifted by the same log ratio, so that ratios inside the objective exclude it:

        loss_weight * exp(sum over the path of log p - old)        rollout_logprob + log p - old

    The derivative of its gradient along u is the mean over paths of grad(loss) <grad log p(path), u> + Hessian(loss) u,
    an unbiased estimate of the Hessian-vector product of the expected loss.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    @property
    def needs(self) -> frozenset[Need]:
        """The objective's needs, paths, and the log-probabilities under the sampling weights."""
        return needs_of(self._objective) | {PATHS, OLD_LOGPROBS}

    def __call__(self, columns: LossInputs) -> Loss:
        """The loss."""
        path_ids, old = path_ids_of(columns, "Harpg"), columns.old
        if old is None:
            raise ValueError("Harpg: got inputs without `old`; need the log-probabilities under the sampling weights")
        moved = columns.logprob.detach() - old
        if columns.expert is not None:
            # Demonstrations do not depend on the weights.
            moved = moved.masked_fill(columns.expert, 0.0)
        weight = span_sums(moved, path_ids.path, len(path_ids.task)).exp()[path_ids.path]
        return self._objective(
            replace(
                columns,
                loss_weight=columns.loss_weight * weight,
                rollout_logprob=columns.rollout_logprob + moved,
                old=columns.logprob.detach(),
            )
        )


def _with_gradient(group: dict[str, Any]) -> list[Tensor]:
    return [weight for weight in cast("list[Tensor]", group["params"]) if weight.grad is not None]


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None  # by _with_gradient
    return parameter.grad
