"""What an objective reads: columns of tokens, paths and values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from jaxtyping import Bool, Float, Int

from bough.lazy import Tensor, torch
from bough.objective.normalizer import Normalizer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathIds:
    """The path and turn of each token in the path view. Ids ascend: the tokens of a path, and of a turn, lie together.

    Attributes:
        path: [M] int64, 0 to P - 1.
        turn: [M] int64, number of the turn among all turns of all paths.
        task: [P] int64: paths of one task may be compared.
        context_id: [turns] int64: turns with the same number have exactly the same context.
        path_of_turn: [turns] int64, the path of each turn.
        response_id: [turns] int64; turns with the same number have the same tokens after exactly the same context:
            one turn shared by paths, or one sampled twice. None without such turns.
        visits: [turns], visit count of the state after each turn in a search; 0 without a count. None without
            a search.
        end: [P] int64: 1 for a path that ended with success, -1 without, 0 where the explorer stopped. None when
            unknown.
    """

    path: Int[Tensor, " M"]
    turn: Int[Tensor, " M"]
    task: Int[Tensor, " P"]
    context_id: Int[Tensor, " K"]
    path_of_turn: Int[Tensor, " K"]
    response_id: Int[Tensor, " K"] | None = None
    visits: Float[Tensor, " K"] | None = None
    end: Int[Tensor, " P"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueInputs:
    """Value of the state before each token by one head of a critic, and its regression target.

    Attributes:
        value: [M]; carries a gradient.
        old: [M], the value before the update.
        target: [M], the regression target; nan where there is none.
        scale: The sum of `loss_weight` over the sampled tokens of the optimizer batch, divided by that over those with
            a target: `loss_weight * scale` are the weights of a mean over the latter.
    """

    value: Float[Tensor, " M"]
    old: Float[Tensor, " M"]
    target: Float[Tensor, " M"]
    scale: float = 1.0

    def select(self, tokens: Bool[Tensor, " M"] | Int[Tensor, " m"]) -> "ValueInputs":
        """Selects tokens by a mask or by index."""
        return replace(self, value=self.value[tokens], old=self.old[tokens], target=self.target[tokens])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossInputs:
    """M trained tokens: of one micro-batch, each once; or of whole paths, each once for every path through it.

    The second is the path view. An objective that looks at more than one token at a time asks for it (need `PATHS`),
    and then sees all paths of an optimizer step at once, whatever the micro-batches.

    Attributes:
        logprob: [M], of the policy being trained, at the sampling temperature; carries a gradient.
        rollout_logprob: [M], log-probability under the policy that sampled the token.
        positive: [M] >= 0, mean positive advantage over the paths through the token (`token_advantages`).
        negative: [M] <= 0, mean negative advantage over the paths through the token.
        loss_weight: [M], the weight of each token in the mean over the whole optimizer batch, not this micro-batch; so
            losses of micro-batches add up.
        metric_scale: One over the sum of `loss_weight` of the sampled tokens of the whole optimizer batch. That sum is
            below 1 where paths without a loss count in the mean, and of any size with a constant divisor.
        entropy: [M] nats, of the distribution of `logprob`; carries a gradient. Need `ENTROPY`.
        reference: [M], log-probability under the frozen reference policy. Need `REFERENCE`.
        old: [M], log-probability that the learner itself computes with the weights before the update; differs from
            `rollout_logprob` where the engine computes differently, or sampled with older weights. Need `OLD_LOGPROBS`.
        mean_turn_entropy: [M] nats, mean entropy of earlier steps at the same turn; nan in the first step. Need
            `MEAN_TURN_ENTROPY`.
        values: By the name of a head. Need `CRITIC`.
        expert: [M] bool, tokens that a demonstration wrote; they have no rollout log-probability, an advantage of 1,
            and weights of their own that sum to 1. None when there are none. Need `DEMONSTRATIONS`.
        path_ids: The path view's ids. Need `PATHS`.
        progress: Fraction of the training that is done, in [0, 1].
        clipped_norm: Norm of the gradient, with respect to the policy's weights, that the bounds of a clipped loss
            remove from the whole optimizer batch. Need `CLIPPED_NORM`.
        hidden: [M, W], the trained policy's last hidden state before each token; without a gradient. Need
            `HIDDEN_STATES`.
        turn_number: The number on its path, from 0, of the turns that this optimizer step trains; None for all turns.
            Need `TURN_BY_TURN`.
    """

    logprob: Float[Tensor, " M"]
    rollout_logprob: Float[Tensor, " M"]
    positive: Float[Tensor, " M"]
    negative: Float[Tensor, " M"]
    loss_weight: Float[Tensor, " M"]
    metric_scale: float = 1.0
    entropy: Float[Tensor, " M"] | None = None
    reference: Float[Tensor, " M"] | None = None
    old: Float[Tensor, " M"] | None = None
    mean_turn_entropy: Float[Tensor, " M"] | None = None
    values: Mapping[str, ValueInputs] = field(default_factory=dict[str, ValueInputs])
    expert: Bool[Tensor, " M"] | None = None
    path_ids: PathIds | None = None
    progress: float = 0.0
    clipped_norm: float | None = None
    turn_number: int | None = None
    hidden: Float[Tensor, "M W"] | None = None

    @classmethod
    def from_matrices(
        cls,
        *,
        logprob: Float[Tensor, "N T"],
        advantage: Float[Tensor, "N T"],
        mask: Bool[Tensor, "N T"],
        rollout_logprob: Float[Tensor, "N T"] | None = None,
        old: Float[Tensor, "N T"] | None = None,
        reference: Float[Tensor, "N T"] | None = None,
        entropy: Float[Tensor, "N T"] | None = None,
        task: Int[Tensor, " N"] | None = None,
        normalizer: Normalizer | None = None,
    ) -> "LossInputs":
        """Returns inputs from padded matrices, one row for each path of one turn, the layout of other libraries.

        Args:
            logprob: [N, T], of the policy being trained.
            advantage: [N, T]; of any value where `mask` is False.
            mask: [N, T], True at the trained tokens; at least one in each row.
            rollout_logprob: [N, T], of the sampling policy; `logprob` without its gradient by default.
            old: [N, T], log-probabilities before the update.
            reference: [N, T], log-probabilities under the reference policy.
            entropy: [N, T] nats.
            task: [N], number of each row's task; None when all rows are of one.
            normalizer: Computes the weights of the tokens; None for the mean over tokens.

        Raises:
            ValueError: when an argument has another shape or dtype, or a row has no trained token.
        """
        matrices = {"advantage": advantage, "mask": mask, "rollout_logprob": rollout_logprob, "old": old}
        matrices |= {"reference": reference, "entropy": entropy}
        _check_matrices(logprob, matrices, task)
        length = mask.sum(dim=1)
        if bool((length == 0).any()):
            raise ValueError(
                f"LossInputs.from_matrices: got no trained token in row {int((length == 0).nonzero()[0, 0])}; need at "
                "least one in each row: leave such rows out"
            )
        row = torch.arange(len(mask), device=mask.device)
        path = row.repeat_interleave(length)
        ones, group = torch.ones_like(path), torch.zeros_like(row) if task is None else task
        rollout = logprob.detach() if rollout_logprob is None else rollout_logprob
        return cls(
            logprob=logprob[mask],
            rollout_logprob=rollout[mask],
            positive=advantage[mask].clamp(min=0),
            negative=advantage[mask].clamp(max=0),
            loss_weight=(normalizer or Normalizer())(ones, 1.0 / length[path].double(), ones > 0),
            path_ids=PathIds(path=path, turn=path, task=group, context_id=group, path_of_turn=row),
            old=None if old is None else old[mask],
            reference=None if reference is None else reference[mask],
            entropy=None if entropy is None else entropy[mask],
        )

    def select(self, tokens: Bool[Tensor, " M"] | Int[Tensor, " m"]) -> "LossInputs":
        """Selects tokens by a mask or by index; without path ids. Weights stay those of the optimizer batch."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        # Every tensor field has one entry for each token.
        some = {name: value[tokens] for name, value in columns.items() if isinstance(value, Tensor)}
        values = {name: each.select(tokens) for name, each in self.values.items()}
        return replace(self, **some, values=values, path_ids=None)

    @property
    def carries_gradients(self) -> bool:
        """Whether every output of the model here carries a gradient."""
        outputs = (self.logprob, self.entropy, *(each.value for each in self.values.values()))
        return all(each is None or each.requires_grad for each in outputs)

    @property
    def advantage(self) -> Float[Tensor, " M"]:
        """[M]: positive plus negative advantage; the advantage itself in the path view."""
        return self.positive + self.negative

    @property
    def metric_weight(self) -> Float[Tensor, " M"]:
        """[M]: the weights of a mean over the sampled tokens of the optimizer batch, for metrics."""
        return self.loss_weight * self.metric_scale


def _check_matrices(logprob: object, matrices: Mapping[str, object], task: object) -> None:
    """Check the shapes and dtypes of the arguments of `LossInputs.from_matrices`.

    Raises:
        ValueError: names the first argument that does not fit.
    """
    shape = tuple(logprob.shape) if isinstance(logprob, Tensor) and logprob.ndim == 2 else None
    wanted = "[N, T]" if shape is None else f"{list(shape)}, the shape of logprob"
    for name, matrix in {"logprob": logprob, **matrices}.items():
        if matrix is not None and not (shape and _fits(matrix, shape, "bool" if name == "mask" else "float")):
            raise ValueError(
                f"LossInputs.from_matrices: {name}: got {_described(matrix)}; need a "
                f"{'bool' if name == 'mask' else 'float'} tensor {wanted}"
            )
    if task is not None and not (shape and _fits(task, shape[:1], "int64")):
        rows = shape[0] if shape else "N"
        raise ValueError(f"LossInputs.from_matrices: task: got {_described(task)}; need an int64 tensor [{rows}]")


def _fits(value: object, shape: tuple[int, ...], kind: str) -> bool:
    """Whether a value is a tensor of a shape and a kind: "float" is any floating point, others are a dtype."""
    if not isinstance(value, Tensor) or tuple(value.shape) != shape:
        return False
    return value.is_floating_point() if kind == "float" else value.dtype == getattr(torch, kind)


def _described(value: object) -> str:
    """The dtype and shape of a tensor; the type of anything else."""
    if not isinstance(value, Tensor):
        return f"{type(value).__module__}.{type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
