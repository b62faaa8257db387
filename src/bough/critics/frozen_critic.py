"""Settings of an offline critic of whole turns on frozen features of the policy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from bough.hooks.hook import HookSetup
from bough.needs import REFERENCE, Need, estimate
from bough.piece import Above, AtLeast, Between, piece

if TYPE_CHECKING:
    import bough.critics.frozen_critic_state


@piece
class FrozenCritic:
    """Digi-Q's critic (arXiv 2502.15760): Q and V of turns by offline TD learning, on frozen features.

    f(s) is the last hidden state of the reference policy after a context. After an action this state hardly depends on
    the action, since no loss trains it. So a copy of the policy is tuned first: g(s, a), its last hidden state after an
    action, predicts by a logistic regression whether the action changes the state (`State.key`), as the paper's model
    learns whether an action changes the screen. Then all features are frozen. Two small networks each learn Q from
    f(s) and g(s, a), and V from f(s); the targets of head i come from a slow copy of it:

        Q_i(s, a) -> r + discount * V'_i(s')        V' is 0 after the end of a path
        V_i(s)    -> Q'_i(s, a)
        copy      <- polyak * critic + (1 - polyak) * copy

    The data are the trees of the files `data` and of the first `warmup_steps` steps, in which the policy is not
    updated. Then the critic is trained on them, once, and does not change again. A path that a budget cut off counts as
    ended, as in the released code; actions that were not executed are left out. The estimates "q1", "q2", "v1", "v2"
    are at every token of a turn, for `BestCandidate` and `Archer`.

    A target takes the action of the data in the next state; the paper samples one. The released code has features of
    the state beside those of the tuned model too.

    Metrics: `frozen/turns` of the data; `frozen/change_loss`, nats, of the last step of the tuning; `frozen/q_loss` and
    `frozen/v_loss`, mean squared errors of the last gradient step; `frozen/q`, the mean over the batch of the lesser
    Q; `frozen/q_spread`, the mean over states with several actions of its standard deviation: near 0 the critic does
    not tell actions apart.

    Attributes:
        data: Files of trees, or folders of them such as `runs/NAME/trees`, whose texts are of the same tokenizer.
        warmup_steps: Steps that only collect data; 0 needs `data`.
        tuning_steps: Gradient steps of the copy; with 0 g(s, a) is the reference policy's.
        tuning_turns: Turns of such a step.
        tuning_rate: Its learning rate.
        steps: Gradient steps of the critic.
        batch_turns: Turns of a gradient step.
        width: Elements of the networks' hidden layers.
        discount: Per turn, in [0, 1].
        polyak: Rate of the copy's update, in (0, 1].
        learning_rate: Adam's learning rate.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({REFERENCE})
    gives: ClassVar[frozenset[Need]] = frozenset(map(estimate, ("q1", "q2", "v1", "v2")))

    data: Sequence[str] = ()
    warmup_steps: Annotated[int, AtLeast(0)] = 10
    tuning_steps: Annotated[int, AtLeast(0)] = 150
    tuning_turns: Annotated[int, AtLeast(1)] = 64
    tuning_rate: Annotated[float, Above(0)] = 5e-4
    steps: Annotated[int, AtLeast(1)] = 1000
    batch_turns: Annotated[int, AtLeast(1)] = 128
    width: Annotated[int, AtLeast(1)] = 64
    discount: Annotated[float, Between(0, 1)] = 0.9
    polyak: Annotated[float, Between(0, 1, above=True)] = 0.05
    learning_rate: Annotated[float, Above(0)] = 1e-3

    def __post_init__(self) -> None:
        if not self.warmup_steps and not self.data:
            raise ValueError("FrozenCritic: got warmup_steps=0 and no data; need files of trees, or steps that collect")

    def build(self, setup: HookSetup) -> "bough.critics.frozen_critic_state.FrozenCriticState":
        """A critic without data."""
        from bough.critics.frozen_critic_state import FrozenCriticState

        return FrozenCriticState(self, setup)
