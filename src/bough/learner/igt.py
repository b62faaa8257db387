"""N-PG-IGT: normalised steps of fixed length along a mean gradient with implicit gradient transport."""

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor

START = 0.8
"""Exponent of the initial weight decay: the weight of a new gradient is (2 / (t + 2))^START."""


class Igt(torch.optim.Optimizer):
    """N-PG-IGT (arXiv 2302.01734): normalised policy gradient with implicit gradient transport.

    A mean over past gradients has less variance than one gradient, but lags behind the weights. Each gradient is
    therefore computed at an extrapolated point, so that the mean is the gradient at the iterate. This is exact where
    gradients are linear (a quadratic loss). With x the iterate, g a gradient, d their mean and w[t] the weight of the
    newest gradient:

        y[t]     = x[t] + (1 - w[t]) / w[t] * (x[t] - x[t-1])          y[0] = x[0]
        d[t]     = (1 - w[t]) * d[t-1] + w[t] * g(y[t])                d[0] = g(y[0])
        x[t + 1] = x[t] - rate * d[t] / |d[t]|

    |.| is over all weights together: a step has the length `rate` whatever the size of the loss. Where d is 0 there is
    no step. w[t] = max(weight, (2 / (t + 2))^0.8): it starts at 1 and falls to the constant. The paper's rates fall as
    well; a learning rate schedule does that here.

    **Parameters hold y**, the extrapolated point: the engine samples from it, checkpoints store it and evaluations use
    it. x, `rate * (1 - w) / w` behind, is stored in the state as "iterate". Two steps on a loss x^2 / 2 from x = 1,
    with rate .1:

        w    1       .7230    .5743
        x    1       .9       .8
        y    1       .8617    .7259

    Args:
        params: Tensors or groups of them.
        lr: Length of a step, >= 0.
        weight: Of the newest gradient in the mean, in (0, 1]; 1 is the plain normalised gradient, with y = x.
    """

    def __init__(self, params: Iterable[Any], *, lr: float, weight: float = 0.1) -> None:
        if not lr >= 0 or not 0 < weight <= 1:
            raise ValueError(f"Igt: got lr={lr}, weight={weight}; need 0 or more, a number above 0 and up to 1")
        super().__init__(params, {"lr": lr, "weight": weight})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the gradients at y to the mean, move x along it, and store the next y in the parameters."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = [(weight, group) for group in self.param_groups for weight in _with_gradient(group)]
        for parameter, group in moving:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32)
                state["iterate"] = parameter.clone()
                state["direction"] = torch.zeros_like(parameter)
            assert parameter.grad is not None  # by _with_gradient
            state["direction"].lerp_(parameter.grad, _weight(group["weight"], int(state["step"])))
        norm = math.sqrt(sum(float(self.state[each]["direction"].double().square().sum()) for each, _ in moving))
        for parameter, group in moving:
            state = self.state[parameter]
            state["step"] += 1
            newest = _weight(group["weight"], int(state["step"]))
            move = state["direction"] * (-group["lr"] / norm if norm > 0 else 0.0)
            state["iterate"] += move
            torch.add(state["iterate"], move, alpha=(1 - newest) / newest, out=parameter)
        return loss


def _with_gradient(group: dict[str, Any]) -> list[Tensor]:
    return [weight for weight in cast("list[Tensor]", group["params"]) if weight.grad is not None]


def _weight(least: float, step: int) -> float:
    """w[t]."""
    return max(least, (2.0 / (step + 2.0)) ** START)
