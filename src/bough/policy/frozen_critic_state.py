"""The state of an offline critic on frozen features: its data, then its networks."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bough.policy.double_critic import head_values, mlp_head, with_values
from bough.policy.frozen_critic import FrozenCritic
from bough.policy.module_state import load_weights, weights_of
from bough.policy.replay_buffer import Turn, turns_of
from bough.policy.seeding import seeded
from bough.tree import Floats, Rewarded, Tree, TruncatedBy

HiddenStates: TypeAlias = Callable[[Sequence[NDArray[np.int32]]], Tensor]
"""[n, W]: the last hidden states of n texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """n turns as features.

    Attributes:
        state: [n, W], f(s).
        action: [n, W], f(s, a).
        after: [n, W], f(s'); f(s, a) at the end of a path.
        reward: [n].
        goes_on: [n], 1 where there is a next turn, else 0.
    """

    state: Tensor
    action: Tensor
    after: Tensor
    reward: Tensor
    goes_on: Tensor

    def __getitem__(self, rows: Tensor) -> "Transitions":
        return Transitions(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})


class Heads(nn.Module):
    """Two heads for Q and two for V, on features of `inputs` elements."""

    def __init__(self, width: int, inputs: int) -> None:
        super().__init__()
        self.q = nn.ModuleList(mlp_head(width, inputs) for _ in range(2))
        self.v = nn.ModuleList(mlp_head(width, inputs) for _ in range(2))


class FrozenCriticState:
    """The data until the critic is trained, and its heads from then on."""

    def __init__(self, settings: FrozenCritic, *, device: str, seed: int) -> None:
        self.heads: Heads | None = None
        self.data: list[Transitions] = []
        """The turns of the steps so far; empty once the critic is trained."""
        self._settings, self._device, self._seed = settings, device, seed
        self._states: HiddenStates | None = None
        self._stored: Callable[[Path], list[Rewarded]] | None = None
        self._observed = 0
        self._metrics: dict[str, float] = {}

    def attach(self, access: Any) -> None:
        """See `PolicyReader`."""
        self._states, self._stored = access.reference_states, access.stored_trees

    @property
    def ready(self) -> bool:
        """Whether the data are collected."""
        return self._observed >= self._settings.warmup_steps

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Collect the batch, or train the critic once; then add values to the turns of the batch."""
        del seed
        if not self.ready:
            self.data += self._transitions(rewarded)
        elif self.heads is None:
            self.train()
        return [self._judged(each) for each in rewarded]

    def train(self) -> None:
        """Train the critic on the collected and the stored turns.

        Raises:
            ValueError: when no turn was executed.
        """
        assert self._stored is not None
        stored = [each for path in self._settings.data for each in self._stored(Path(path))]
        parts = [*self.data, *self._transitions(stored)]
        if not parts:
            raise ValueError("FrozenCritic: got no turn that was executed; need more data or warmup_steps")
        columns = {each.name: torch.cat([getattr(part, each.name) for part in parts]) for each in fields(Transitions)}
        self.heads = fit(Transitions(**columns), self._settings, self._seed, self._metrics)
        self.data = []

    def observe(self, moved: Callable[[], float]) -> Mapping[str, float]:
        """Count a training step and return its metrics."""
        del moved
        self._observed += 1
        metrics, self._metrics = self._metrics, {}
        return metrics

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The data, or the weights of the heads."""
        state: dict[str, NDArray[Any]] = {} if self.heads is None else weights_of(self.heads, "heads")
        for at, part in enumerate(self.data):
            state |= {f"data/{at}/{each.name}": getattr(part, each.name).cpu().numpy() for each in fields(part)}
        return state | {"observed": np.asarray([self._observed])}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned, bit for bit."""
        self._observed = int(state["observed"][0])
        names = [each.name for each in fields(Transitions)]
        count = len({name.split("/")[1] for name in state if name.startswith("data/")})
        held = [{name: self._tensor(state[f"data/{at}/{name}"]) for name in names} for at in range(count)]
        self.data = [Transitions(**each) for each in held]
        first = state.get("heads/q.0.0.weight")
        if first is None:
            self.heads = None
            return
        self.heads = Heads(self._settings.width, first.shape[1]).to(self._device)
        load_weights(self.heads, "heads", state)

    def _tensor(self, value: NDArray[Any]) -> Tensor:
        return torch.as_tensor(value.copy(), device=self._device)

    def _features(self, texts: Sequence[NDArray[np.int32]]) -> Tensor:
        assert self._states is not None
        return self._states(texts).detach().float().to(self._device)

    def _transitions(self, rewarded: Sequence[Rewarded]) -> list[Transitions]:
        """The turns that were executed, as one part; nothing without any."""
        turns = [turn for each in rewarded for node, turn in turns_of(each) if _executed(each.tree, node)]
        if not turns:
            return []
        state, action = self._of_turns(turns)
        columns = torch.tensor([(turn.reward, turn.goes_on) for turn in turns], dtype=torch.float32).to(self._device)
        after = self._features([turn.after for turn in turns])
        return [Transitions(state=state, action=action, after=after, reward=columns[:, 0], goes_on=columns[:, 1])]

    def _of_turns(self, turns: Sequence[Turn]) -> tuple[Tensor, Tensor]:
        """f(s) and f(s, a) of n turns, [n, W] each."""
        return self._features([turn.text[: turn.read] for turn in turns]), self._features([turn.text for turn in turns])

    @torch.no_grad()
    def _judged(self, rewarded: Rewarded) -> Rewarded:
        """The tree with values; 0 before the critic is trained."""
        turns = list(turns_of(rewarded))
        values: Floats = np.zeros((len(turns), 4), dtype=np.float32)
        if self.heads is not None and turns:
            state, action = self._of_turns([turn for _, turn in turns])
            found = torch.cat([head_values(self.heads.q, action), head_values(self.heads.v, state)], dim=1)
            values = found.cpu().numpy()
            self._metrics["frozen/q"] = float(values[:, :2].min(axis=1).mean())
        return with_values(rewarded, [node for node, _ in turns], values)


def _executed(tree: Tree, node: int) -> bool:
    """Whether an action was executed: not a candidate, or a path that the explorer gave up."""
    return tree.truncated_by[node] not in (TruncatedBy.STUB, TruncatedBy.EXPLORER)


def fit(data: Transitions, settings: FrozenCritic, seed: int, metrics: dict[str, float]) -> Heads:
    """Train new heads on n turns by TD learning, and write the losses to `metrics`."""
    with seeded(seed):
        heads = Heads(settings.width, data.state.shape[1]).to(data.state.device)
    slow = copy.deepcopy(heads).requires_grad_(False)
    adam = torch.optim.Adam(heads.parameters(), lr=settings.learning_rate)
    generator, count = np.random.default_rng(seed), len(data.reward)
    metrics["frozen/turns"] = float(count)
    for _ in range(settings.steps):
        rows = torch.as_tensor(generator.integers(count, size=min(count, settings.batch_turns)))
        some = data[rows.to(data.reward.device)]
        with torch.no_grad():
            ahead = some.goes_on[:, None] * head_values(slow.v, some.after)
            q_target, v_target = some.reward[:, None] + settings.discount * ahead, head_values(slow.q, some.action)
        q_loss = (head_values(heads.q, some.action) - q_target).square().sum(1).mean()
        v_loss = (head_values(heads.v, some.state) - v_target).square().sum(1).mean()
        adam.zero_grad(set_to_none=True)
        (q_loss + v_loss).backward()  # pyright: ignore[reportUnknownMemberType]
        adam.step()  # pyright: ignore[reportUnknownMemberType]
        with torch.no_grad():
            for far, near in zip(slow.parameters(), heads.parameters(), strict=True):
                far.lerp_(near, settings.polyak)
        metrics |= {"frozen/q_loss": q_loss.item(), "frozen/v_loss": v_loss.item()}
    return heads
