"""Settings of a reward for progress: a small network whose outputs sum to the return of each path."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from bough.checks import check_at_least
from bough.tree.needs import REFERENCE, Need

if TYPE_CHECKING:
    import bough.policy.progress_state


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReward:
    """SPA-RL's progress estimator (arXiv 2505.20732): it divides the return of a path among its turns.

    With f the last hidden state of the reference policy after a turn's action, a head gives the turn's progress
    c = head(f). It learns from the last `capacity_paths` paths that the sums along paths are the returns:

        mean over paths p of (sum over the turns t of p of c_t - R(p))^2

    A turn that paths share has one c. In a tree with the first turns a and b, whose second turns a1, a2, b1, b2 end
    with 1, 0, 0, 0, and with one unknown for each turn, the solution of least norm is a 1/3, a1 2/3, a2 -1/3, others 0.

    Each turn is paid in the channel "progress", the last one included, in place of the other channels:

        progress * c_t + grounding * (1 if the environment executed the action, else 0)

    `Tree.valid` is whether it was executed. In the first `warmup_steps` steps the estimator learns and the policy is
    not updated. The return that it learns is that of all channels before this hook.

    The paper trains a multilayer perceptron on a copy of the policy, once, on paths of the policy before reinforcement.
    Here the features do not change, and the head goes on learning from the paths of each step. The released trainer
    multiplies a turn's reward by the number of turns after it, so that the last turn gets nothing.

    Metrics: `progress/paths` of the data; `progress/error`, the mean squared error of the sums on the batch before the
    head has learned from it; `progress/fit`, the same after it; `progress/grounded`, the share of executed actions.

    Attributes:
        progress: Weight of the progress: alpha of the paper.
        grounding: Reward of an executed action: beta of the paper.
        head: "mlp", with two hidden layers, by Adam; or "linear", without a bias, the solution of least norm.
        warmup_steps: Steps in which only the head learns.
        steps: Gradient steps of the "mlp" before each credit.
        batch_paths: Paths of a gradient step, at least.
        capacity_paths: Paths to learn from, at least; the oldest trees are dropped.
        width: Elements of the hidden layers.
        learning_rate: Adam's.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({REFERENCE})

    progress: float = 1.0
    grounding: float = 0.5
    head: Literal["mlp", "linear"] = "mlp"
    warmup_steps: int = 5
    steps: int = 100
    batch_paths: int = 64
    capacity_paths: int = 4096
    width: int = 64
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        check_at_least(self, warmup_steps=0, steps=1, batch_paths=1, capacity_paths=1, width=1)
        if not (math.isfinite(self.progress) and math.isfinite(self.grounding)):
            raise ValueError(
                f"ProgressReward: got progress={self.progress}, grounding={self.grounding}; need finite numbers"
            )
        if not self.learning_rate > 0:
            raise ValueError(f"ProgressReward.learning_rate: got {self.learning_rate}; need a number above 0")

    def build(self, *, vocab_tokens: int, device: str, seed: int) -> "bough.policy.progress_state.ProgressRewardState":
        """An estimator without data, whose progress is 0."""
        from bough.policy.progress_state import ProgressRewardState

        del vocab_tokens
        return ProgressRewardState(self, device=device, seed=seed)
