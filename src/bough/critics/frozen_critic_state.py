"""The state of an offline critic on frozen features: its data, then its networks."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bough.critics.double_critic import head_values, mlp_head, with_values
from bough.critics.frozen_critic import FrozenCritic
from bough.critics.module_state import Network
from bough.critics.replay_buffer import ReplayBuffer, Turn, turns_of
from bough.hooks.hook import BatchHook, HookSetup, PolicyCopy
from bough.hooks.hook_state import LazyPart
from bough.policy.seeding import seeded
from bough.tree import Floats, Rewarded, TruncatedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """n turns as features.

    Attributes:
        state: [n, W], f(s).
        action: [n, 2 W], f(s) and g(s, a).
        after: [n, W], f(s'); of any value at the end of a path.
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
    """Two heads for V on features of `inputs` elements, and two for Q on twice as many."""

    def __init__(self, width: int, inputs: int) -> None:
        super().__init__()
        self.q = nn.ModuleList(mlp_head(width, 2 * inputs) for _ in range(2))
        self.v = nn.ModuleList(mlp_head(width, inputs) for _ in range(2))


@dataclass(slots=True, kw_only=True)
class FrozenCriticData:
    """The state of the hook.

    Attributes:
        buffer: The turns of the steps so far; empty once the critic is trained.
        heads: The heads, from the training on.
        tuned: The tuned copy of the policy, from the training on.
        observed: The number of finished steps.
    """

    buffer: ReplayBuffer = field(default_factory=ReplayBuffer)
    heads: LazyPart[Network[Heads]]
    tuned: LazyPart[PolicyCopy]
    observed: int = 0


class FrozenCriticState(BatchHook[FrozenCritic]):
    """The data until the critic is trained, and the tuned copy and the heads from then on."""

    def __init__(self, settings: FrozenCritic, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: FrozenCriticData = FrozenCriticData(
            heads=LazyPart(lambda: Network(Heads(settings.width, setup.width).to(setup.device))),
            tuned=LazyPart(lambda: setup.policy.copy(settings.tuning_rate, 1.0)),
        )

    @property
    def ready(self) -> bool:
        """Whether the data are collected."""
        return self.data.observed >= self.settings.warmup_steps

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Collect the batch, or train the critic once; then add values to the turns of the batch."""
        if not self.ready:
            self.data.buffer.add(_executed(rewarded))
        elif self.data.heads.part is None:
            self.train()
        return [self._judged(each) for each in rewarded]

    def train(self) -> None:
        """Tune the features and train the critic on the collected and the stored turns.

        Raises:
            ValueError: when no turn was executed, or no turn has the keys of the states before and after it.
        """
        for path in self.settings.data:
            self.data.buffer.add(_executed(self.setup.policy.stored_trees(Path(path))))
        turns = self.data.buffer.turns
        if not turns:
            raise ValueError("FrozenCritic: got no turn that was executed; need more data or warmup_steps")
        if self.settings.tuning_steps:
            self.metrics["frozen/change_loss"] = tune(
                self.data.tuned(), turns, self.settings, self.setup.seed, self.setup.device
            )
        heads = fit(self._transitions(turns), self.settings, self.setup.seed, self.metrics)
        self.data.heads.part = Network(heads)
        self.data.buffer = ReplayBuffer()

    def observe(self) -> Mapping[str, float]:
        """Count a training step and return its metrics."""
        self.data.observed += 1
        return super().observe()

    def _of_states(self, texts: Sequence[NDArray[np.int32]]) -> Tensor:
        """[n, W]: the reference policy's hidden states after n texts."""
        states: Tensor = self.setup.policy.reference_states(texts)
        return states.detach().float().to(self.setup.device)

    def _of_turns(self, turns: Sequence[Turn]) -> tuple[Tensor, Tensor]:
        """f(s), [n, W], and f(s) with g(s, a), [n, 2 W]."""
        texts = [turn.text for turn in turns]
        state = self._of_states([turn.text[: turn.read] for turn in turns])
        after = (
            self._of_states(texts)
            if self.data.tuned.part is None
            else self.data.tuned().states(texts).float().to(self.setup.device)
        )
        return state, torch.cat([state, after], dim=1)

    def _transitions(self, turns: Sequence[Turn]) -> Transitions:
        """The features of n turns."""
        state, action = self._of_turns(turns)
        columns = torch.tensor([(turn.reward, turn.goes_on) for turn in turns], dtype=torch.float32).to(
            self.setup.device
        )
        after = self._of_states([turn.after for turn in turns])
        return Transitions(state=state, action=action, after=after, reward=columns[:, 0], goes_on=columns[:, 1])

    @torch.no_grad()
    def _judged(self, rewarded: Rewarded) -> Rewarded:
        """The tree with values; 0 before the critic is trained."""
        turns = list(turns_of(rewarded))
        values: Floats = np.zeros((len(turns), 4), dtype=np.float32)
        if self.data.heads.part is not None and turns:
            state, action = self._of_turns([turn for _, turn in turns])
            heads = self.data.heads().module
            found = torch.cat([head_values(heads.q, action), head_values(heads.v, state)], dim=1)
            values = found.cpu().numpy()
            lesser = values[:, :2].min(axis=1)
            self.metrics["frozen/q"] = float(lesser.mean())
            places = rewarded.tree.parent[[node for node, _ in turns]]
            spread = [lesser[places == place].std() for place in np.flatnonzero(np.bincount(places) > 1)]
            if spread:
                self.metrics["frozen/q_spread"] = float(np.mean(spread))
        return with_values(rewarded, [node for node, _ in turns], values)


def _executed(rewarded: Sequence[Rewarded]) -> list[Turn]:
    """The turns whose action was executed: not a candidate, or a path that the explorer gave up."""
    unknown = (TruncatedBy.NOT_EXECUTED, TruncatedBy.EXPLORER)
    return [turn for each in rewarded for node, turn in turns_of(each) if each.tree.truncated_by[node] not in unknown]


def tune(copied: Any, turns: Sequence[Turn], settings: FrozenCritic, seed: int, device: str) -> float:
    """Tune a copy of the policy to predict whether an action changes the state; returns the last loss.

    Raises:
        ValueError: when no turn has the keys of the states before and after it.
    """
    known = [turn for turn in turns if turn.changed is not None]
    if not known:
        raise ValueError(
            "FrozenCritic: got no action between two states with keys; need an environment with `State.key`, or "
            "tuning_steps=0, with features that are not tuned"
        )
    with seeded(seed):
        head = nn.Linear(copied.states([known[0].text]).shape[1], 1).to(device)
    adam, generator = torch.optim.Adam(head.parameters(), lr=1e-2), np.random.default_rng(seed)
    loss = 0.0
    for _ in range(settings.tuning_steps):
        some: list[Turn] = [known[at] for at in generator.integers(len(known), size=settings.tuning_turns).tolist()]
        changed = torch.tensor([float(turn.changed or 0) for turn in some]).to(device)

        def part(states: Tensor, at: Tensor, changed: Tensor = changed) -> Tensor:
            predicted: Tensor = head(states.float())[:, 0]
            return nn.functional.binary_cross_entropy_with_logits(predicted, changed[at], reduction="sum") / len(
                changed
            )

        adam.zero_grad(set_to_none=True)
        loss = copied.step_states([turn.text for turn in some], part)
        adam.step()  # pyright: ignore[reportUnknownMemberType]
    return loss


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
