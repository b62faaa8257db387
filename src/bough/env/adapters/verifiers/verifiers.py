"""Tasksets of verifiers (github.com/PrimeIntellect-ai/verifiers), version 1 of its protocol."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from bough.env.adapters.outside import Live, Position
from bough.env.adapters.verifiers.episode import Turn, VerifiersEpisode
from bough.env.adapters.verifiers.taskset import Loaded, draw_tasks, load_taskset
from bough.env.env import Branching, Split, State, Step
from bough.env.wrappers.replay import Replay
from bough.needs import CALLS, Need
from bough.piece import Above, AtLeast, piece
from bough.tree import AgentAction, Message, Outcome, Task
from bough.usercode.address import address_of


@piece
class Verifiers:
    """A taskset of verifiers; needs the extra `verifiers`. `verifiers_env` makes one with branching.

    The observation is a task's prompt, with its system prompt in front; later ones are the results of tool calls and
    the messages of a scripted user. An action is a text, or calls where the taskset has tools. A text without calls is
    the reply; the taskset's environment program answers it, or the episode ends. The reward is the sum of the task's
    weighted rewards, which the package computes from the trace at the end.

    The program of an episode and its tools run in one thread of this process. Not played: tasks in containers, judges
    and users that are models, programs with several seats, and hooks on requests.

    Attributes:
        taskset: The id of an installed taskset, or the address of a `Taskset` class or of a function that returns one.
        config: JSON object with the fields of the taskset's config.
        program: Id of an environment program of the package, such as "textarena"; "" for the taskset's own.
        instructions: The system prompt of all tasks.
        max_steps: Maximum number of actions.
        max_tasks: Maximum number of tasks that are read of the taskset.
        success_at: Least reward of a success.
        deadline_s: Maximum seconds between an action and the next turn.

    Raises:
        ValueError: when a number is out of its range, or `config` is no JSON object.
    """

    taskset: str
    config: str = "{}"
    program: str = ""
    instructions: str = "Do the task."
    max_steps: Annotated[int, AtLeast(1)] = 32
    max_tasks: Annotated[int, AtLeast(1)] = 10_000
    success_at: float = 1.0
    deadline_s: Annotated[float, Above(0)] = 60.0
    branching = Branching.NONE  # a program has one present state

    def __post_init__(self) -> None:
        try:
            found: object = json.loads(self.config)
        except ValueError as error:
            raise ValueError(f"Verifiers.config: got {self.config!r}; need a JSON object ({error})") from error
        if not isinstance(found, dict):
            raise ValueError(f"Verifiers.config: got {self.config!r}; need a JSON object")

    @property
    def needs(self) -> frozenset[Need]:
        """Calls of tools, where the taskset has tools."""
        return frozenset({CALLS} if self._loaded().has_tools else ())

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split; a hash of a task's data decides the split.

        Raises:
            ValueError: when the split has fewer, or the taskset needs what is not here.
            ImportError: when verifiers is not installed.
        """
        return draw_tasks(self._loaded(), self.taskset, split, count, seed)

    def start(self, task: Task) -> State:
        """Returns the prompt of a task.

        Raises:
            ValueError: when the taskset has no such task.
            EnvFault: when the program raises or hangs.
            ImportError: when verifiers is not installed.
        """
        loaded = self._loaded()
        found = loaded.tasks.get(str(task.data.get("content")))
        if found is None:
            raise ValueError(f"Verifiers: task {task.id} is not in {self.taskset}; need the version that made the task")
        episode = VerifiersEpisode(
            loaded=loaded, task=found, name=self.taskset, max_steps=self.max_steps, deadline_s=self.deadline_s
        )
        live = Live(episode, VerifiersEpisode.close)
        return _state(Position(live), episode.open())

    def step(self, state: State, action: AgentAction) -> Step:
        """Gives the program an action.

        Raises:
            EnvFault: when the program raises or hangs, or the state is not the newest one of its episode.
        """
        assert isinstance(state.value, Position)
        episode: VerifiersEpisode = state.value.take("Verifiers")
        turn = episode.act(action)
        after = state.value.after(executed=True)
        ended = Outcome.TRUNCATED if turn.cut else Outcome.TERMINATED
        if turn.over:
            after.live.end()
        return Step(
            state=_state(after, turn),
            reward=turn.reward,
            outcome=ended if turn.over else Outcome.OPEN,
            valid=turn.valid,
            success=turn.over and turn.reward >= self.success_at,
            info={"rewards": dict(turn.rewards)} if turn.over else {},
        )

    def _loaded(self) -> Loaded:
        return load_taskset(self.taskset, self.config, self.max_tasks, self.program)


def verifiers_env(
    taskset: Any,
    *,
    config: Mapping[str, Any] | None = None,
    program: str = "",
    instructions: str = "Do the task.",
    max_steps: int = 32,
    max_tasks: int = 10_000,
    success_at: float = 1.0,
    deadline_s: float = 60.0,
    keep: int = 64,
) -> Replay:
    """A taskset of verifiers with branching, for tools and programs that draw no random numbers.

    Args:
        taskset: The id of an installed taskset, a `Taskset` class or a function that returns a taskset at the top of a
            module or a file; or a taskset, of which the class and the config are kept.
        config: The fields of the taskset's config.
        program: Id of an environment program of the package; "" for the taskset's own.
        instructions: The system prompt of all tasks.
        max_steps: Maximum number of actions.
        max_tasks: Maximum number of tasks that are read of the taskset.
        success_at: Least reward of a success.
        deadline_s: Maximum seconds between an action and the next turn.
        keep: Maximum number of live episodes.

    Raises:
        ValueError: when a taskset is a view, such as `taskset.take(5)`, or its class is not at the top of a module; or
            when it is no taskset, or `config` is no JSON.
    """
    fields = dict(config or {})
    if not isinstance(taskset, str) and not callable(taskset):
        if not hasattr(taskset, "config"):
            raise ValueError(
                f"verifiers_env.taskset: got {taskset!r:.200}; need the id of an installed taskset, a Taskset class, a "
                "function that returns a taskset, or a taskset"
            )
        if getattr(taskset, "transform", None) is not None:
            raise ValueError("verifiers_env: got a view of a taskset; need the taskset, or a function that returns it")
        fields = {**taskset.config.model_dump(mode="json", exclude_defaults=True), **fields}
        taskset = taskset.__class__
    try:
        written = json.dumps(fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"verifiers_env.config: got {fields!r:.200}; need values of JSON ({error})") from error
    env = Verifiers(
        taskset=taskset if isinstance(taskset, str) else address_of(taskset),
        config=written,
        program=program,
        instructions=instructions,
        max_steps=max_steps,
        max_tasks=max_tasks,
        success_at=success_at,
        deadline_s=deadline_s,
    )
    return Replay(env=env, keep=keep)


def _state(position: Position, turn: Turn) -> State:
    messages = turn.messages
    if messages and messages[0].role == "system":
        # Chat templates have one system prompt, which is that of the run.
        system, *rest = messages
        if rest and rest[0].role == "user":
            rest[0] = Message(role="user", content=f"{system.content}\n\n{rest[0].content}")
            messages = tuple(rest)
    plain = messages[0].content if len(messages) == 1 and messages[0].role == "user" else messages
    return State(observation=plain or "", key="", value=position, tools=turn.tools)
