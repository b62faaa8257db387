"""Adding observations to a tree under construction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bough.env import State, Step
from bough.rollout.agent import Limits
from bough.rollout.builder import NodeDraft, TreeBuilder
from bough.rollout.cursor import Cursor
from bough.rollout.seats import SeatContext, SeatContexts
from bough.rollout.writer import Writer
from bough.tree import Kind, Outcome, TruncatedBy, plain_text
from bough.usercode.origin import shorten
from bough.varying import constant

MOST_CHARACTERS = 100_000
"""Characters of an observation beyond the context that the tree keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Adds the state after an action to the context of the seat that acts in it; `Rollout` calls it.

    Attributes:
        builder: The tree that gets the observations.
        writers: By seat, the renderer and context of its agent; one with the name "" without seats.
        limits: Budgets of a path.
    """

    builder: TreeBuilder
    writers: Mapping[str, Writer]
    limits: Limits

    def first(self, state: State) -> Cursor:
        """Add the root.

        Raises:
            ValueError: when the first prompt does not fit the model.
        """
        writer = self.writers[state.seat]
        text = self._tokens(writer, SeatContext(), state)[1]
        capacity = writer.agent.engine.context_tokens
        if len(text) >= capacity:
            raise ValueError(
                f"task {self.builder.task.id}: got a first prompt of {len(text)} tokens; need fewer than the "
                f"{capacity} of the model's context. Shorten the instructions or observation, or use a longer context"
            )
        node, _ = writer.observe(-1, state, text, kind=Kind.PROMPT, tools=state.tools or None, begins=True)
        return Cursor(node=node, state=state, text=text, past=(), sampled_tokens=0, branches=())

    def add(self, after: Cursor, step: Step, seat: str) -> tuple[int, Cursor | Outcome]:
        """Add the observation after an action.

        Args:
            after: The position after the action: its node, and the context of the seat that acted.
            step: The environment's result.
            seat: The seat that acted.

        Returns:
            The observation's node, and the next position or the outcome of the path.
        """
        writer = self.writers[step.state.seat]
        read, waiting = _contexts(after, seat, step.state.seat)
        tools = step.state.tools or None
        if read.past:
            tools = None if step.state.tools == read.past[-1].tools else step.state.tools
        number, node = writer.observe(after.node, step.state, tools=tools, begins=not read.past)
        if step.replayed_steps:
            node.info["replayed_steps"] = step.replayed_steps
        if step.info:
            node.info["env"] = dict(step.info)
        spent = self._exhausted(after)
        if step.outcome not in (Outcome.OPEN, Outcome.TRUNCATED):
            # The episode is over, so the last observation adds no tokens.
            return number, _end(node, step.outcome, step, spent)
        kind, tokens = self._tokens(writer, read, step.state)
        text = tokens if kind is Kind.EDIT else (*read.text, *tokens)
        if fits := len(text) < writer.agent.engine.context_tokens:
            # Stored for truncated paths too: a critic values their final state.
            node.kind, node.tokens = kind, tokens
        else:
            # The model has not read it.
            node.info["text"] = shorten(plain_text(step.state.observation), MOST_CHARACTERS)
        if (over := step.outcome is not Outcome.OPEN) or spent or not fits:
            if not over and not spent:
                node.info["needed_tokens"] = len(text)
            return number, _end(node, Outcome.TRUNCATED, step, spent if over or spent else TruncatedBy.CONTEXT)
        node.success = step.success or None
        return number, replace(after, node=number, state=step.state, text=text, past=read.past, waiting=waiting)

    def _tokens(self, writer: Writer, read: SeatContext, state: State) -> tuple[Kind, tuple[int, ...]]:
        """The kind and the tokens of an observation; a script reads none."""
        if writer.script is not None:
            return Kind.OBSERVATION, ()
        update = writer.extend(read.past, state)
        return update.kind, update.tokens

    def _exhausted(self, cursor: Cursor) -> TruncatedBy:
        """The first exhausted budget of the path, or `NOTHING`."""
        if cursor.actions - len(self.builder.task.start) >= constant(self.limits.turns):
            return TruncatedBy.TURNS
        tokens = constant(self.limits.tokens)
        spent = tokens is not None and cursor.sampled_tokens >= tokens
        return TruncatedBy.TOKENS if spent else TruncatedBy.NOTHING


def _contexts(after: Cursor, seat: str, following: str) -> tuple[SeatContext, SeatContexts]:
    """The context of the seat that acts next, and those of the other seats that have acted."""
    if following == seat:
        return SeatContext(text=after.text, past=after.past), after.waiting
    contexts = {**after.waiting, seat: SeatContext(text=after.text, past=after.past)}
    return contexts.pop(following, SeatContext()), contexts


def _end(node: NodeDraft, outcome: Outcome, step: Step, spent: TruncatedBy) -> Outcome:
    node.outcome, node.success, node.successes = outcome, step.success, step.successes
    node.truncated_by = spent or TruncatedBy.ENVIRONMENT if outcome is Outcome.TRUNCATED else TruncatedBy.NOTHING
    return outcome
