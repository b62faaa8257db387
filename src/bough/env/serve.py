"""The server loop inside a worker process: read a request, call the environment, write the reply."""

import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from io import BufferedRWPair
from typing import Literal, TypeAlias

from bough.env.checked import ValidatedEnv
from bough.env.env import Env, EnvFault, Split, State, Step, UserCodeError
from bough.launch import receive_setup, socket_of
from bough.tree import AgentAction, Task
from bough.usercode.load import unpickle
from bough.usercode.origin import describe

LENGTH_BYTES = 8
"""Every message is its length, big-endian, then a pickle."""

Call: TypeAlias = Literal["tasks", "start", "step", "plan"]


Answer: TypeAlias = State | Step | tuple[Task, ...] | tuple[AgentAction, ...] | None


class Verdict(StrEnum):
    """The result of an exchange."""

    ANSWER = "answer"
    FAULT = "fault"
    BAD_TASK = "bad task"
    USER_CODE = "user code"
    MISSING = "missing"


ERRORS: Mapping[Verdict, type[Exception]] = {
    Verdict.FAULT: EnvFault,
    Verdict.USER_CODE: UserCodeError,
    Verdict.BAD_TASK: ValueError,
    Verdict.MISSING: ImportError,
}
"""The exception raised in the parent, by verdict, subclasses first; classes of the user may not unpickle."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Packed:
    """A pickled `State.value` in transit. Only workers unpickle it, so the parent never loads the user's classes.

    Attributes:
        blob: The pickled value.
        home: Index of the worker that may hold the live state; None without one. A hint, no part of the value.
    """

    blob: bytes
    home: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """The setup of a worker: the pickled environment, and the source files of its modules."""

    env: bytes
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An environment call: `draw` for tasks, `task` for start, `state` for step and plan, `action` for step.

    The reply has the same `number`, so a late reply to an earlier call is discarded.
    """

    call: Call
    number: int = 0
    draw: tuple[Split, int, int] | None = None
    task: Task | None = None
    state: State | None = None
    action: AgentAction = ""

    @property
    def about(self) -> str:
        """Describes the call, for messages."""
        if self.draw is not None:
            return f"{self.draw[1]} of split {self.draw[0]!r}"
        if self.task is not None:
            return f"task {self.task.id}"
        return f"action {self.action!r}" if self.call == "step" else "a state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to the request of a number: the result or an error message, and the busy seconds of the process."""

    verdict: Verdict
    number: int = 0
    answer: Answer = None
    message: str = ""
    took_s: float = 0.0


def framed(message: Request | Reply) -> bytes:
    """Encodes a message as bytes."""
    blob = pickle.dumps(message)
    return len(blob).to_bytes(LENGTH_BYTES, "big") + blob


def serve(channel_fd: int) -> None:
    """Answers requests until the channel closes. The process ends when its standard input closes."""
    try:
        connection, setup = receive_setup(channel_fd)
    except (EOFError, ConnectionError):  # the run was killed
        return
    assert isinstance(setup, WorkerSetup)
    with connection, socket_of(connection) as channel, channel.makefile("rwb") as stream:
        try:
            env = unpickle(setup.env, setup.files)
            if not isinstance(env, Env):
                raise TypeError(f"got {type(env).__name__}; need an Env")
        except Exception as broken:
            connection.send(describe(broken))
            return
        connection.send(None)
        checked = ValidatedEnv(env=env)
        while isinstance(request := _read(stream), Request):
            begin = time.perf_counter()
            reply = _reply(checked, request, setup.files)
            _write(stream, replace(reply, number=request.number, took_s=time.perf_counter() - begin))


def _reply(env: ValidatedEnv, request: Request, files: Mapping[str, str]) -> Reply:
    try:
        return Reply(verdict=Verdict.ANSWER, answer=_answer(env, request, files))
    except (EnvFault, ImportError, ValueError) as error:
        verdict = next(verdict for verdict, kind in ERRORS.items() if isinstance(error, kind))
        return Reply(verdict=verdict, message=str(error))


def _answer(env: ValidatedEnv, request: Request, files: Mapping[str, str]) -> Answer:
    if request.draw is not None:
        return env.tasks(*request.draw)
    if request.task is not None:
        return _packed(env.start(request.task), env.name)
    state = _unpacked(request.state, files)
    if request.call == "plan":
        return env.plan(state)
    step = env.step(state, request.action)
    return replace(step, state=_packed(step.state, env.name))


def _packed(state: State, name: str) -> State:
    try:
        blob = pickle.dumps(state.value)
    except Exception as broken:
        raise EnvFault(
            f"{name}: got a State.value of type {type(state.value).__name__} that cannot be pickled ({broken}); need a "
            "value, or an environment wrapped in Replay"
        ) from None
    return replace(state, value=Packed(blob=blob))


def _unpacked(state: State | None, files: Mapping[str, str]) -> State:
    if state is None or not isinstance(state.value, Packed):
        raise EnvFault("Workers: got a state that no worker has returned; need one from start or step of Workers")
    return replace(state, value=unpickle(state.value.blob, files))


def _read(stream: BufferedRWPair) -> object:
    """Returns the next message, or None at the end."""
    try:
        head = stream.read(LENGTH_BYTES)
    except ConnectionResetError:  # the run was killed with messages on their way
        return None
    size = int.from_bytes(head, "big")
    blob = stream.read(size) if len(head) == LENGTH_BYTES else b""
    return pickle.loads(blob) if blob and len(blob) == size else None


def _write(stream: BufferedRWPair, reply: Reply) -> None:
    stream.write(framed(reply))
    stream.flush()
