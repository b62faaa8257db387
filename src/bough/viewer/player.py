"""What the viewer asks of a run's agent and environment: to go on from a turn of a stored tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bough.tree import Rewarded, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What is tried from a turn.

    Attributes:
        action: The action that a person wrote; "" where the policy acts.
        samples: Number of continuations that the policy samples, each to the end of its episode; 0 with an action.
        step: The checkpoint that acts; None for the newest.
        seed: The seed of the samples.
    """

    action: str = ""
    samples: int = 0
    step: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The outcome of moves.

    Attributes:
        rewarded: A tree with the path from the root and what follows the turn.
        step: The checkpoint that the run has loaded; None for weights as built.
        turns: Number of turns before the new ones.
        note: What its rewards lack; "" for nothing.
    """

    rewarded: Rewarded
    step: int | None
    turns: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The probabilities of an action under other weights.

    Attributes:
        logprobs: Of each token, nats, at temperature 1.
        step: The checkpoint; None for weights as built.
    """

    logprobs: tuple[float, ...]
    step: int | None


class Player(Protocol):
    """Opens the agents of runs; calls are made one at a time. Nothing in a run's directory is changed."""

    def play(self, directory: Path, tree: Tree, node: int, moves: Moves) -> Played:
        """Go on from a node of a tree of a run.

        Raises:
            ValueError: when the episode is over there, or the environment does not repeat the path.
            EnvFault: when the environment does not start.
            EngineFault: when the engine broke.
        """
        ...

    def score(self, directory: Path, tree: Tree, node: int, step: int | None) -> Scored:
        """The log-probabilities of the action at a node, its last piece, under a checkpoint.

        Raises:
            ValueError: as of `play`.
        """
        ...

    def row(self, rewarded: Rewarded, node: int) -> Mapping[str, object] | None:
        """The conversation of a path, in OpenAI's form; None without an action."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...
