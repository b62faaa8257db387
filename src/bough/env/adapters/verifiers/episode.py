"""An episode of verifiers: its program runs in a thread of its own and waits for the agent's actions."""

import asyncio
import json
import math
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bough.env.adapters.verifiers.taskset import Loaded, vf
from bough.env.adapters.verifiers.verifiers_tools import Toolsets
from bough.env.env import EnvFault
from bough.tree import Action, AgentAction, Message, Tool, ToolCall
from bough.usercode.loop import start_loop
from bough.usercode.origin import describe

BLOCKED_S = 1.0
"""Longest wait, in seconds, for a free moment of the event loop before it counts as blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the program gives after an action.

    Attributes:
        messages: The messages since the last action.
        tools: The tools.
        valid: Whether the last action had a text or calls that fit their schemas.
        over: Whether the episode has ended.
        cut: Whether a limit ended it.
        reward: The reward of the whole episode, when it has ended.
        rewards: Its parts by name, weighted.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    valid: bool = True
    over: bool = False
    cut: bool = False
    reward: float = 0.0
    rewards: tuple[tuple[str, float], ...] = ()


class VerifiersEpisode:
    """The program of an episode.

    Args:
        loaded: The taskset.
        task: Its task.
        name: The taskset's id, for its environment program.
        max_steps: Maximum number of actions.
        deadline_s: Maximum seconds between an action and the next turn.
    """

    def __init__(self, *, loaded: Loaded, task: Any, name: str, max_steps: int, deadline_s: float) -> None:
        self._loaded, self._task, self._name = loaded, task, name
        self._max_steps, self._deadline_s = max_steps, deadline_s
        self._loop = _running_loop()
        self._program: asyncio.Task[Turn] | None = None
        self._asked: asyncio.Queue[Turn] = asyncio.Queue()
        self._answers: asyncio.Queue[AgentAction] = asyncio.Queue()
        self.unread: list[Message] = []
        self.valid = True
        self.traces: list[Any] = []

    def open(self) -> Turn:
        """Runs the program to the first turn of the agent.

        Raises:
            EnvFault: when the program raises or hangs; likewise in `act`.
        """
        return self._wait(self._begin())

    def act(self, action: AgentAction) -> Turn:
        """Gives the program an action."""
        return self._wait(self._answer(action))

    def close(self) -> None:
        """Ends the program; it may have ended already."""
        if self._program is not None:
            self._loop.call_soon_threadsafe(self._program.cancel)

    async def ask(self, tools: tuple[Tool, ...]) -> AgentAction:
        """Waits for the agent's next action; called by the program."""
        messages, self.unread = tuple(self.unread), []
        self._asked.put_nowait(Turn(messages=messages, tools=tools, valid=self.valid))
        return await self._answers.get()

    @property
    def max_steps(self) -> int:
        """Maximum number of actions."""
        return self._max_steps

    def shared_and_own(self, task: Any) -> tuple[list[Any], list[Any]]:
        """New toolsets: those for all tasks, and those of a task."""
        taskset = self._loaded.taskset
        return taskset.toolsets(taskset.config), task.toolsets(task.config)

    def _wait(self, work: Coroutine[Any, Any, Turn]) -> Turn:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(self._deadline_s)
        except TimeoutError:
            self.close()
            _replace_if_blocked(self._loop)
            raise EnvFault(
                f"Verifiers: task {self._task.data.idx} of {self._name} gave no turn within {self._deadline_s:g} s; "
                "need a program that answers, or a larger deadline_s"
            ) from None
        except (ImportError, EnvFault):
            raise
        except (Exception, SystemExit) as error:
            raise EnvFault(f"Verifiers: task {self._task.data.idx} of {self._name} raised {describe(error)}") from error

    async def _begin(self) -> Turn:
        self._program = asyncio.create_task(self._run())
        return await self._next()

    async def _answer(self, action: AgentAction) -> Turn:
        self._answers.put_nowait(action)
        return await self._next()

    async def _next(self) -> Turn:
        assert self._program is not None
        asked = asyncio.create_task(self._asked.get())
        await asyncio.wait({asked, self._program}, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            return asked.result()
        asked.cancel()
        return self._program.result()

    async def _run(self) -> Turn:
        if self._loaded.program is None:
            async with Player(self, "agent").interaction(self._task) as talk:
                await talk.turn()
                talk.trace.stop("agent_completed")
        else:
            await self._play_program()
        rewards = [
            (name, float(each.value))
            for trace in self.traces
            for name, each in trace.rewards.items()
            if each is not None
        ]
        reward = float(sum(trace.reward for trace in self.traces))
        if not math.isfinite(reward):
            raise ValueError(f"got the reward {reward} of {dict(rewards)}; need finite numbers")
        return Turn(
            messages=tuple(self.unread),
            valid=self.valid,
            over=True,
            cut=any(trace.is_truncated for trace in self.traces),
            reward=reward,
            rewards=tuple(rewards),
        )

    async def _play_program(self) -> None:
        """The taskset's own environment program, with the agent in its one seat."""
        package = vf()
        kind = self._loaded.program
        generic = import_module("verifiers.v1.utils.generic")
        config_kind = generic.concrete_type(kind, package.EnvConfig, origin=package.Env) or package.EnvConfig
        config = config_kind(taskset=self._loaded.taskset.config)
        program = object.__new__(kind)  # Its __init__ would load a harness, which starts models.
        program.config, program.taskset = config, self._loaded.taskset
        seats = list(import_module("verifiers.v1.configs.agent").agent_config_fields(config))
        if len(seats) != 1:
            raise ValueError(f"got the seats {seats} of {kind.__name__}; need one: no model plays another seat")

        def seat(name: str, spec: Any) -> Player:
            del spec
            return Player(self, name)

        agents = package.Agents(config, seat)
        await program.start()
        try:
            await program.setup(agents)
            await program.run(self._task, agents)
            traced = package.TraceTask(type=type(self._task).__name__, data=self._task.data)
            await program.finalize(self._task, package.Episode(task=traced, traces=self.traces))
        finally:
            await program.stop()


class Player:
    """The agent of a program: a stand-in of `verifiers.v1.Agent` whose actions come from outside.

    Args:
        episode: The episode.
        name: The seat.
    """

    def __init__(self, episode: VerifiersEpisode, name: str) -> None:
        self._episode = episode
        self.name = name
        self.trainable = True

    @asynccontextmanager
    async def interaction(self, task: Any, **options: Any) -> "AsyncGenerator[Talk]":
        """A conversation about a task; its trace is scored at the end.

        Raises:
            ValueError: when the program holds a second one.
        """
        del options
        if self._episode.traces:
            raise ValueError("got a second conversation in an episode; need a program that holds one")
        package, state = vf(), import_module("verifiers.v1.state")
        trace = package.Trace(
            task=package.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
            state=state.state_cls(type(task))(),
            agent=package.AgentInfo(config=package.AgentConfig(), name=self.name),
        )
        self._episode.traces.append(trace)
        await task.setup(trace, None)
        shared, own = self._episode.shared_and_own(task)
        tools = Toolsets([*shared, *own], trace.state)
        try:
            await tools.open(task.data, len(shared))
            yield Talk(self._episode, task, trace, tools)
        finally:
            with suppress(Exception):
                await tools.close()
        trace.stop("user_closed")
        await task.finalize(trace, None)
        await task.score(trace, None)
        trace.ok = True

    async def run(self, task: Any, **options: Any) -> Any:
        """One reply to a task, with tool calls before it; returns the trace."""
        async with self.interaction(task, **options) as talk:
            await talk.turn()
            talk.trace.stop("agent_completed")
        return talk.trace


class Talk:
    """A conversation: a stand-in of `verifiers.v1.Interaction`.

    Args:
        episode: The episode.
        task: The task.
        trace: Its trace.
        tools: Its tools.
    """

    def __init__(self, episode: VerifiersEpisode, task: Any, trace: Any, tools: Toolsets) -> None:
        self.trace = trace
        self._episode, self._task, self._tools = episode, task, tools
        self._started = False

    async def turn(self, message: Any = None) -> Any:
        """Sends a user's message; returns the agent's reply, after its tool calls, as a `Segment`.

        Raises:
            ValueError: when the task has a prompt and a message comes before the first reply, or neither is there.
        """
        package = vf()
        prompt = None if self._started else self._task.data.prompt
        if (message is None) == (prompt is None):
            raise ValueError("got a turn with a prompt and a message, or with none; need one of them")
        if self._limited():
            return package.Segment(messages=[], terminated=True)
        if not self._started and self._task.data.system_prompt:
            self._add(package.SystemMessage(content=self._task.data.system_prompt))
        self._started = True
        given: Any = prompt if message is None else message
        parse = import_module("verifiers.v1.agent").parse_message
        for each in [package.UserMessage(content=given)] if isinstance(given, str) else given:
            self._add(parse(each) if isinstance(each, dict) else each)
        begin = len(self.trace.nodes)
        while not self._limited() and await self._reply():
            pass
        return package.Segment(messages=[each.message for each in self.trace.nodes[begin:]])

    def _limited(self) -> bool:
        """Whether the conversation was stopped, or is now, by the limit of actions."""
        if self.trace.stop_condition is None and self.trace.num_turns >= self._episode.max_steps:
            self.trace.stop("max_turns")
        return self.trace.stop_condition is not None

    async def _reply(self) -> bool:
        """One action of the agent with the results of its calls; returns whether another action follows."""
        package, session = vf(), import_module("verifiers.v1.session")
        action = await self._episode.ask(self._tools.tools)
        action = Action(text=action) if isinstance(action, str) else action
        good = [each for each in action.calls if isinstance(each, ToolCall)]
        names = {id(each): _plain(each.call_id) or f"call_{number}" for number, each in enumerate(good)}
        calls = [
            package.ToolCall(id=names[id(each)], name=_plain(each.name), arguments=json.dumps(dict(each.arguments)))
            for each in good
        ]
        text = _plain(action.text)
        self._add(package.AssistantMessage(content=text, tool_calls=calls or None), sampled=True)
        self._episode.valid = bool(text.strip()) if not action.calls else True
        for each in action.calls:
            result, valid = await self._tools.result(each)
            self._episode.valid &= valid
            call_id = each.call_id if isinstance(each, ToolCall) else ""
            self._add(
                package.ToolMessage(tool_call_id=names.get(id(each), ""), content=_plain(result)), call_id=call_id
            )
        for stop in self._task.hooks("stop"):
            if await session.call_hook(stop, {package.Trace: self.trace}):
                self.trace.stop(stop.__name__)
        return bool(action.calls)

    def _add(self, message: Any, *, sampled: bool = False, call_id: str = "") -> None:
        """Adds a message to the trace, and to what the agent has not read."""
        package = vf()
        nodes = self.trace.nodes
        nodes.append(package.MessageNode(parent=len(nodes) - 1 if nodes else None, message=message, sampled=sampled))
        if not sampled:
            text = import_module("verifiers.v1.types").content_text(message.content)
            self._episode.unread.append(Message(role=message.role, content=text, call_id=call_id))


def _plain(text: str) -> str:
    """A text without lone surrogates, which the package's messages refuse."""
    return text.encode(errors="replace").decode()


_LOOPS: list[asyncio.AbstractEventLoop] = []
"""At most one event loop, of new programs: empty before the first one, and after a program blocked it."""

_LOCK = threading.Lock()


def _running_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all programs, in a thread of its own: environments are called synchronously."""
    with _LOCK:
        if not _LOOPS:
            _LOOPS.append(start_loop("verifiers"))
        return _LOOPS[0]


def _replace_if_blocked(loop: asyncio.AbstractEventLoop) -> None:
    """Gives new episodes another loop when a program's blocking call holds this one."""
    free = threading.Event()
    loop.call_soon_threadsafe(free.set)
    if not free.wait(BLOCKED_S):
        with _LOCK:
            if loop in _LOOPS:
                _LOOPS.remove(loop)
