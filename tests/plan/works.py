"""Constant rates and small workloads for tests of the planner."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.plan import MeasuredRun, TreeWork, TurnWork


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A pass takes `prefill` if turns join, and `decode` if turns run, with `per_turn` for each of these."""

    prefill: float = 0.0
    decode: float = 0.0
    per_turn: float = 0.0
    update: float = 0.0
    publish: float = 0.0

    def pass_s(self, *, new_tokens: int, joined: int, decoding: int, pairs: float, context_tokens: float) -> float:
        del new_tokens, pairs, context_tokens
        return (self.prefill if joined else 0.0) + (self.decode + self.per_turn * decoding if decoding else 0.0)

    def update_s(self, trees: Sequence[TreeWork]) -> float:
        del trees
        return self.update

    def publish_s(self, trees: Sequence[TreeWork]) -> float:
        del trees
        return self.publish


def chain(turns: int, *, episodes: int = 1, sampled: int = 1, seen: int = 4, prompt: int = 10) -> TreeWork:
    """Chains of some turns that share a prompt; each turn reads `seen` tokens and samples `sampled`."""
    found: list[TurnWork] = []
    for _ in range(episodes):
        for turn in range(turns):
            found.append(
                TurnWork(
                    parent=len(found) - 1 if turn else -1,
                    new_tokens=seen + 1 if turn else 0,
                    context_tokens=prompt + turn * (seen + sampled),
                    sampled_tokens=sampled,
                )
            )
    unique = prompt + episodes * turns * (seen + sampled)
    return TreeWork(
        prompt_tokens=prompt,
        turns=tuple(found),
        episodes=episodes,
        unique_tokens=unique,
        trained_tokens=episodes * turns * sampled,
        pairs=unique * unique // 2,
    )


def measured(trees: Sequence[TreeWork], **changes: object) -> MeasuredRun:
    """A run with round numbers."""
    values: dict[str, object] = {
        "name": "made",
        "trees": tuple(trees),
        "batch_tasks": 8,
        "optimizer_steps": 1,
        "passes": 1,
        "micro_tokens": 1024,
        "recompute": False,
        "reference": False,
        "workers": 1,
        "engines": 1,
        "ranks": 1,
        "staleness": 0,
        "update_share": 1.0,
        "step_s": 3.0,
        "grow_s": 2.0,
        "slots": 256,
        "pass_s": 0.01,
        "token_s": 1e-4,
        "env_step_s": 0.01,
        "learn_s": 1e-4,
        "sync_s": 0.1,
        "other_s": 0.0,
    }
    return MeasuredRun(**(values | changes))  # type: ignore[arg-type]
