"""What acts, and how far it may go."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from bough.context import Context, Parser, Renderer
from bough.engine import Engine, Sampling

Critic: TypeAlias = Callable[[tuple[int, ...]], Awaitable[float]]
"""Says what a place is worth, from the tokens that the policy reads there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The policy's side of an episode: an engine, and how text gets in and out of it.

    Attributes:
        engine: Writes tokens.
        renderer: Turns text into the model's tokens.
        context: Chooses what of the past is read.
        parser: Finds the action in what was written.
        sampling: How tokens are drawn.
        critic: What places are worth; None when nobody has learned that.
    """

    engine: Engine
    renderer: Renderer
    context: Context
    parser: Parser
    sampling: Sampling
    critic: Critic | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Budgets. A path that one of them stops ends as `TRUNCATED`; its info says which. None is ever exceeded.

    Those of a whole tree are for all its branches together: a turn begins only when they can pay for it at its dearest,
    `sampling.max_tokens` sampled tokens and every step that may have to be replayed.

    Attributes:
        turns: Most actions on one path, not counting those of `Task.start`.
        tokens: Most sampled tokens on one path; None for no limit.
        tree_turns: Most environment steps in a whole tree, replayed ones included; None for no limit.
        tree_tokens: Most sampled tokens in a whole tree; None for no limit.
        tree_calls: Most requests to the engine in a whole tree (completions, scores, values); None for no limit.
        env_deadline_s: How long the environment may take over one call before the run counts as stuck. Workers have
            their own, shorter deadline, after which they are replaced.
        engine_deadline_s: How long one completion may take before the run counts as stuck.
    """

    turns: int = 16
    tokens: int | None = None
    tree_turns: int | None = None
    tree_tokens: int | None = None
    tree_calls: int | None = None
    env_deadline_s: float = 600.0
    engine_deadline_s: float = 600.0

    def __post_init__(self) -> None:
        for name in ("turns", "tokens", "tree_turns", "tree_tokens", "tree_calls"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Limits.{name}: got {value}; need at least 1")
        for name in ("env_deadline_s", "engine_deadline_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"Limits.{name}: got {getattr(self, name)}; need more than 0 seconds")
