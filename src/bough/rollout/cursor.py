"""Cursors and pending actions: immutable positions of a rollout, each of which can be continued several times."""

from dataclasses import dataclass, field

from bough.context import Parsed, Turn
from bough.env import State
from bough.rollout.seats import SeatContext, SeatContexts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A state in which the agent can act, as a value: acting twice from one cursor makes two branches.

    Attributes:
        node: Builder index of the node.
        state: The environment's state.
        text: All tokens of the prompt for the next action.
        past: The turns so far; with several seats, those of the seat that acts.
        sampled_tokens: Number of tokens sampled on the path so far.
        branches: The branch of each turn; identifies the cursor in seeds and messages.
        actions: Number of actions on the path so far, of all seats.
        waiting: With several seats, the contexts of the other seats that have acted.
    """

    node: int
    state: State
    text: tuple[int, ...]
    past: tuple[Turn, ...]
    sampled_tokens: int
    branches: tuple[int, ...]
    actions: int = 0
    waiting: SeatContexts = field(default_factory=dict[str, SeatContext])


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAction:
    """An action that is sampled, in whole or in part, and not yet executed; continuing it twice makes two branches.

    An action that is sampled in pieces has an `ACTION` node for each piece, one below the other.

    Attributes:
        cursor: Where the action would be executed.
        node: Builder index of its last piece.
        tokens: All its tokens so far.
        sampled_tokens: Number of tokens that the policy sampled.
        logprob: Sum of their log-probabilities, nats; 0 where nothing was sampled.
        complete: Whether it ended, by a stop token or a limit; otherwise it can be continued.
        parsed: The parser's result on its tokens so far.
        branches: As in `Cursor`; a branch within an action is a negative number.
        top_probs: `Completion.top_probs` of its last piece; () when not requested.
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

    @property
    def valued_text(self) -> tuple[int, ...]:
        """The tokens after which a critic values the action.

        They end before its last token, the stop token: the last one that is trained. An incomplete action has none yet.
        """
        return (*self.cursor.text, *(self.tokens[:-1] if self.complete else self.tokens))
