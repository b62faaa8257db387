"""Settings of a reward model that is trained on a run's own trees, and scores its turns."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from bough.critics.reward_model.settings import RewardModel
from bough.hooks.hook import HookSetup
from bough.needs import Need, estimate
from bough.piece import AtLeast, piece

if TYPE_CHECKING:
    import bough.critics.reward_model.hook_state


@piece
class FrozenRewardModel:
    """A reward model beside the policy; its score of each turn is the estimate "step_score".

    It learns from the trees of the first `warmup_steps` steps, in which the policy is not updated, once; or it is
    loaded from `folder`. Then it does not change. Where these trees have no labels to learn from, such as without any
    success, the policy is updated with a score of 0, and later trees are added until they have. The estimate is the
    score itself, at the tokens of a turn's last node; 0 before the model is trained. `ProRag` adds it to the advantage
    of the outcome. `BeforeUpdates` grows other trees in the first steps, such as those of a search.

    Metrics, at the step in which the model is trained, on the held-out tasks of its data: `reward_model/tasks`,
    `reward_model/steps`, `reward_model/pairs`, `reward_model/calibration_error`, `reward_model/pair_accuracy`, and
    `reward_model/auc` for the mean of a path's steps. `reward_model/waiting` is 1 in steps whose trees had no labels to
    learn from. At every step with a trained model: `reward_model/score`, the mean over the turns of the batch.

    Attributes:
        model: Settings of the model.
        warmup_steps: Steps that only collect trees; 0 needs a folder.
        folder: A folder that `bough train-reward` wrote; "" to train on the run's own trees.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({estimate("step_score")})

    model: RewardModel = RewardModel(labels="pairs")
    warmup_steps: Annotated[int, AtLeast(0)] = 4
    folder: str = ""

    def __post_init__(self) -> None:
        if bool(self.folder) != (self.warmup_steps == 0):
            raise ValueError(
                f"FrozenRewardModel: got warmup_steps={self.warmup_steps} and folder={self.folder!r}; need steps that "
                "collect trees, or the folder of a trained model and warmup_steps=0"
            )

    def build(self, setup: HookSetup) -> "bough.critics.reward_model.hook_state.FrozenRewardModelState":
        """A model without data, or the one of the folder.

        Raises:
            OSError: when there is no reward model in the folder.
            ValueError: when its tokenizer is another than the policy's.
        """
        from bough.critics.reward_model.hook_state import FrozenRewardModelState

        return FrozenRewardModelState(self, setup)
