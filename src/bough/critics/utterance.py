"""Settings of an off-policy critic of whole turns, with its own model."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from bough.hooks.hook import HookSetup
from bough.needs import Need, estimate
from bough.piece import Above, AtLeast, Between, piece

if TYPE_CHECKING:
    import bough.critics.double_critic


@piece
class UtteranceCritic:
    """ArCHer's critic (arXiv 2402.19446): Q and V of whole turns, off-policy, from their tokens.

    A small causal transformer reads the context of a turn, s, and its action, a. Two heads each give V(s) at the last
    token of s and Q(s, a) at the last token of a. Targets come from a slow copy; head i learns from its head i:

        Q_i(s, a) -> r + discount * (1 - d) * V'_i(s')      turns of this and earlier steps, from a buffer
        V_i(s)    -> Q'_i(s, a)                             turns of this step, whose a the current policy sampled
        copy      <- polyak * critic + (1 - polyak) * copy  after every gradient step

    r is the reward from this action to the next. d is 1 where the environment ended the episode and 0 where a budget
    cut it short. The tree has no state after such a cut. There the target uses V' of the text up to the action's end.
    V learns the value of such texts from turns with a next turn:

        V_i(s a) -> V'_i(s')

    Before each credit the turns of the batch go into the buffer, and the critic takes `steps` gradient steps. The
    estimates "q1", "q2", "v1", "v2" are at every token of a turn; `Archer` computes advantages from them.

    In the paper and its code, V and the policy learn at states from the buffer, with a newly sampled action for each.
    Here they learn at the states of the current batch, whose actions are new. The code takes d = 1 at cuts too, and
    encodes s and a separately with a pretrained RoBERTa.

    Metrics: `utterance/q_loss` and `utterance/v_loss`, means over the gradient steps of squared errors, summed over the
    two heads; `utterance/q`, `utterance/v`, means of the lesser head over the batch; `utterance/turns` in the buffer.

    Attributes:
        layers: >= 1.
        width: Elements of a hidden state, a multiple of 2 * `heads`.
        heads: Attention heads.
        context_tokens: Most tokens of a text; longer texts keep their last tokens.
        discount: Per turn, in [0, 1] (0.9).
        polyak: Rate of the copy's update, in (0, 1] (0.1).
        learning_rate: Adam's learning rate.
        clip_norm: Largest norm of the gradient.
        steps: Gradient steps before each credit (50 in the code).
        batch_turns: Turns from the buffer, and turns of this step, in each (256 in the code).
        capacity_turns: Most turns in the buffer; the oldest are dropped.
        warmup_steps: Steps of training in which only the critic is trained (20 in the code).
    """

    gives: ClassVar[frozenset[Need]] = frozenset(map(estimate, ("q1", "q2", "v1", "v2")))

    layers: Annotated[int, AtLeast(1)] = 1
    width: Annotated[int, AtLeast(1)] = 64
    heads: Annotated[int, AtLeast(1)] = 4
    context_tokens: Annotated[int, AtLeast(2)] = 1024
    discount: Annotated[float, Between(0, 1)] = 0.9
    polyak: Annotated[float, Between(0, 1, above=True)] = 0.1
    learning_rate: Annotated[float, Above(0)] = 1e-3
    clip_norm: Annotated[float, Above(0)] = 1.0
    steps: Annotated[int, AtLeast(1)] = 50
    batch_turns: Annotated[int, AtLeast(1)] = 256
    capacity_turns: Annotated[int, AtLeast(1)] = 100_000
    warmup_steps: Annotated[int, AtLeast(0)] = 20

    def __post_init__(self) -> None:
        if self.width % (2 * self.heads):
            raise ValueError(
                f"UtteranceCritic.width: got {self.width}; need a multiple of {2 * self.heads}, twice the heads"
            )

    def build(self, setup: HookSetup) -> "bough.critics.double_critic.UtteranceCriticState":
        """An untrained critic, whose values are all 0."""
        from bough.critics.double_critic import UtteranceCriticState

        return UtteranceCriticState(self, setup)
