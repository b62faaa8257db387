"""A context: what of an episode the model reads at a turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bough.grammar import Grammar
from bough.tree import (
    Action,
    AgentAction,
    Kind,
    Message,
    Observation,
    Task,
    Tool,
    action_text,
    after_action,
    messages,
)
from bough.tree.thinking import ThinkingState


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One past turn as executed.

    Attributes:
        observation: The observation before the action.
        action: The action.
        tokens: The sampled tokens (with the stop token, if sampled).
        marks: Further results of the parser.
        tools: The tools before the action.
    """

    observation: Observation
    action: AgentAction
    tokens: tuple[int, ...]
    marks: Mapping[str, object] = field(default_factory=dict[str, object])
    tools: tuple[Tool, ...] = ()


def conversation(system: str, past: Sequence[Turn], observation: Observation) -> tuple[Message, ...]:
    """Returns the messages of a context: the system prompt if it is not empty, the turns, and the observation.

    An action is an assistant's message with the tokens as sampled. The results of its calls are in the order of the
    calls.

    Raises:
        ValueError: when results do not fit the calls before them; see `after_action`.
    """
    shown = [Message(role="system", content=system)] if system else []
    action: AgentAction = ""
    for turn in past:
        shown += [*after_action(action, messages(turn.observation)), _assistant_message(turn)]
        action = turn.action
    return (*shown, *after_action(action, messages(observation)))


def _assistant_message(turn: Turn) -> Message:
    return Message(role="assistant", content=action_text(turn.action), tokens=turn.tokens)


@runtime_checkable
class Renderer(Protocol):
    """Renders conversations as tokens in a model's own format, and parses its calls of tools. Contexts call it.

    A message with `Message.tokens` is spliced in as sampled, never rendered or tokenised again.
    """

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """The tokens that end an action; sampling stops at the first of them and keeps it."""
        ...

    @property
    def prompt_thinking(self) -> ThinkingState | None:
        """The thinking at the end of the generation prompt; an action begins in one that is open.

        None for a format without thinking.
        """
        ...

    @property
    def part_separator(self) -> str:
        """What stands between the parts of a message's content, such as two texts of one request."""
        ...

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        """Renders a whole context, up to the first token of the next action."""
        ...

    def extend(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...] | None:
        """Returns the tokens between the last assistant's message, which has tokens, and the next action.

        Closes the message first when it has no stop token. None when the format cannot append (a chat template that
        rewrites earlier messages): the context must then be rendered again, as an `EDIT`.

        Args:
            messages: The whole conversation.
            tools: Those of the next action, and of the last.
        """
        ...

    def write(self, action: AgentAction) -> tuple[int, ...]:
        """Returns the tokens of an action that the policy did not sample (a teacher's), with a stop token."""
        ...

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        """Parses the calls in the tokens of an action, in the format of the model's family. Never fails.

        Args:
            tokens: The tokens of the action.
            tools: The tools of its state, whose schemas tell a text from a number where the format has no quotes.
        """
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """Decodes tokens, without stop tokens and special marks."""
        ...

    def call_grammar(
        self,
        tools: Sequence[Tool],
        *,
        required: bool = False,
        most_calls: int | None = None,
        answer: Mapping[str, object] | None = None,
    ) -> Grammar:
        """Returns what an action may be so that each of its calls is one that its tool takes.

        Args:
            tools: The tools; at least one.
            required: Whether it is calls alone, after thinking that the prompt opens.
            most_calls: 1 for one call, None for any number.
            answer: The schema of a JSON text that may stand in place of required calls; None for none.

        Raises:
            ValueError: for a format whose calls can't be enforced.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdate:
    """The tokens that a context adds before the next action.

    Attributes:
        kind: `OBSERVATION` when `tokens` extend the context, `EDIT` when they replace it. The first prompt replaces
            an empty context.
        tokens: The added tokens.
    """

    kind: Kind
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextInputs:
    """Everything that a context may show before an action.

    Attributes:
        task: The task.
        observation: The current observation.
        system: The system prompt.
        past: Every turn so far; without turns the update is the first prompt.
        tools: The current tools.
        seat: The seat that acts; "" for one agent.
        state_key: The environment's key of the state; "" when unknown.
        recalled: What a memory recalled for this action, as messages before the observation.
    """

    task: Task
    observation: Observation
    system: str = ""
    past: Sequence[Turn] = ()
    tools: tuple[Tool, ...] = ()
    seat: str = ""
    state_key: str = ""
    recalled: tuple[Message, ...] = ()

    def conversation(self, past: Sequence[Turn] | None = None) -> tuple[Message, ...]:
        """The messages of the system prompt, of some turns (None for all), of the memory, and the observation."""
        shown = self.past if past is None else past
        return conversation(self.system, shown, (*self.recalled, *messages(self.observation)))


@runtime_checkable
class Context(Protocol):
    """Selects the history in the policy's prompt."""

    def extend(self, renderer: Renderer, inputs: ContextInputs) -> ContextUpdate:
        """Returns the update before the next action, in the format of the policy's renderer."""
        ...
