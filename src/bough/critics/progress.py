"""Settings of a reward for progress: a copy of the policy whose outputs sum to the return of each path."""

from typing import TYPE_CHECKING, Annotated

from bough.hooks.hook import HookSetup
from bough.piece import Above, AtLeast, piece

if TYPE_CHECKING:
    import bough.critics.progress_state


@piece
class ProgressReward:
    """SPA-RL's progress estimator (arXiv 2505.20732): it divides the return of a path among its turns.

    The first `warmup_steps` steps collect paths, and the policy is not updated. A copy of the policy and a multilayer
    perceptron on it are then trained, once. With f the copy's last hidden state after a turn's action, the turn's
    progress is c = head(f), and the sums along paths p learn the returns:

        mean over paths p of (sum over the turns t of p of c_t - R(p))^2

    A turn that paths share has one c. The return R(p) is that of all channels before this hook. From then on each turn
    has a reward in the channel "progress", the last one included, in place of the other channels:

        progress * c_t - grounding * (1 if the environment refused the action, else 0)

    `Tree.valid` is whether it was executed. The paper adds `grounding` for an executed action instead (`bonus`). The
    released code updates the policy once, on stored paths, whose lengths no update changes. In training on new paths
    such a bonus rewards length: on `sokoban` five moves without a solution have 2.5, and a solution 1 more.

    The released head is linear, on the logits. The released trainer multiplies a turn's reward by the number of turns
    after it, so that the last turn gets nothing.

    Metrics: `progress/error`, the mean squared error of the sums on the batch, from which the estimator has not
    learned; `progress/variance` of the batch's returns, the error of their mean; `progress/paths` and `progress/fit` of
    the training, the number of paths and the mean squared error of its last step; `progress/refused`, the share of
    refused actions.

    Attributes:
        progress: Weight of the progress: alpha of the paper.
        grounding: Penalty for a refused action, or reward of an executed one: beta of the paper.
        bonus: Whether executed actions have a reward, as in the paper, in place of the penalty.
        warmup_steps: Steps that collect paths.
        steps: Gradient steps of the estimator.
        batch_paths: Paths of a gradient step, at least.
        width: Elements of the head's hidden layers.
        learning_rate: Learning rate of the copy, by AdamW.
        head_rate: Learning rate of the head, by Adam.
    """

    progress: float = 1.0
    grounding: float = 0.5
    bonus: bool = False
    warmup_steps: Annotated[int, AtLeast(1)] = 15
    steps: Annotated[int, AtLeast(1)] = 400
    batch_paths: Annotated[int, AtLeast(1)] = 64
    width: Annotated[int, AtLeast(1)] = 64
    learning_rate: Annotated[float, Above(0)] = 5e-4
    head_rate: Annotated[float, Above(0)] = 3e-3

    def build(self, setup: HookSetup) -> "bough.critics.progress_state.ProgressRewardState":
        """An estimator without data, whose progress is 0."""
        from bough.critics.progress_state import ProgressRewardState

        return ProgressRewardState(self, setup)
