"""Counts of the rollout of a tree."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutCounts:
    """Resources and events of one tree's rollout.

    Attributes:
        turns: Environment steps, replayed ones included.
        tokens: Sampled tokens.
        calls: Engine requests: completions, scores and values, each once.
        replayed_turns: Environment steps that only returned to an earlier state.
        unanswered: Questions of a search without a parsable answer.
        pruned_branches: Branches that the explorer pruned as too similar to another; None where it prunes none.
    """

    turns: int = 0
    tokens: int = 0
    calls: int = 0
    replayed_turns: int = 0
    unanswered: int = 0
    pruned_branches: int | None = None
