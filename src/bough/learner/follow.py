"""A rank that follows rank 0: it has the same policies and learners, and executes the commands of rank 0."""

import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from bough.learner.commands import Call, End, Freeze, JoinGroup, MakeLearner, TakePolicy
from bough.learner.learner import Diverged, Learner
from bough.learner.loss_inputs import ObjectiveContext
from bough.learner.ranks import RankGroup
from bough.learner.rendezvous import Store
from bough.policy.policy_model import PolicyModel
from bough.policy.replica import Replica


def follow(rank: int, join: JoinGroup, store: Store) -> None:
    """Join the ranks and execute the commands of rank 0 until it ends.

    Args:
        rank: Which rank this process is.
        join: What rank 0 has sent.
        store: As of `RankGroup`.

    Raises:
        RankFault: when the ranks do not meet, or one dies or does not answer.
    """
    # Ctrl-C is for rank 0, which sends the end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(join.threads)
    with _sigterm_waits():
        ranks = RankGroup(rank, join, store)
        try:
            _Follower(ranks).run()
        finally:
            ranks.leave()


@contextmanager
def _sigterm_waits() -> Generator[None]:
    """SIGTERM acts on exit: schedulers send it to all processes, and rank 0 then ends its update with the others."""
    came = list[int]()
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if came:
            signal.raise_signal(signal.SIGTERM)


@dataclass(slots=True, eq=False)
class _Follower:
    """What a rank keeps, by the indices that rank 0 gives."""

    ranks: RankGroup
    policies: dict[int, PolicyModel] = field(default_factory=dict[int, PolicyModel])
    references: dict[int, Replica] = field(default_factory=dict[int, Replica])
    learners: dict[int, Learner] = field(default_factory=dict[int, Learner])
    policy_of: dict[int, int] = field(default_factory=dict[int, int])

    def run(self) -> None:
        """Execute commands until the end."""
        while not isinstance(command := self.ranks.receive(), End):
            self._do(command)

    def _do(self, command: object) -> None:
        match command:
            case TakePolicy():
                if command.model.device.type == "cuda":
                    # What allocates on "cuda" then uses the rank's own GPU.
                    torch.cuda.set_device(command.model.device)
                self.ranks.shard(command.model)
                self.policies[command.policy] = command.model
            case MakeLearner():
                self.policy_of[command.learner] = command.policy
                self.learners[command.learner] = Learner(
                    self.policies[command.policy],
                    command.settings,
                    total_updates=command.total_updates,
                    temperature=command.temperature,
                    critic=command.critic,
                    seed=command.seed,
                    ranks=self.ranks,
                )
            case Freeze():
                policy = self.policies[command.policy]
                if policy.shards is not None:
                    policy.shards.freeze(command.weights)
                    return
                now = policy.state()
                policy.load_state(command.weights)
                self.references[command.policy] = policy.replica()
                policy.load_state(now)
            case Call():
                method = getattr(self.learners[command.learner], command.method)
                try:
                    method(*command.arguments, **self._named(command))
                except Diverged:
                    # All ranks see the same numbers, and rank 0 raises it to the run.
                    return
            case _:
                raise TypeError(f"got the command {command!r}")

    def _named(self, command: Call) -> Mapping[str, Any]:
        """The named arguments of a call, with the rank's own reference: before it is frozen, the policy itself."""
        named: dict[str, Any] = dict(command.named)
        if command.takes_reference and isinstance(context := named.get("context"), ObjectiveContext):
            policy = self.policy_of[command.learner]
            named["context"] = replace(context, reference=self.references.get(policy) or self.policies[policy])
        return named
