"""The state of an utterance-level critic: two Q heads, two V heads, and a target network."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from bough.critics.module_state import Network
from bough.critics.replay_buffer import ReplayBuffer, Turn, turns_of
from bough.critics.small_transformer import small_transformer
from bough.critics.utterance import UtteranceCritic
from bough.hooks.hook import BatchHook, HookSetup
from bough.policy.seeding import seeded
from bough.tree import Floats, Rewarded, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnValues:
    """Values of n turns; column i is head i.

    Attributes:
        q: [n, 2], Q of context and action.
        v: [n, 2], V of the context.
        after: [n, 2], V of context and action as one state.
    """

    q: Float[Tensor, "n 2"]
    v: Float[Tensor, "n 2"]
    after: Float[Tensor, "n 2"]


class DoubleCritic(nn.Module):
    """A causal transformer with two heads for Q and two for V."""

    def __init__(self, settings: UtteranceCritic, vocab_tokens: int) -> None:
        super().__init__()
        width = settings.width
        self.trunk: Any = small_transformer(
            layers=settings.layers,
            width=width,
            heads=settings.heads,
            vocab_tokens=vocab_tokens,
            context_tokens=settings.context_tokens,
        )
        self.q = nn.ModuleList(mlp_head(width) for _ in range(2))
        self.v = nn.ModuleList(mlp_head(width) for _ in range(2))

    def forward(self, turns: Sequence[Turn]) -> TurnValues:
        """Values of n turns."""
        device = next(self.parameters()).device
        lengths = np.asarray([len(turn.text) for turn in turns])
        filled = np.zeros((len(turns), int(lengths.max())), dtype=np.int64)
        filled[np.arange(filled.shape[1]) < lengths[:, None]] = np.concatenate([turn.text for turn in turns])
        # The model is causal, so padding after a text does not change its states.
        hidden: Tensor = self.trunk(input_ids=torch.as_tensor(filled, device=device)).last_hidden_state
        row = torch.arange(len(turns), device=device)
        before = hidden[row, torch.tensor([turn.read for turn in turns], device=device) - 1]
        end = hidden[row, torch.as_tensor(lengths, device=device) - 1]
        return TurnValues(q=head_values(self.q, end), v=head_values(self.v, before), after=head_values(self.v, end))


def mlp_head(width: int, inputs: int | None = None) -> nn.Module:
    """A head of two hidden layers on states of `inputs` elements, `width` by default; its first values are 0."""
    last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs or width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last)


def head_values(heads: nn.ModuleList, hidden: Tensor) -> Tensor:
    """[n, 2]: the values of two heads at hidden states [n, W]."""
    return torch.cat([head(hidden) for head in heads], dim=-1)


@dataclass(slots=True, kw_only=True)
class UtteranceCriticData:
    """The state of the hook.

    Attributes:
        critic: The critic and its optimizer.
        target: The target network.
        buffer: The turns of earlier steps.
        observed: The number of finished steps.
    """

    critic: Network[DoubleCritic]
    target: Network[DoubleCritic]
    buffer: ReplayBuffer
    observed: int = 0


class UtteranceCriticState(BatchHook[UtteranceCritic]):
    """The critic, its target network, its optimizer, and its replay buffer."""

    def __init__(self, settings: UtteranceCritic, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        with seeded(setup.seed):
            self.twins = DoubleCritic(settings, setup.vocab_tokens).to(setup.device)
        self.target = copy.deepcopy(self.twins).requires_grad_(False)
        self._adam = torch.optim.Adam(self.twins.parameters(), lr=settings.learning_rate)
        self.data: UtteranceCriticData = UtteranceCriticData(
            critic=Network(self.twins, self._adam),
            target=Network(self.target),
            buffer=ReplayBuffer(capacity=settings.capacity_turns),
        )

    @property
    def ready(self) -> bool:
        """Whether the warm-up is over."""
        return self.data.observed >= self.settings.warmup_steps

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Train on the batch and the replay buffer, then add values to the turns of the batch."""
        limit = self.settings.context_tokens
        turns = [[(node, turn.shortened(limit)) for node, turn in turns_of(each)] for each in rewarded]
        new = [turn for each, mine in zip(rewarded, turns, strict=True) if not each.tree.replayed for _, turn in mine]
        own = [
            turn
            for each, mine in zip(rewarded, turns, strict=True)
            for node, turn in mine
            if not each.tree.replayed and each.tree.source[node] == Source.SAMPLED
        ]
        self.data.buffer.add(new)
        if own:
            self.learn(own, np.random.default_rng(seed))
        outputs = self.judge([turn for mine in turns for _, turn in mine])
        if len(outputs):
            lesser = np.minimum(outputs[:, 0::2], outputs[:, 1::2]).mean(0).tolist()
            self.metrics |= {"utterance/q": lesser[0], "utterance/v": lesser[1]}
        end = np.cumsum([0, *(len(mine) for mine in turns)]).tolist()
        return [
            with_values(each, [node for node, _ in mine], outputs[end[i] : end[i + 1]])
            for i, (each, mine) in enumerate(zip(rewarded, turns, strict=True))
        ]

    def learn(self, new: Sequence[Turn], generator: np.random.Generator) -> None:
        """Run the gradient steps of one training step.

        Args:
            new: Turns whose actions the current policy sampled.
            generator: Samples the turns.
        """
        count, losses = self.settings.batch_turns, np.zeros(2)
        for _ in range(self.settings.steps):
            old = self.data.buffer.draw(count, generator)
            fresh = [new[int(place)] for place in generator.integers(len(new), size=count)]
            losses += self._step(old, fresh)
        q_loss, v_loss = (losses / self.settings.steps).tolist()
        self.metrics |= {"utterance/q_loss": q_loss, "utterance/v_loss": v_loss}

    @torch.no_grad()
    def judge(self, turns: Sequence[Turn]) -> Floats:
        """[n, 4] float32: q1, q2, v1, v2 of n turns."""
        count = self.settings.batch_turns
        parts: list[TurnValues] = [self.twins(turns[i : i + count]) for i in range(0, len(turns), count)]
        columns = [torch.cat([outputs.q, outputs.v], dim=1).cpu().numpy() for outputs in parts]
        return np.concatenate([np.zeros((0, 4), dtype=np.float32), *columns])

    def observe(self) -> Mapping[str, float]:
        """Count a training step and return its metrics."""
        self.data.observed += 1
        return {**super().observe(), "utterance/turns": float(len(self.data.buffer.turns))}

    def _step(self, old: Sequence[Turn], fresh: Sequence[Turn]) -> Floats:
        """One gradient step; returns the losses of Q and V."""
        settings, n = self.settings, len(old)
        device = next(self.twins.parameters()).device
        came_after = [replace(turn, text=turn.after, read=len(turn.after)) for turn in old]
        with torch.no_grad():
            copied: TurnValues = self.target([*came_after, *fresh])
            came, chosen = copied.v[:n], copied.q[n:]
            reward, open_, on = torch.tensor(
                [(turn.reward, not turn.done, turn.goes_on) for turn in old], dtype=came.dtype, device=device
            ).unbind(1)
            goal = reward[:, None] + settings.discount * open_[:, None] * came
        outputs: TurnValues = self.twins([*old, *fresh])
        q_loss = (outputs.q[:n] - goal).square().sum(1).mean()
        v_loss = (outputs.v[n:] - chosen).square().sum(1).mean()
        after_loss = (on * (outputs.after[:n] - came).square().sum(1)).mean()
        self._adam.zero_grad(set_to_none=True)
        (q_loss + v_loss + after_loss).backward()  # pyright: ignore[reportUnknownMemberType]
        nn.utils.clip_grad_norm_(self.twins.parameters(), settings.clip_norm)
        self._adam.step()  # pyright: ignore[reportUnknownMemberType]
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.twins.parameters(), strict=True):
                slow.lerp_(fast, settings.polyak)
        return np.asarray([q_loss.item(), v_loss.item()])


def with_values(rewarded: Rewarded, nodes: Sequence[int], values: Floats) -> Rewarded:
    """The tree with the values [n, 4] of n of its turns at their tokens."""
    tree = rewarded.tree
    of_nodes = np.full((tree.nodes, 4), np.nan, dtype=np.float32)
    of_nodes[nodes] = values
    columns = np.repeat(of_nodes, np.diff(tree.span), axis=0)
    named = dict(zip(("q1", "q2", "v1", "v2"), columns.T, strict=True))
    return replace(rewarded, estimates={**rewarded.estimates, **named})
