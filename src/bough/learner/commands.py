"""What rank 0 sends to the other ranks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from bough.critics.critic import Critic
from bough.learner.optimizer import Optimizer
from bough.policy.policy_model import PolicyModel


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """What a rank needs to join the others, before it gets commands.

    Attributes:
        world_size: Number of ranks.
        host: The address of rank 0.
        update_s: Longest time of one exchange during an update, seconds.
        shards: Whether each rank has a part of the weights.
        threads: PyTorch's threads in the process; rank 0 keeps its own.
        files: The files of user code in rank 0, as of `loaded_files`.
        secret: What ranks exchange has a proof of it, see `signed`.
    """

    world_size: int
    host: str
    update_s: float
    shards: bool
    threads: int
    files: Mapping[str, str]
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePolicy:
    """A policy to train.

    Attributes:
        policy: Its index.
        model: Its model.
    """

    policy: int
    model: PolicyModel


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeLearner:
    """A learner to build; the arguments of `Learner`.

    Attributes:
        learner: Its index.
        policy: The index of its policy.
    """

    learner: int
    policy: int
    settings: Optimizer
    total_updates: int
    temperature: float
    critic: Critic | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A method of a learner to call.

    Attributes:
        learner: Its index.
        method: The method's name.
        arguments: Its positional arguments.
        named: Its named arguments, without a reference.
        takes_reference: Whether the call has a reference; a rank takes its own.
    """

    learner: int
    method: str
    arguments: tuple[object, ...] = ()
    named: dict[str, object] = field(default_factory=dict[str, object])
    takes_reference: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A reference to freeze.

    Attributes:
        policy: The index of its policy.
        weights: Its trainable weights.
    """

    policy: int
    weights: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of the run."""
