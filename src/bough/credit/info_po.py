"""Advantages from the outcome of a path and, while outcomes are tied, the information in its observations."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.channel_view import channel_view
from bough.credit.normalize import normalize
from bough.needs import Need, channel
from bough.piece import Above, AtLeast, piece
from bough.tree import Credited, Floats, Ints, Rewarded, path_view, sigmoid, spread_turns, sum_at


@piece
class InfoPo:
    """InfoPO (arXiv 2603.00656): the outcome, plus information where the outcomes say little; needs its channel.

    With R the path's return without the channel `step`, s its standard deviation in the task (ddof 1), and r that
    channel's reward of a turn of n tokens:

        A      = z(R) + weight * gate * scale * z(r / n)
        gate   = 1 / (1 + exp(s / temperature))
        scale  = min(1, max(std of z(R), 1) / std of z(r / n)), over all tokens of the batch

    z subtracts the mean of the task and divides by its standard deviation: of R over paths, of r / n over the tokens of
    the turns with a reward. A turn without one gets none. With s of 0, .05 and .5 the gate is .5, .268941, 4.5e-5.
    The scale is below 1 only without normalisation (`normalized=false`, an ablation of the paper), with r / n for z.

    A path alone in its task has no outcome to compare, so s is 0; released code takes 1, which closes the gate.

    Attributes:
        step: The channel of the information.
        weight: Of the information; .1 in the paper.
        normalized: Whether the information is normalised in the task.
        temperature: Of the gate, > 0: the spread of outcomes at which information counts little.
        epsilon: Added to standard deviations, > 0.
        as_released: Whether a path alone has s = 1 and the advantage R.
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"

    step: str = "information"
    weight: Annotated[float, AtLeast(0, "0 or more")] = 0.1
    normalized: bool = True
    temperature: Annotated[float, Above(0)] = 0.05
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """The channel of the information."""
        return frozenset({channel(self.step)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks the channel `step`.
        """
        view = path_view(rewarded)
        own = channel_view(rewarded, self.step, setting="InfoPo.step", remedy="ObservationValue()")
        returns, task, tokens = view.returns - own.returns, view.task[view.path], view.tokens.astype(np.float64)
        singleton: Literal["raw", "zero"] = "raw" if self.as_released else "zero"
        outcome = normalize(returns, view.task, epsilon=self.epsilon, singleton=singleton)[view.path]
        paid = np.flatnonzero((own.reward != 0) & (tokens > 0))
        information = np.zeros(len(task))
        information[paid] = own.reward[paid] / tokens[paid]
        if self.normalized:
            information[paid] = normalize(information[paid], task[paid], weight=tokens[paid], epsilon=self.epsilon)
        # Both standard deviations are over tokens: a long turn counts as often as it does in the loss.
        largest = max(_std(outcome, tokens), 1.0)
        scale = min(1.0, largest / (_std(information, tokens) + self.epsilon))
        weight = self.weight * scale * self.gate(returns, view.task)[view.path]
        return spread_turns(view, outcome + weight * information)

    def gate(self, returns: Floats, task: Ints) -> Floats:
        """[P] float64, in (0, .5]: the weight of information, from the spread of the returns [P] of each task."""
        count = np.bincount(task)
        mean = sum_at(task, returns, len(count)) / np.maximum(count, 1)
        square = sum_at(task, (returns - mean[task]) ** 2, len(count))
        spread = np.sqrt(square / np.maximum(count - 1, 1))
        if self.as_released:
            spread[count == 1] = 1.0
        return sigmoid(-spread / self.temperature)[task]


def _std(value: Floats, weight: Floats) -> float:
    """The standard deviation of values that occur `weight` times each, ddof 1."""
    total = float(weight.sum())
    if total < 2:
        return 0.0
    mean = float((weight * value).sum()) / total
    return float(np.sqrt((weight * (value - mean) ** 2).sum() / (total - 1)))
