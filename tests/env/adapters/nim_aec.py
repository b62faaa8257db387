"""A game of PettingZoo: take 1 to 3 from a heap in turn; the one who takes the last wins."""

# ruff: noqa: ARG001, ARG002

from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import AECEnv


class Heap(AECEnv[str, Any, int]):
    metadata: ClassVar[dict[str, Any]] = {"name": "heap"}

    def __init__(self, size: int = 7) -> None:
        super().__init__()
        self.size = size
        self.possible_agents = ["ann", "bob"]
        self.render_mode = None

    def observation_space(self, agent: str) -> Any:
        return Box(0, 100, (1,), np.int64)

    def action_space(self, agent: str) -> Any:
        return Discrete(3)

    def observe(self, agent: str) -> Any:
        mask = np.array([self.heap >= take for take in (1, 2, 3)], dtype=np.int8)
        return {"observation": np.array([self.heap]), "action_mask": mask}

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.heap = self.size + np.random.default_rng(seed).integers(3)
        self.agents = list(self.possible_agents)
        self.agent_selection = "ann"
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        assert action is not None
        self._cumulative_rewards[agent] = 0
        self._clear_rewards()
        self.heap -= action + 1
        other = "bob" if agent == "ann" else "ann"
        if self.heap == 0:
            self.rewards = {agent: 1, other: -1}
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._accumulate_rewards()


class Numbered(Heap):
    """Knows its actions by the number that is taken."""

    def action_space(self, agent: str) -> Any:
        return Discrete(3, start=1)

    def step(self, action: int | None) -> None:
        super().step(None if action is None else action - 1)


def numbered(size: int = 7) -> Numbered:
    return Numbered(size)


def heap(size: int = 7) -> Heap:
    return Heap(size)


class StuckHeap(Heap):
    """Its mask allows no action."""

    def observe(self, agent: str) -> Any:
        return {**super().observe(agent), "action_mask": np.zeros(3, dtype=np.int8)}


def stuck_heap() -> StuckHeap:
    return StuckHeap()


def shown(observation: Any, info: Any, agent: str) -> str:
    return f"{agent}: {observation['observation'][0]} left"
