"""The state of a reward for progress: the paths to learn from, and the head."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bough.policy.double_critic import mlp_head
from bough.policy.module_state import load_moments, load_weights, moments_of, weights_of
from bough.policy.progress import ProgressReward
from bough.policy.replay_buffer import turns_of
from bough.policy.seeding import seeded
from bough.tree import Floats, Ints, Rewarded, Ternary, path_view, sum_at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathSums:
    """The paths of one tree: which turns each has, and what these should sum to.

    Attributes:
        node: [n] int64, the tree's turns, by their last nodes.
        feature: [n, W] float32.
        turn: [s] int64, the turns of all paths, path by path, as indices into `node`.
        path: [s] int64, ascending: the path of each.
        returns: [P] float32.
    """

    node: Ints
    feature: Floats
    turn: Ints
    path: Ints
    returns: Floats

    @property
    def sums(self) -> Floats:
        """[P, W] float64: the sum of the features along each path."""
        total = np.zeros((len(self.returns), self.feature.shape[1]))
        np.add.at(total, self.path, self.feature[self.turn])
        return total


class ProgressRewardState:
    """The newest trees as sums over paths, and the head with its optimizer."""

    def __init__(self, settings: ProgressReward, *, device: str, seed: int) -> None:
        self.data = deque[PathSums]()
        self._settings, self._device, self._seed = settings, device, seed
        self._states: Callable[[Sequence[NDArray[np.int32]]], Tensor] | None = None
        self._head: nn.Module | None = None
        self._adam: torch.optim.Adam | None = None
        self._weight: Floats | None = None
        self._observed = 0
        self._metrics: dict[str, float] = {}

    def attach(self, access: Any) -> None:
        """See `PolicyReader`."""
        self._states = access.reference_states

    @property
    def ready(self) -> bool:
        """Whether the warm-up is over."""
        return self._observed >= self._settings.warmup_steps

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Learn from the batch and the stored paths; then pay the turns of the batch."""
        trees = [self._path_sums(each) for each in rewarded]
        new = [own for each, own in zip(rewarded, trees, strict=True) if not each.tree.replayed and len(own.node)]
        self._metrics["progress/error"] = self._error(new)
        self.data.extend(new)
        while len(self.data) > 1 and self._paths - len(self.data[0].returns) >= self._settings.capacity_paths:
            self.data.popleft()
        if self.data:
            self._learn(np.random.default_rng(seed))
        self._metrics |= {"progress/fit": self._error(new), "progress/paths": float(self._paths)}
        return [self._paid(each, own) for each, own in zip(rewarded, trees, strict=True)]

    def observe(self, moved: Callable[[], float]) -> Mapping[str, float]:
        """Count a training step and return its metrics."""
        del moved
        self._observed += 1
        metrics, self._metrics = self._metrics, {}
        return metrics

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The data, the head and its moments."""
        state: dict[str, NDArray[Any]] = {"observed": np.asarray([self._observed])}
        for at, each in enumerate(self.data):
            named = {name: getattr(each, name) for name in ("node", "feature", "turn", "path", "returns")}
            state |= {f"data/{at}/{name}": value for name, value in named.items()}
        if self._weight is not None:
            state["linear"] = self._weight
        if self._head is not None and self._adam is not None:
            state |= weights_of(self._head, "head") | moments_of(self._head, self._adam)
        return state

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`, bit for bit."""
        self._observed = int(state["observed"][0])
        count = len({name.split("/")[1] for name in state if name.startswith("data/")})
        names = ("node", "feature", "turn", "path", "returns")
        self.data = deque(
            PathSums(**{name: state[f"data/{at}/{name}"].copy() for name in names}) for at in range(count)
        )
        self._weight, self._head, self._adam = None, None, None
        if "linear" in state:
            self._weight = state["linear"].copy()
        if any(name.startswith("head/") for name in state):
            head, adam = self._network(state["head/0.weight"].shape[1])
            load_weights(head, "head", state)
            load_moments(head, adam, state)

    @property
    def _paths(self) -> int:
        return sum(len(each.returns) for each in self.data)

    def _path_sums(self, rewarded: Rewarded) -> PathSums:
        assert self._states is not None
        turns, view = list(turns_of(rewarded)), path_view([rewarded])
        node = np.asarray([each for each, _ in turns], dtype=np.int64)
        feature = self._states([turn.text for _, turn in turns]).detach().float().cpu().numpy()
        # Paths without a turn have no progress to learn.
        acted = np.flatnonzero(view.turns > 0)
        return PathSums(
            node=node,
            feature=feature,
            turn=np.searchsorted(node, view.node),
            path=np.searchsorted(acted, view.path),
            returns=view.returns[acted].astype(np.float32),
        )

    def _error(self, trees: Sequence[PathSums]) -> float:
        """The mean squared error of the sums over the paths of trees; 0 without paths."""
        errors = [
            sum_at(each.path, self._progress(each)[each.turn], len(each.returns)) - each.returns for each in trees
        ]
        return float(np.mean(np.concatenate(errors) ** 2)) if errors else 0.0

    @torch.no_grad()
    def _progress(self, tree: PathSums) -> Floats:
        """[n] float64: the progress of a tree's turns."""
        if self._weight is not None:
            return tree.feature.astype(np.float64) @ self._weight
        if self._head is None or not len(tree.node):
            return np.zeros(len(tree.node))
        return self._head(self._tensor(tree.feature))[:, 0].cpu().numpy().astype(np.float64)

    def _learn(self, generator: np.random.Generator) -> None:
        if self._settings.head == "linear":
            sums = np.concatenate([each.sums for each in self.data])
            returns = np.concatenate([each.returns for each in self.data]).astype(np.float64)
            self._weight = np.linalg.lstsq(sums, returns, rcond=1e-6)[0]
            return
        if self._head is None or self._adam is None:
            self._network(self.data[0].feature.shape[1])
        for _ in range(self._settings.steps):
            self._step(self._sample(generator))

    def _sample(self, generator: np.random.Generator) -> list[PathSums]:
        """Trees with at least `batch_paths` paths together, at random; all of them if they have fewer."""
        chosen, paths = list[PathSums](), 0
        for place in generator.permutation(len(self.data)).tolist():
            if paths >= self._settings.batch_paths:
                break
            chosen.append(self.data[place])
            paths += len(chosen[-1].returns)
        return chosen

    def _step(self, trees: Sequence[PathSums]) -> None:
        """One gradient step on the paths of some trees."""
        assert self._head is not None
        assert self._adam is not None
        turns = np.cumsum([0, *(len(each.node) for each in trees)])
        paths = np.cumsum([0, *(len(each.returns) for each in trees)])
        turn = np.concatenate([each.turn + turns[at] for at, each in enumerate(trees)])
        path = np.concatenate([each.path + paths[at] for at, each in enumerate(trees)])
        progress = self._head(self._tensor(np.concatenate([each.feature for each in trees])))[:, 0]
        target = self._tensor(np.concatenate([each.returns for each in trees]))
        summed = torch.zeros_like(target).index_add(0, self._tensor(path), progress[self._tensor(turn)])
        self._adam.zero_grad(set_to_none=True)
        (summed - target).square().mean().backward()  # pyright: ignore[reportUnknownMemberType]
        self._adam.step()  # pyright: ignore[reportUnknownMemberType]

    def _network(self, inputs: int) -> tuple[nn.Module, torch.optim.Adam]:
        """A new head for features of `inputs` elements, and its optimizer."""
        with seeded(self._seed):
            self._head = mlp_head(self._settings.width, inputs).to(self._device)
        self._adam = torch.optim.Adam(self._head.parameters(), lr=self._settings.learning_rate)
        return self._head, self._adam

    def _tensor(self, value: NDArray[Any]) -> Tensor:
        return torch.as_tensor(value, device=self._device)

    def _paid(self, rewarded: Rewarded, tree: PathSums) -> Rewarded:
        paid = np.zeros(rewarded.tree.nodes)
        executed = (rewarded.tree.valid[tree.node] == Ternary.YES).astype(np.float64)
        paid[tree.node] = self._settings.progress * self._progress(tree) + self._settings.grounding * executed
        if len(executed):
            self._metrics["progress/grounded"] = float(executed.mean())
        return replace(rewarded, channels={"progress": paid})
