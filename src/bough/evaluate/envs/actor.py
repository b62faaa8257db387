"""Random actions for any environment."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from bough.env import Env, State
from bough.evaluate.envs.arguments import arguments_for
from bough.needs import CALLS, needs_of
from bough.tree import Action, AgentAction, ToolCall, action_text, plain_text

WORD = re.compile(r"[\w./@:-]+")
FINAL = 0.1
"""Probability of a text without a call, which is the final answer in many environments of tools."""
MOST_WORDS = 400


def takes_calls(env: Env) -> bool:
    """Whether the actions of an environment are `Action`."""
    return CALLS in needs_of(env)


@dataclass(slots=True, kw_only=True)
class RandomActor:
    """Draws actions: of `State.admissible` where listed, else calls of the tools, else known actions and words.

    Texts for the arguments of calls are words of the observations, and of actions of oracles.

    Attributes:
        calls: Whether the environment takes `Action`.
        rng: Source of random choices.
        known: Actions that an oracle planned, for environments that list none.
        words: Words of the observations, the newest last.
    """

    calls: bool
    rng: Random
    known: Sequence[AgentAction] = ()
    words: list[str] = field(default_factory=list[str])

    def observe(self, state: State) -> None:
        """Adds the words of an observation."""
        self.words.extend(WORD.findall(plain_text(state.observation)))
        del self.words[:-MOST_WORDS]

    def act(self, state: State) -> AgentAction:
        """A random action in a state."""
        if self.calls and state.tools:
            return self._call(state) if self.rng.random() >= FINAL else Action(text=self._text())
        if state.admissible:
            return self._own(self.rng.choice(state.admissible))
        if self.known and self.rng.random() < 0.7:
            return self._own(self.rng.choice(self.known))
        return self._own(self._text())

    def _call(self, state: State) -> Action:
        tool = self.rng.choice(state.tools)
        arguments = arguments_for(tool.schema, self.rng, self.words)
        return Action(calls=(ToolCall(name=tool.name, arguments=arguments, call_id="c1"),))

    def _own(self, action: AgentAction) -> AgentAction:
        """The action in the type that the environment takes."""
        if self.calls:
            return Action(text=action) if isinstance(action, str) else action
        return action_text(action)

    def _text(self) -> str:
        words = self.words or ["done"]
        return " ".join(self.rng.choice(words) for _ in range(self.rng.randint(1, 3)))
