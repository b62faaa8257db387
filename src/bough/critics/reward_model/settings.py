"""Settings of a learned reward."""

from typing import Annotated, Literal, TypeAlias

from bough.piece import Above, AtLeast, Between, piece

Labels: TypeAlias = Literal["outcome", "soft", "hard", "pairs"]
"""What a reward model learns: see `RewardModel`."""

Estimate: TypeAlias = Literal["share", "score", "value"]
"""The label of a step: see `RewardModel`."""


@piece
class RewardModel:
    """A learned reward: a scalar head on a transformer of its own, trained on trees of finished runs and searches.

    A step is a turn: its text is the context and the action. The score s is the head's value at the last token. Labels:

        outcome   whether a path succeeds, at its last step: an outcome verifier (arXiv 2110.14168)
        soft      the share of successful completions through a step: a process reward model (Math-Shepherd, 2312.08935)
        hard      whether one of them succeeds
        pairs     siblings, steps from one context, whose labels differ by `gap` or more: Tree-PLV (2407.00390)

    The loss of the first three is the binary cross-entropy of sigmoid(s), that of pairs -log sigmoid(s+ - s-). Scores 1
    over 0 and .5 over 1 are two pairs of loss .313262 and .974077. With "soft" and "hard" the prompt is a step, too, so
    the model has a value of the first state.

    The label of a step is the "share" of its completions; or from a search its own "score", such as the share of its
    look-ahead completions alone, or its backed-up "value". Steps of equal text are one step, also in different trees of
    a task. A path that the search abandoned, or that a budget of its tree cut, is no completion.

    Attributes:
        labels: The labels.
        estimate: The label of a step with "soft", "hard" or "pairs"; in [0, 1] for "soft".
        gap: Least difference of the labels of a pair, > 0.
        path: A folder of a model, or of a run, whose copy is trained; None for a small transformer.
        layers: Of the small transformer.
        width: Elements of a hidden state, a multiple of 2 * `heads`.
        heads: Attention heads.
        context_tokens: Most tokens of a text; longer texts keep their last tokens.
        learning_rate: Adam's, falling to 0 along a line.
        epochs: Passes over the training steps or pairs.
        batch: Paths, or pairs, of a gradient step.
        clip_norm: Largest norm of the gradient.
        held_out: Share of the tasks that are kept for the calibration report, in (0, 1).
        seed: Seed of the weights, the split and the order.
    """

    labels: Labels = "soft"
    estimate: Estimate = "share"
    gap: Annotated[float, Above(0)] = 0.25
    path: str | None = None
    layers: Annotated[int, AtLeast(1)] = 2
    width: Annotated[int, AtLeast(1)] = 64
    heads: Annotated[int, AtLeast(1)] = 4
    context_tokens: Annotated[int, AtLeast(2)] = 1024
    learning_rate: Annotated[float, Above(0)] = 1e-3
    epochs: Annotated[int, AtLeast(1)] = 4
    batch: Annotated[int, AtLeast(1)] = 32
    clip_norm: Annotated[float, Above(0)] = 1.0
    held_out: Annotated[float, Between(0, 1, "a share above 0 and below 1", above=True, below=True)] = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width % (2 * self.heads):
            raise ValueError(
                f"RewardModel.width: got {self.width}; need a multiple of {2 * self.heads}, twice the heads"
            )
        if self.labels == "outcome" and self.estimate != "share":
            raise ValueError(
                f"RewardModel.estimate: got {self.estimate!r} with labels='outcome'; need 'share', or labels of steps"
            )

    @property
    def ranks(self) -> bool:
        """Whether the model learns from pairs."""
        return self.labels == "pairs"
