"""One outcome as the advantage of every turn of a planner."""

from collections.abc import Sequence
from typing import Annotated

from bough.credit.normalize import normalize
from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class FlowGrpo:
    """Flow-GRPO (AgentFlow, arXiv 2510.05592): the outcome of a path goes to all its turns, compared over the task.

    With ddof 1 over the paths p of a task, for every turn t:

        A_(p,t) = (R_p - mean of R) / (std of R + epsilon)

    This is the advantage of `Grpo()`. The released code keeps each turn as its own row and computes mean and
    deviation over rows, so a path weighs as much as it has turns (`as_released`). Two paths, of 3 turns and of 1:

        returns           1       0
        FlowGrpo()    0.707  -0.707
        as_released   0.5    -1.5

    Attributes:
        epsilon: Added to the standard deviation, > 0.
        as_released: Statistics over turns; a turn alone in its task keeps its return.
    """

    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        if self.as_released:
            value, task = view.returns[view.path], view.task[view.path]
            return spread_turns(view, normalize(value, task, std="group", epsilon=self.epsilon, singleton="raw"))
        return spread_turns(view, normalize(view.returns, view.task, std="group", epsilon=self.epsilon)[view.path])
