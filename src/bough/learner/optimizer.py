"""Settings of the optimizer and of the split of a batch into optimizer steps."""

import math
from typing import Annotated, Literal

from bough.needs import ON_POLICY, PATHS, TURN_BY_TURN, Need
from bough.piece import Above, AtLeast, Between, piece
from bough.varying import FloatOrSchedule


@piece
class Optimizer:
    """AdamW (arXiv 1711.05101), or a normalised gradient, and the split of a batch into optimizer steps.

    Attributes:
        learning_rate: After the warm-up of the schedule. With "igt" and "harpg" the length of a step in the space of
            all weights.
        momentum: The update rule: AdamW, or N-PG-IGT (arXiv 2302.01734; see `bough.learner.igt`), a step of
            fixed length along a mean of gradients at extrapolated points. With "igt" the policy's weights are the
            extrapolated point, which is sampled from, saved and evaluated. Take one step per batch (`epochs=1`,
            `minibatches=1`), so that gradients are computed where the batch was sampled. "harpg" is that paper's
            N-HARPG (see `bough.learner.harpg`): every other batch, sampled between two iterates, gives a Hessian-vector
            product that corrects the mean; needs `epochs=1` and `minibatches=1`. The warm-up and the heads of a critic
            always use AdamW.
        igt_weight: Minimum weight of the newest gradient in the mean of "igt" and "harpg", in (0, 1].
        betas: Decay of the two moments.
        epsilon: Added to the root of the second moment.
        weight_decay: Decoupled; applies to matrices, not to biases and norms.
        schedule: Factor on the learning rate after its warm-up: a number, or a schedule over the steps of the run, such
            as `LinearSchedule(start=1, end=0)`. A step whose batch has no advantage has no update, and counts too.
        warmup_steps: Optimizer steps over which the learning rate rises. Of w steps the first has 1 / (w + 1) of it;
            transformers begins at 0, with which the first update changes nothing.
        clip_norm: Maximum norm of the gradient; larger ones are scaled down. The policy's is not clipped with "harpg".
        epochs: Number of passes over each batch.
        minibatches: Optimizer steps per pass over a batch.
        micro_tokens: Maximum tokens of one forward pass; has no influence on the gradient.
        memory_gib: Memory limit of a run on the policy's device, beside the program itself. It sets `micro_tokens` to
            the largest value within the limit. Without `engine.cache_tokens` the engine's cache gets at most half of
            what the smallest chunk leaves. A run that needs more is refused. None sets no limit.
        recompute: Whether the backward pass recomputes activations: a third more arithmetic, for a small part of the
            memory.
        cpu_workers: Threads that share a batch on a CPU: each computes a share of it, with its own gradients and its
            part of the run's `threads`. 0 leaves the choice to the run (`chosen_workers`): one for each of `threads`,
            if the policy is small. Without a run 0 is 1.
    """

    learning_rate: Annotated[float, Above(0, "a finite number above 0")] = 1e-4
    momentum: Literal["adam", "igt", "harpg"] = "adam"
    igt_weight: Annotated[float, Between(0, 1, above=True)] = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: Annotated[float, Above(0, "a finite number above 0")] = 1e-8
    weight_decay: Annotated[float, AtLeast(0)] = 0.0
    schedule: Annotated[FloatOrSchedule, AtLeast(0)] = 1.0
    warmup_steps: Annotated[int, AtLeast(0)] = 0
    clip_norm: Annotated[float, Above(0, "a finite number above 0")] = 1.0
    epochs: Annotated[int, AtLeast(1)] = 1
    minibatches: Annotated[int, AtLeast(1)] = 1
    micro_tokens: Annotated[int, AtLeast(1)] = 16384
    memory_gib: Annotated[float | None, Above(0)] = None
    recompute: bool = False
    cpu_workers: Annotated[int, AtLeast(0)] = 0

    @property
    def needs(self) -> frozenset[Need]:
        """For gradients at the sampling weights, samples of the current weights; for Hessian-vector products, paths."""
        if self.momentum == "adam":
            return frozenset()
        sampled = ON_POLICY.or_else("optimizer.momentum='adam'")
        return frozenset({sampled, PATHS} if self.momentum == "harpg" else {sampled})

    @property
    def gives(self) -> frozenset[Need]:
        """Steps for one turn at a time, which need no gradients at the sampling weights."""
        return frozenset({TURN_BY_TURN} if self.momentum == "adam" else ())

    @property
    def policy_clip_norm(self) -> float:
        """`clip_norm`, or inf with "harpg": clipping breaks its sum of gradient changes."""
        return math.inf if self.momentum == "harpg" else self.clip_norm

    def __post_init__(self) -> None:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"Optimizer.betas: got {self.betas}; need two numbers from 0 to below 1")
        named = f"with momentum={self.momentum!r}"
        if self.momentum != "adam" and self.weight_decay:
            raise ValueError(f"Optimizer.weight_decay: got {self.weight_decay} {named}; need 0")
        if self.momentum == "harpg" and (self.epochs, self.minibatches) != (1, 1):
            raise ValueError(
                f"Optimizer: got epochs={self.epochs}, minibatches={self.minibatches} {named}, where each step "
                "needs a batch sampled by the present weights; need epochs=1, minibatches=1"
            )


def check_sharding(settings: Optimizer) -> None:
    """Refuse settings that sharded weights do not support.

    Raises:
        ValueError: names the setting and the value it needs.
    """
    needed = {"momentum": ("adam",), "cpu_workers": (1, 0), "memory_gib": (None,)}
    for name, allowed in needed.items():
        if (got := getattr(settings, name)) not in allowed:
            raise ValueError(f"optimizer.{name}: got {got!r} with execution.shard=true; need {allowed[0]!r}")
