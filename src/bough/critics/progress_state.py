"""The state of a reward for progress: the collected paths, then a trained copy of the policy with a head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bough.critics.double_critic import mlp_head
from bough.critics.module_state import Network
from bough.critics.progress import ProgressReward
from bough.critics.replay_buffer import turns_of
from bough.hooks.hook import BatchHook, HookSetup, PolicyCopy
from bough.hooks.hook_state import LazyPart
from bough.policy.seeding import seeded
from bough.tree import Floats, Ints, Rewarded, Ternary, path_view, sum_at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnSums:
    """The turns of trees, and the sums along paths that they should have.

    Attributes:
        node: [n] int64, the last node of each turn, in its tree.
        token: [t] int32, the texts of the turns, each a context and an action, one after the other.
        end: [n] int64, ascending: the end of each text in `token`.
        turn: [s] int64, the turns of all paths, path by path, as indices into `node`.
        path: [s] int64, ascending: the path of each.
        returns: [P] float32.
    """

    node: Ints
    token: NDArray[np.int32]
    end: Ints
    turn: Ints
    path: Ints
    returns: Floats

    @property
    def texts(self) -> list[NDArray[np.int32]]:
        """The n texts."""
        return np.split(self.token, self.end[:-1]) if len(self.end) else []

    def errors(self, progress: Floats) -> Floats:
        """[P]: sum minus return of each path, for the progress [n] of the turns."""
        return sum_at(self.path, progress[self.turn], len(self.returns)) - self.returns

    @staticmethod
    def join(trees: Sequence["TurnSums"]) -> "TurnSums":
        """Those of several trees."""
        same = ("node", "token", "returns")
        joined = {name: np.concatenate([getattr(each, name) for each in trees]) for name in same}
        for name, within in (("end", "token"), ("turn", "node"), ("path", "returns")):
            before = np.cumsum([0, *(len(getattr(each, within)) for each in trees)])
            joined[name] = np.concatenate([getattr(each, name) + before[at] for at, each in enumerate(trees)])
        return TurnSums(**joined)


@dataclass(slots=True, kw_only=True)
class ProgressRewardData:
    """The state of the hook.

    Attributes:
        trees: The turns of the warm-up; empty once the estimator is trained.
        model: The copy of the policy, from the training on.
        head: Its head, from the training on.
        observed: The number of finished steps.
    """

    trees: list[TurnSums] = field(default_factory=list[TurnSums])
    model: LazyPart[PolicyCopy]
    head: LazyPart[Network[nn.Module]]
    observed: int = 0


class ProgressRewardState(BatchHook[ProgressReward]):
    """The trees of the warm-up until the estimator is trained, and the estimator from then on."""

    def __init__(self, settings: ProgressReward, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: ProgressRewardData = ProgressRewardData(
            model=LazyPart(lambda: setup.policy.copy(settings.learning_rate, 1.0)), head=LazyPart(self._new_head)
        )

    @property
    def ready(self) -> bool:
        """Whether the warm-up is over."""
        return self.data.observed >= self.settings.warmup_steps

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Collect the batch, or train the estimator once; then reward the turns of the batch.

        Raises:
            ValueError: when no path of the warm-up has a turn.
        """
        trees = [_turn_sums(each) for each in rewarded]
        new = [own for each, own in zip(rewarded, trees, strict=True) if not each.tree.replayed and len(own.node)]
        if not self.ready:
            self.data.trees += new
        elif self.data.head.part is None:
            self._train()
        progress = [self._progress(each) for each in trees]
        valid = np.concatenate([each.tree.valid[own.node] for each, own in zip(rewarded, trees, strict=True)])
        if len(valid):
            self.metrics["progress/refused"] = float((valid == Ternary.NO).mean())
        known = [(own, c) for own, c in zip(trees, progress, strict=True) if any(own is each for each in new)]
        if known:
            errors = np.concatenate([own.errors(c) for own, c in known])
            returns = np.concatenate([own.returns for own, _ in known])
            self.metrics |= {"progress/error": float(np.mean(errors**2)), "progress/variance": float(returns.var())}
        return [self._paid(each, own, c) for each, own, c in zip(rewarded, trees, progress, strict=True)]

    def observe(self) -> Mapping[str, float]:
        """Count a training step and return its metrics."""
        self.data.observed += 1
        return super().observe()

    def _new_head(self) -> Network[nn.Module]:
        with seeded(self.setup.seed):
            return Network(mlp_head(self.settings.width, self.setup.width).to(self.setup.device))

    def _train(self) -> None:
        """Train the estimator on the collected paths, which are then dropped."""
        if not self.data.trees:
            raise ValueError("ProgressReward: got no path with a turn in the warm-up; need more warmup_steps")
        head, generator = self.data.head().module, np.random.default_rng(self.setup.seed)
        adam = torch.optim.Adam(head.parameters(), lr=self.settings.head_rate)
        for _ in range(self.settings.steps):
            self.metrics["progress/fit"] = self._step(head, adam, TurnSums.join(self._sample(generator)))
        self.metrics["progress/paths"] = float(sum(len(each.returns) for each in self.data.trees))
        self.data.trees = []

    def _sample(self, generator: np.random.Generator) -> list[TurnSums]:
        """Trees with at least `batch_paths` paths together, at random; all of them if they have fewer."""
        chosen, paths = list[TurnSums](), 0
        for place in map(int, generator.permutation(len(self.data.trees))):
            if paths >= self.settings.batch_paths:
                break
            chosen.append(self.data.trees[place])
            paths += len(chosen[-1].returns)
        return chosen

    def _step(self, head: nn.Module, adam: torch.optim.Adam, some: TurnSums) -> float:
        """One gradient step on some paths; returns the mean squared error before it."""
        errors = some.errors(self._progress(some))
        # The gradient of the mean squared error by the progress of each turn, as forward passes divide paths.
        slope = 2 / len(errors) * sum_at(some.turn, errors[some.path], len(some.node))
        weight = torch.as_tensor(slope, dtype=torch.float32, device=self.setup.device)

        def part(states: Tensor, at: Tensor) -> Tensor:
            return (weight[at] * head(states.float())[:, 0]).sum()

        adam.zero_grad(set_to_none=True)
        self.data.model().step_states(some.texts, part)
        adam.step()  # pyright: ignore[reportUnknownMemberType]
        return float(np.mean(errors**2))

    @torch.no_grad()
    def _progress(self, turns: TurnSums) -> Floats:
        """[n] float64: the progress of turns; 0 before the training."""
        if self.data.head.part is None or not len(turns.node):
            return np.zeros(len(turns.node))
        states: Tensor = self.data.model().states(turns.texts).float().to(self.setup.device)
        return self.data.head().module(states)[:, 0].cpu().numpy().astype(np.float64)

    def _paid(self, rewarded: Rewarded, turns: TurnSums, progress: Floats) -> Rewarded:
        settings, valid = self.settings, rewarded.tree.valid[turns.node]
        grounded = (valid == Ternary.YES) * 1.0 if settings.bonus else (valid == Ternary.NO) * -1.0
        paid = np.zeros(rewarded.tree.nodes)
        paid[turns.node] = settings.progress * progress + settings.grounding * grounded
        return replace(rewarded, channels={"progress": paid})


def _turn_sums(rewarded: Rewarded) -> TurnSums:
    turns, view = list(turns_of(rewarded)), path_view([rewarded])
    node = np.asarray([each for each, _ in turns], dtype=np.int64)
    # Paths without a turn have no progress to learn.
    acted = np.flatnonzero(view.turns > 0)
    return TurnSums(
        node=node,
        token=np.concatenate([np.zeros(0, dtype=np.int32), *(turn.text for _, turn in turns)]).astype(np.int32),
        end=np.cumsum([len(turn.text) for _, turn in turns], dtype=np.int64),
        turn=np.searchsorted(node, view.node),
        path=np.searchsorted(acted, view.path),
        returns=view.returns[acted].astype(np.float32),
    )
