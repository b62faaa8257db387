"""Simulated tools: a seat answers the calls of the agent in place of the environment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import ClassVar

from bough.env.check_call import check_call
from bough.env.env import EnvFault, Split, State, Step
from bough.env.state_value import value_of
from bough.env.wrappers.wrapper import Wrapper
from bough.needs import CALLS, Need
from bough.piece import piece
from bough.tree import Action, AgentAction, Message, Outcome, Task, ToolCall, action_text, plain_text

AGENT, TOOLS = "agent", "tools"
MAX_CHARACTERS = 4000
"""Maximum length of a simulated result, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedEpisode:
    """The value of a state of `SimulatedTools`.

    Attributes:
        inner: The inner environment's state.
        task: The task.
        action: The agent's action whose calls are answered; None while the agent acts.
        before: The inner state before that action, with the tools of its calls; None while the agent acts.
        results: The results of the first calls of the action.
        exchanges: Each call so far, as a text, and its simulated result.
    """

    inner: State
    task: Task
    action: Action | None = None
    before: State | None = None
    results: tuple[str, ...] = ()
    exchanges: tuple[tuple[str, str], ...] = ()


@piece
class SimulatedTools(Wrapper):
    """CM2's simulated tools (arXiv 2602.12268): the seat "tools", a model, answers each call of the seat "agent".

    The seat "tools" reads the description and the schema of the tool, the calls so far with their results, the task's
    fields named in `data`, and the call; its text is the result. A call that does not fit its schema is answered by the
    environment: the result names the problem.

        agent   look()                    tools   need: rice tea   have: tea   missing: 1
        agent   buy({"good": "rice"})     tools   missing: 0
        agent   done

    The agent reads simulated results alone. The environment executes the calls too: its reward, success, limits and
    state keys are those of the real tools. Where tools have no code yet, functions that return "" have the same schema,
    and the reward is a judge's, such as `Checklist`. `Step.info["exact_match"]` is whether a result is the real one.

    The oracle of the seat "tools" is the environment itself, so a warm-up teaches a small model to simulate.

    Attributes:
        env: An environment with tools.
        data: The fields of `Task.data` that the seat "tools" reads, such as the content of a database.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})

    seats: ClassVar[Mapping[str, str]] = {
        AGENT: "You call tools, then answer.",
        TOOLS: "You simulate the tools of an agent. Answer with the result of the last call alone.",
    }

    data: tuple[str, ...] = ()

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns the inner environment's tasks.

        Raises:
            ValueError: when a task has no field named in `data`.
        """
        found = list(self.env.tasks(split, count, seed))
        for task in found:
            if missing := [name for name in self.data if name not in task.data]:
                raise ValueError(
                    f"SimulatedTools.data: got {missing[0]!r}; task {task.id} has the fields {sorted(task.data)}"
                )
        return found

    def start(self, task: Task) -> State:
        """Returns the first state, in which the agent acts."""
        inner = self.env.start(task)
        return _acting(SimulatedEpisode(inner=inner, task=task), inner.observation)

    def step(self, state: State, action: AgentAction) -> Step:
        """Executes the agent's action, or adds a simulated result; a result without text is not valid."""
        episode = value_of(state, SimulatedEpisode, "SimulatedTools")
        if episode.action is not None:
            return self._answered(episode, action)
        step = self.env.step(episode.inner, action)
        given = action if isinstance(action, Action) else Action(text=action)
        after = replace(episode, inner=step.state)
        if step.outcome is not Outcome.OPEN or not given.calls:
            return replace(step, state=_acting(after, step.state.observation))
        return replace(step, state=self._next(replace(after, action=given, before=episode.inner)))

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the inner oracle's actions; before them, where the seat "tools" acts, the real result."""
        episode = value_of(state, SimulatedEpisode, "SimulatedTools")
        actions = self.inner_plan(episode.inner)
        if episode.action is None:
            return actions
        return Action(text=_real(episode)), *(actions or ())

    def _answered(self, episode: SimulatedEpisode, action: AgentAction) -> Step:
        """The step after a simulated result."""
        text = action_text(action).strip().encode(errors="replace").decode()[:MAX_CHARACTERS]
        call, real = _call(episode), _real(episode)
        after = replace(
            episode,
            results=(*episode.results, text),
            exchanges=(*episode.exchanges, (_text(call), text)),
        )
        return Step(state=self._next(after), valid=bool(text), info={"exact_match": text == real.strip()})

    def _next(self, episode: SimulatedEpisode) -> State:
        """The state of the next call that is simulated, or of the agent when all calls have a result."""
        assert episode.action is not None
        assert episode.before is not None
        calls, tools = episode.action.calls, episode.before.tools
        while len(episode.results) < len(calls):
            if not check_call(calls[len(episode.results)], tools):
                return self._simulating(episode)
            episode = replace(episode, results=(*episode.results, _real(episode)))
        shown = tuple(
            replace(message, content=text) for message, text in zip(_messages(episode), episode.results, strict=True)
        )
        return _acting(replace(episode, action=None, before=None, results=()), shown)

    def _simulating(self, episode: SimulatedEpisode) -> State:
        """The state in which the seat "tools" answers a call."""
        call = _call(episode)
        assert episode.before is not None
        (tool,) = (each for each in episode.before.tools if each.name == call.name)
        facts = [f"{name}: {json.dumps(episode.task.data[name])}" for name in self.data]
        past = [f"{said}\n{result}" for said, result in episode.exchanges]
        about = f"{tool.name}: {tool.description} {json.dumps(tool.schema)}"
        text = "\n".join([about, *facts, *past, _text(call)])
        acted = action_text(episode.action or "").encode(errors="replace").decode()
        key = f"{len(episode.results)} {acted}"
        return State(observation=text, key=_key(episode, f"{TOOLS} {key}"), value=episode, seat=TOOLS)


def _acting(episode: SimulatedEpisode, observation: str | tuple[Message, ...]) -> State:
    """The state in which the agent reads an observation."""
    inner = episode.inner
    key = _key(episode, AGENT)
    return replace(inner, observation=observation, key=key, value=episode, seat=AGENT)


def _key(episode: SimulatedEpisode, prefix: str) -> str:
    """The key of a state: the inner one, and all simulated results; "" without an inner key."""
    past = blake2b(json.dumps(episode.exchanges).encode(), digest_size=8).hexdigest()
    return f"{prefix} {episode.inner.key} {past}" if episode.inner.key else ""


def _messages(episode: SimulatedEpisode) -> tuple[Message, ...]:
    """The real results, one message for each call."""
    found = episode.inner.observation
    assert episode.action is not None
    if isinstance(found, str) or len(found) != len(episode.action.calls):
        raise EnvFault(
            f"SimulatedTools: got {plain_text(found)!r} after {len(episode.action.calls)} calls; need an environment "
            "with one message for each call"
        )
    return found


def _call(episode: SimulatedEpisode) -> ToolCall:
    """The call that is answered."""
    assert episode.action is not None
    call = episode.action.calls[len(episode.results)]
    assert isinstance(call, ToolCall)
    return call


def _text(call: ToolCall) -> str:
    """A call as a text, without lone surrogates, which arguments can contain."""
    return action_text(Action(calls=(call,))).encode(errors="replace").decode()


def _real(episode: SimulatedEpisode) -> str:
    """The environment's result of the call that is answered."""
    return _messages(episode)[len(episode.results)].content
