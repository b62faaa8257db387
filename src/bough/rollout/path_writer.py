"""Adds the nodes of paths to a tree, for rollouts, agent programs, added messages and rewritten paths."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from bough.context import Context, ContextInputs, ContextUpdate, Parsed, Parser, Renderer, Turn
from bough.engine import Completion, FinishReason
from bough.env import State
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.tree import Action, Kind, Source, Tool, action_info, observation_info, plain_text
from bough.tree.thinking import THINK, ThinkingState, without_empty_thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFormat:
    """The formats of a policy's inputs and outputs.

    Attributes:
        renderer: Renders the chat format.
        context: Chooses the past turns of a prompt.
        parser: Finds the action in the policy's text.
        max_tokens: Maximum tokens of a text; None for no maximum.
    """

    renderer: Renderer
    context: Context
    parser: Parser
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathWriter:
    """Adds the prompts, observations and actions of a seat to a tree.

    Attributes:
        builder: The tree.
        format: The formats of the policy that acts.
        system: The system prompt: the environment's instructions, and those of the parser's format.
        seat: Index of the seat.
    """

    builder: TreeBuilder
    format: PolicyFormat
    system: str
    seat: int = 0

    def extend(self, past: Sequence[Turn], state: State) -> ContextUpdate:
        """The update of the context before the next action in a state; without turns, the first prompt."""
        inputs = ContextInputs(
            task=self.builder.task,
            observation=state.observation,
            system=self.system,
            past=past,
            tools=state.tools,
            seat=state.seat,
            state_key=state.key,
        )
        return self.format.context.extend(self.format.renderer, inputs)

    def observe(
        self,
        parent: int,
        state: State,
        tokens: Sequence[int] = (),
        *,
        kind: Kind = Kind.OBSERVATION,
        branch: int = 0,
        tools: Sequence[Tool] | None = None,
        begins: bool = False,
    ) -> tuple[int, NodeDraft]:
        """Add a prompt or an observation; returns its index and the node.

        Args:
            parent: The node before it.
            state: The state that it shows.
            tokens: What the policy reads.
            kind: `OBSERVATION`, `EDIT` or `PROMPT`.
            branch: Orders it among its siblings.
            tools: The tools that the info names; None where they are as before.
            begins: Whether the seat acts for the first time, so that the info has its instructions.
        """
        node = NodeDraft(parent=parent, kind=kind, branch=branch, tokens=tokens, state=state.key, seat=self.seat)
        node.info["text"] = plain_text(state.observation)
        if begins:
            node.info["instructions"] = self.system
        node.info |= observation_info(state.observation, tools)
        return self.builder.add(node), node

    def act(self, parent: int, tokens: Sequence[int], *, source: Source, branch: int = 0) -> tuple[int, NodeDraft]:
        """Add an action, or a piece of one, that the policy did not sample; returns its index and the node."""
        node = NodeDraft(
            parent=parent, kind=Kind.ACTION, branch=branch, tokens=tuple(tokens), source=source, seat=self.seat
        )
        return self.builder.add(node), node

    def sampled(
        self, parent: int, completion: Completion, *, temperature: float, branch: int = 0, hinted: bool = False
    ) -> tuple[int, NodeDraft]:
        """Add an action, or a piece of one, with its log-probabilities; returns its index and the node.

        A hinted action, or one of an engine without log-probabilities, counts as a teacher's.
        """
        number, node = self.act(parent, completion.tokens, source=Source.TEACHER, branch=branch)
        node.policy_version, node.cut_off = completion.policy_version, completion.finish is FinishReason.LENGTH
        if hinted or completion.logprobs is None:
            return number, node
        if temperature == 0:
            node.source = Source.GREEDY
            return number, node
        node.source, node.logprobs, node.entropies = Source.SAMPLED, completion.logprobs, completion.entropies
        node.allowed = completion.allowed
        return number, node

    def record(self, node: NodeDraft, parsed: Parsed, tokens: tuple[int, ...], raw: str | None = None) -> None:
        """Store what the parser found in an action at its last piece.

        Args:
            node: The last piece.
            parsed: The result of the parser.
            tokens: The tokens of the whole action.
            raw: Its text; None for that of the tokens.
        """
        raw = self.format.renderer.text(tokens) if raw is None else raw
        node.well_formed = parsed.well_formed
        node.info |= parsed.marks
        node.info["text"] = parsed.text
        node.info |= action_info(parsed.action)
        if raw != parsed.text:
            node.info["raw"] = raw
        if parsed.spans:
            # Other parsers have ranges of the tokens' own text.
            shift = self._shift(raw, parsed.action.text) if isinstance(parsed.action, Action) else 0
            spans = {name: (max(first + shift, 0), stop + shift) for name, (first, stop) in parsed.spans.items()}
            node.info["spans"] = {name: self._token_range(tokens, raw, span) for name, span in spans.items()}

    def _shift(self, raw: str, text: str) -> int:
        """The position of the text of an action in that of its tokens, whose prompt may have opened the thinking."""
        opened = self.format.renderer.prompt_thinking is ThinkingState.OPEN
        if opened and text.startswith(THINK):
            return -len(THINK)
        return len(raw) - len((without_empty_thinking(raw) if opened else raw).lstrip())

    def _token_range(self, tokens: tuple[int, ...], raw: str, span: tuple[int, int]) -> list[int]:
        """The token range [first, stop) that covers a range of characters."""
        text = self.format.renderer.text
        first, stop = span
        counts = range(len(tokens) + 1)
        # A prefix of the tokens may end within a character, and then decodes to another one.
        begun = bisect_left(counts, True, key=lambda count: len(text(tokens[:count])) > first)
        ended = bisect_left(counts, True, key=lambda count: text(tokens[:count]).startswith(raw[:stop]))
        return [begun - 1, min(ended, len(tokens))]
