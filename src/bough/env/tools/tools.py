"""Python functions and MCP servers as tools of an environment."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Annotated, Any, ClassVar

from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.hub_dataset import HubDataset
from bough.env.rows import Lines, RowSource, check_row_file, check_settings, prompt_of, settings_of
from bough.env.state_value import value_of
from bough.env.tools.mcp import McpServer
from bough.env.tools.toolbox import EpisodeResources, Toolbox
from bough.env.wrappers.replay import Replay
from bough.needs import CALLS, ORACLE, Need
from bough.piece import AtLeast, piece
from bough.tree import TOOL_EXCEPTIONS, Action, BadCall, Message, Observation, Outcome, Task, ToolCall, copied_fields
from bough.usercode.address import address_of
from bough.usercode.origin import describe, shorten

LIVE_SERVERS = 16
"""Maximum number of states that `Replay` keeps with servers of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """The value of a state of `ToolsEnv`: the task, the actions so far, their calls and wrong calls, what they changed.

    Without copies `live` is None before the first action, so that the first state can be stepped many times.
    """

    task: Task
    actions: tuple[Action, ...] = ()
    calls: int = 0
    errors: int = 0
    live: EpisodeResources | None = None


@piece
class ToolsEnv:
    """Tools that change a state. `tools_env` makes one from functions; the fields hold their addresses.

    The observation is the task's prompt, then one message for each call. Calls of one action are executed in order.
    An action without a call is the final answer and ends the episode. The reward is computed then. An action with more
    calls or more wrong calls than are left truncates the episode, without a reward.

    A call that does not fit its schema is not executed: the model reads why, and the action is not valid. A tool's
    `ToolError`, ValueError, LookupError or ArithmeticError is a result that the model reads. Any other exception is a
    fault of the environment, and so is a result that JSON cannot write. What a tool changed before its exception stays
    changed. `Step.info` has the LookupErrors and ArithmeticErrors with their places, since they may be mistakes.

    Attributes:
        tools: Addresses of functions, `path/to/file.py:name` or `module:name`.
        servers: MCP servers, whose tools are added.
        rows: A path to JSON lines, CSV or Parquet, the address of a function that returns rows, or JSON lines.
        dataset: A data set of the hub, in place of `rows`.
        reward: Address of the reward function.
        state: Address of the state factory; "" for functions without a state.
        oracle: Address of the oracle; "" without one.
        key: Address of the function that names states; "" without one.
        copier: Address of the function that copies a state; "" for `copy.deepcopy`.
        instructions: The system prompt.
        max_calls: Maximum number of calls in an episode.
        max_errors: Maximum number of calls in an episode that are not executed; None sets no limit.
        success_at: Least reward of a success, for rewards that are no bool.
        result_characters: Longer results are cut, with a note of their length.
        branching: `COPY`, or `NONE` for states that are changed in place; `Replay` makes these branch.
        name: Begins the ids of tasks.
        concurrent: Whether its calls run in threads, several at a time (`Waits`); None: where it has servers.

    Raises:
        ValueError: when a function is not found or cannot be a tool, or a field is out of its range.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})

    tools: tuple[str, ...] = ()
    servers: tuple[McpServer, ...] = ()
    rows: Lines = ()
    dataset: HubDataset | None = None
    reward: str
    state: str = ""
    oracle: str = ""
    key: str = ""
    copier: str = ""
    instructions: str = ""
    max_calls: Annotated[int, AtLeast(1)] = 16
    max_errors: Annotated[int | None, AtLeast(0)] = None
    success_at: float = 1.0
    result_characters: Annotated[int, AtLeast(1)] = 4000
    branching: Branching = Branching.COPY
    name: str = "tools"
    concurrent: bool | None = None
    _toolbox: "Toolbox" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.branching is Branching.REPLAY:
            raise ValueError("ToolsEnv.branching: got replay; need Replay(env=ToolsEnv(branching=none, ...))")
        if self.branching is Branching.COPY and not all(server.stateless for server in self.servers):
            raise ValueError("ToolsEnv.branching: got copy with a server of the episode; need none, or stateless=true")
        if not self.tools and not self.servers:
            raise ValueError(
                "ToolsEnv: got no tools; need a function or a server; for tasks of one prompt and one answer, without "
                "tools, take prompts_env(tasks=..., reward=...)"
            )
        check_settings("ToolsEnv", self.rows, self.dataset)
        toolbox = Toolbox(
            name=self.name,
            tools=self.tools,
            servers=self.servers,
            rows=self.dataset or self.rows,
            reward=self.reward,
            state=self.state,
            oracle=self.oracle,
            key=self.key,
            copier=self.copier,
        )
        object.__setattr__(self, "_toolbox", toolbox)

    def __reduce__(self) -> "tuple[partial[ToolsEnv], tuple[()]]":
        # The functions are imported again by their addresses, and sessions are opened again.
        return partial(ToolsEnv, **{each.name: getattr(self, each.name) for each in fields(self) if each.init}), ()

    @property
    def gives(self) -> frozenset[Need]:
        """An oracle, where there is one."""
        return frozenset({ORACLE} if self.oracle else ())

    @property
    def waits(self) -> bool:
        """Whether several calls may run at a time."""
        return bool(self.servers) if self.concurrent is None else self.concurrent

    @property
    def data_hash(self) -> str:
        """SHA-256 of the rows."""
        return self._toolbox.tasks.digest

    def check_files(self) -> None:
        """Checks that the file of rows exists.

        Raises:
            FileNotFoundError: when it does not.
        """
        check_row_file(self.rows, self.name)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split.

        Raises:
            ValueError: when the split has fewer, or a row is wrong.
        """
        return self._toolbox.tasks.draw(split, count, seed)

    def start(self, task: Task) -> State:
        """Returns the first state: the prompt, and the tools.

        Raises:
            ValueError: when `task.data["prompt"]` is neither a text nor messages.
        """
        prompt = prompt_of(self.name, task)
        live = self._fresh(task)
        try:
            self._toolbox.list_tools(live, task)
            episode = Episode(task=task, live=live if self.branching is Branching.COPY else None)
            return self._state(episode, live, prompt)
        finally:
            live.close()

    def step(self, state: State, action: Action) -> Step:
        """Executes the calls of an action, or ends the episode with its text.

        Raises:
            EnvFault: when the state cannot be copied, is not the newest one, or a server failed.
        """
        episode = value_of(state, Episode, "ToolsEnv")
        live = self._reach(episode)
        live.actions += 1
        if not action.calls:
            return self._end(episode, live, action)
        left = self.max_calls - episode.calls
        results = [self._toolbox.result(live, episode.task, call) for call in action.calls[:left]]
        errors = episode.errors + sum(not each.valid for each in results)
        over = len(action.calls) > left or (self.max_errors is not None and errors > self.max_errors)
        refused = f"error: not executed, the limit is {self.max_calls} calls"
        texts = [*(each.text for each in results), *[refused] * (len(action.calls) - len(results))]
        messages = tuple(
            Message(role="tool", content=self._written(text), call_id="" if isinstance(call, BadCall) else call.call_id)
            for call, text in zip(action.calls, texts, strict=True)
        )
        after = Episode(
            task=episode.task,
            actions=(*episode.actions, action),
            calls=episode.calls + len(results),
            errors=errors,
            live=live,
        )
        if over:
            live.close()
        return Step(
            state=self._state(after, live, messages),
            outcome=Outcome.TRUNCATED if over else Outcome.OPEN,
            valid=all(each.valid for each in results),
            info={TOOL_EXCEPTIONS: raised} if (raised := [each.raised for each in results if each.raised]) else {},
        )

    def plan(self, state: State) -> tuple[Action, ...] | None:
        """Returns what is left of the oracle's plan; None without an oracle or a plan.

        It is the rest of the plan from the earliest state after which all actions followed that plan. So a plan may
        look things up before it acts, and the oracle depends on the state alone.
        """
        if self._toolbox.oracle is None:
            return None
        episode = value_of(state, Episode, "ToolsEnv")
        live = self._fresh(episode.task)
        try:
            for begin in range(len(episode.actions) + 1):
                plan = tuple(map(_action, self._toolbox.plan(live.state, episode.task)))
                done = [_content(each) for each in episode.actions[begin:]]
                if len(plan) > len(done) and [_content(each) for each in plan[: len(done)]] == done:
                    return plan[len(done) :]
                for call in episode.actions[begin].calls if begin < len(episode.actions) else ():
                    self._toolbox.result(live, episode.task, call)
            return None
        finally:
            live.close()

    def close(self) -> None:
        """Ends all servers."""
        self._toolbox.sessions.close()

    def can_copy(self) -> bool:
        """Whether the state of the first task can be copied; True without a state or a task."""
        first = self._toolbox.tasks.first
        if first is None:
            return True
        try:
            self._copied(self._fresh(first).state)
        except EnvFault:
            return False
        return True

    def _copied(self, state: object) -> object:
        """A copy of the user's state.

        Raises:
            EnvFault: when it cannot be copied.
        """
        try:
            return self._toolbox.copier(state)
        except Exception as error:
            raise EnvFault(
                f"{self.name}: got a state of type {type(state).__name__} that cannot be copied ({describe(error)}); "
                "need copy=FUNCTION or branching=Branching.REPLAY in tools_env"
            ) from error

    def _fresh(self, task: Task) -> EpisodeResources:
        factory = self._toolbox.factory
        return EpisodeResources(state=None if factory is None else factory(copied_fields(task.data)))

    def _reach(self, episode: Episode) -> EpisodeResources:
        """What the next action changes: a copy, or the episode's own."""
        if self.branching is Branching.COPY and episode.live is not None:
            return EpisodeResources(state=self._copied(episode.live.state), actions=episode.live.actions)
        live = episode.live or self._fresh(episode.task)
        if live.actions != len(episode.actions):
            raise EnvFault(f"{self.name}: got a state that is not the newest one; need Replay(env=...) to branch")
        return live

    def _end(self, episode: Episode, live: EpisodeResources, action: Action) -> Step:
        try:
            reward = self._toolbox.reward(live.state, copied_fields(episode.task.data), action.text.strip())
        finally:
            live.close()
        after = replace(episode, actions=(*episode.actions, action), live=live)
        return Step(
            state=self._state(after, live, ""),
            reward=float(reward),
            outcome=Outcome.TERMINATED,
            success=reward if isinstance(reward, bool) else float(reward) >= self.success_at,
        )

    def _state(self, episode: Episode, live: EpisodeResources, observation: Observation) -> State:
        key = self._toolbox.key
        name = "" if key is None else str(key(live.state, copied_fields(episode.task.data)))
        return State(observation=observation, key=name, value=episode, tools=self._toolbox.listed)

    def _written(self, text: str) -> str:
        """A result for the model: cut, and without lone surrogates, which a call can contain."""
        return shorten(text.encode(errors="replace").decode(), self.result_characters)


def tools_env(
    *,
    tools: Sequence[Callable[..., object]] = (),
    servers: Sequence[McpServer] = (),
    tasks: RowSource,
    reward: Callable[..., bool | float],
    state: Callable[[Any], object] | None = None,
    plan: Callable[[Any, Any], Iterable[Action | ToolCall | str] | None] | None = None,
    key: Callable[[Any, Any], str] | None = None,
    copy: Callable[[Any], object] | None = None,
    instructions: str = "",
    max_calls: int = 16,
    max_errors: int | None = None,
    success_at: float = 1.0,
    branching: Branching | None = None,
    name: str = "tools",
) -> ToolsEnv | Replay:
    """Makes an environment of functions and methods, plain or async, all of them with a name at the top of a file.

    A row is a task: "prompt" is a text or messages, "split" (else by a hash) and "id" are optional, the rest is free.

    Args:
        tools: Functions with type hints and docstrings. With `state` their first parameter receives the state.
        servers: MCP servers, whose tools are added.
        tasks: Rows, a path to JSON lines, CSV or Parquet, a function that returns rows, or a `HubDataset` or its id.
        reward: `reward(state, row)` or `reward(state, row, answer)`, of the final state and the final text. A bool is
            the success.
        state: `state(row)` makes the state of an episode, any object.
        plan: The oracle: `plan(state, row)` returns calls and a final text, which lead from a state to success. It
            does not change the state.
        key: `key(state, row)`; equal keys mean equal states.
        copy: Copies a state; None for `copy.deepcopy`.
        instructions: The system prompt.
        max_calls: Maximum number of calls in an episode.
        max_errors: Maximum number of calls in an episode that are not executed; None sets no limit.
        success_at: Least reward of a success, for rewards that are no bool.
        branching: None for `COPY` where the state of the first task can be copied, else `REPLAY`; with servers that
            keep a state `REPLAY` if all are deterministic, else `NONE`.
        name: Begins the ids of tasks.

    Raises:
        ValueError: when a function cannot be a tool, or no name at the top of a module leads to it.
    """
    env = ToolsEnv(
        tools=tuple(map(address_of, tools)),
        servers=tuple(servers),
        **settings_of(tasks),
        reward=address_of(reward),
        state=_address(state),
        oracle=_address(plan),
        key=_address(key),
        copier=_address(copy),
        instructions=instructions,
        max_calls=max_calls,
        max_errors=max_errors,
        success_at=success_at,
        branching=Branching.NONE,
        name=name,
    )
    return _branched(env, branching or _branching(env))


def _branched(env: ToolsEnv, branching: Branching) -> ToolsEnv | Replay:
    if branching is not Branching.REPLAY:
        return replace(env, branching=branching)
    return Replay(env=env, keep=LIVE_SERVERS) if env.servers else Replay(env=env)


def _address(function: Callable[..., object] | None) -> str:
    return "" if function is None else address_of(function)


def call(tool: Callable[..., object] | str, **arguments: object) -> Action:
    """An action of one call, for plans: `call(pay, name="ann", amount=3)`."""
    name = tool if isinstance(tool, str) else tool.__name__
    return Action(calls=(ToolCall(name=name, arguments=arguments),))


def _branching(env: ToolsEnv) -> Branching:
    if all(server.stateless for server in env.servers):
        return Branching.COPY if env.can_copy() else Branching.REPLAY
    deterministic = all(server.stateless or server.deterministic for server in env.servers)
    return Branching.REPLAY if deterministic else Branching.NONE


def _action(step: object) -> Action:
    """A step of a plan as an action, with arguments of its own: the oracle may take them from the state."""
    if isinstance(step, ToolCall):
        step = Action(calls=(step,))
    if isinstance(step, str):
        return Action(text=step)
    if not isinstance(step, Action):
        raise TypeError(f"plan: got {step!r}; need calls and texts, such as call(tool, name=value)")
    return step.copy()


def _content(action: Action) -> object:
    """What makes two actions equal: the calls without ids; the text of an action without calls."""
    calls = [each.text if isinstance(each, BadCall) else [each.name, each.arguments] for each in action.calls]
    return json.dumps(calls or action.text.strip(), sort_keys=True, default=str)
