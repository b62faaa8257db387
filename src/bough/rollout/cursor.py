"""Where an agent stands, and what it is about to do: values, from which growth may go on as often as it likes."""

from dataclasses import dataclass

from bough.context import Parsed, Turn
from bough.env import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A place from which the agent can act, as a value: acting twice from one cursor makes two branches.

    Attributes:
        node: Where the agent stands in the growth.
        state: The environment's state there.
        text: Every token the policy reads before it acts.
        past: The turns so far.
        sampled_tokens: Tokens sampled on the way here.
        branches: Which branch was taken at each turn; names the place in seeds and messages.
    """

    node: int
    state: State
    text: tuple[int, ...]
    past: tuple[Turn, ...]
    sampled_tokens: int
    branches: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAction:
    """An action that was written, in whole or in part, and not yet carried out: writing on twice makes two branches.

    An action that is written in pieces has an `ACTION` node for each piece, one below the other.

    Attributes:
        cursor: Where it would be carried out.
        node: Its last piece in the growth.
        tokens: All of it so far.
        sampled_tokens: How many of them the policy sampled.
        logprob: Sum of their log-probabilities, nats; 0 where nothing was sampled.
        whole: Whether it ended, by a stop token or a limit; more can be written otherwise.
        parsed: What was found in it so far.
        branches: As in `Cursor`; a branch within an action is a negative number.
        top_probs: What `Completion.top_probs` says of its last piece; () when nobody asked.
    """

    cursor: Cursor
    node: int
    tokens: tuple[int, ...]
    sampled_tokens: int
    logprob: float
    complete: bool
    parsed: Parsed
    branches: tuple[int, ...]
    top_probs: tuple[tuple[tuple[int, float], ...], ...] = ()
