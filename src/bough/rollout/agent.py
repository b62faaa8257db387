"""The agent and the limits of a rollout."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from bough.context import Context, Parser, Renderer, conversation
from bough.engine import Engine, EngineFault, Sampling
from bough.guard import Guard
from bough.needs import POLICY
from bough.piece import Above, AtLeast, piece
from bough.rollout.path_writer import PolicyFormat
from bough.varying import IntOrSchedule

Critic: TypeAlias = Callable[[Sequence[tuple[int, ...]]], Awaitable[Sequence[float]]]
"""Estimates the values of some states together, each from the tokens that the policy reads in it."""

Embed: TypeAlias = Callable[[tuple[int, ...], int], Awaitable[Sequence[float]]]
"""Embeds the last tokens of a text, given their number; [width]."""


class QuestionTooLong(EngineFault):
    """A question does not fit the context of its model. The question is refused, and the run goes on without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleModel:
    """A model that a run may ask.

    Attributes:
        engine: Generates tokens.
        renderer: Converts text to the model's tokens.
        name: Identifies the weights, together with the engine's `policy_version`.
    """

    engine: Engine
    renderer: Renderer
    name: str = POLICY

    def question(self, system: str, text: str) -> tuple[int, ...]:
        """The prompt of a conversation with one user message."""
        return self.renderer.render(conversation(system, (), text))

    def require_context(self, prompt_tokens: int, tokens: int = 1) -> None:
        """Refuse a question that does not fit the model's context.

        Args:
            prompt_tokens: Length of the prompt.
            tokens: Minimum number of tokens after the prompt.

        Raises:
            QuestionTooLong: has both lengths.
        """
        if prompt_tokens + tokens > self.engine.context_tokens:
            raise QuestionTooLong(
                f"got a question of {prompt_tokens:,} tokens; need one with {tokens:,} more in the model's context of "
                f"{self.engine.context_tokens:,}: shorten the question or the episodes, or take a model with a longer "
                "context"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The policy's side of an episode: an engine, and the conversion between text and tokens.

    Attributes:
        engine: Generates tokens.
        renderer: Converts text to the model's tokens.
        context: Selects the part of the history that the prompt holds.
        parser: Extracts the action from the generated text.
        sampling: Settings of token sampling.
        critic: Estimates state values; None without a value head.
        embed: Embeds actions by the policy's hidden states; None where the weights are not at hand.
        models: The models of other roles than the policy, by role.
        name: Identifies the policy among those of a run; see `RoleModel.name`.
        guard: Decides about each action before it is executed; None where every action is allowed.
    """

    engine: Engine
    renderer: Renderer
    context: Context
    parser: Parser
    sampling: Sampling
    critic: Critic | None = None
    embed: Embed | None = None
    models: Mapping[str, RoleModel] = field(default_factory=dict[str, RoleModel])
    name: str = POLICY
    guard: Guard | None = None

    @property
    def format(self) -> PolicyFormat:
        """The formats of the policy."""
        return PolicyFormat(renderer=self.renderer, context=self.context, parser=self.parser)

    def model(self, role: str) -> RoleModel:
        """The model of a role.

        Raises:
            ValueError: when the run has none.
        """
        if role == POLICY:
            return RoleModel(engine=self.engine, renderer=self.renderer, name=self.name)
        if role not in self.models:
            raise ValueError(
                f"Agent.models: got no model for the role {role!r}; need one of {[POLICY, *self.models]}; "
                f"set models.{role}"
            )
        return self.models[role]


@piece
class Limits:
    """Budgets of a path and of a tree. No budget is ever exceeded.

    A path that reaches a budget ends as `TRUNCATED`; `Tree.truncated_by` names the budget. The budgets of a tree are
    shared by all its branches. A turn starts only if its worst-case cost fits them: `sampling.max_tokens` sampled
    tokens and every step that may have to be replayed.

    Attributes:
        turns: Maximum number of actions on one path, without those of `Task.start`: a number or a schedule.
        tokens: Maximum number of sampled tokens on one path, a number or a schedule; None for no limit.
        tree_turns: Maximum number of environment steps in a tree, replayed ones included; None for no limit.
        tree_tokens: Maximum number of sampled tokens in a tree; None for no limit.
        tree_calls: Maximum number of engine requests in a tree (completions, scores, values); None for no limit.
        env_deadline_s: Maximum duration of one environment call, in seconds, before the run counts as stuck. Workers
            have a shorter deadline of their own, after which they are replaced.
        engine_deadline_s: Maximum duration of one completion, in seconds, before the run counts as stuck.
    """

    turns: Annotated[IntOrSchedule, AtLeast(1)] = 16
    tokens: Annotated[IntOrSchedule | None, AtLeast(1)] = None
    tree_turns: Annotated[int | None, AtLeast(1)] = None
    tree_tokens: Annotated[int | None, AtLeast(1)] = None
    tree_calls: Annotated[int | None, AtLeast(1)] = None
    env_deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 600.0
    engine_deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 600.0
