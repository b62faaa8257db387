"""Counts: of the rollout of a tree, and of paths in the mean of a loss."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutCounts:
    """Resources and events of one tree's rollout.

    Attributes:
        turns: Environment steps, replayed ones included.
        tokens: Sampled tokens.
        calls: Engine requests: completions, scores and values, each once.
        replayed_turns: Environment steps that only returned to an earlier state.
        unanswered: Questions of a search without a parsable answer.
        unjudged: Nodes of a search whose value or rating a model was asked for and did not give.
        refused: Questions to models that exceeded their context.
        denied: Actions that a guard denied; `turns` counts them too.
        pruned_branches: Branches that the explorer pruned as too similar to another; None where it prunes none.
        edits: Calls of an agent program whose history had changed, by what changed.
        abandoned: Answers that an agent program never got or did not use; they are on no path.
        disconnects: Requests of an agent program whose client left before the answer; they have no tokens.
        rejected: Requests of an agent program that were refused, limits apart.
    """

    turns: int = 0
    tokens: int = 0
    calls: int = 0
    replayed_turns: int = 0
    unanswered: int = 0
    unjudged: int = 0
    refused: int = 0
    denied: int = 0
    pruned_branches: int | None = None
    edits: Mapping[str, int] = field(default_factory=dict[str, int])
    abandoned: int = 0
    disconnects: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCounts:
    """What some paths add to the divisor of a mean over paths or tokens.

    Attributes:
        paths: Number of paths with trained tokens.
        path_tokens: Their trained tokens, a shared token once for each path.
        unique_tokens: Their trained tokens, each once.
    """

    paths: float = 0.0
    path_tokens: float = 0.0
    unique_tokens: float = 0.0

    def split(self, parts: int) -> "PathCounts":
        """One of equal parts."""
        return PathCounts(
            paths=self.paths / parts, path_tokens=self.path_tokens / parts, unique_tokens=self.unique_tokens / parts
        )
