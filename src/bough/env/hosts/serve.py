"""The server loop inside a worker process: read a request, call the environment, write the reply."""

import os
import pickle
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from io import BufferedRWPair
from typing import Literal, TypeAlias

from bough.env.checked import ValidatedEnv
from bough.env.env import Branching, Env, EnvFault, Split, State, Step, UserCodeError, waits_of
from bough.env.hosts.busy_time import BusyTime
from bough.launch import in_background, receive_setup, socket_of
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


@dataclass(slots=True, kw_only=True, unsafe_hash=True, weakref_slot=True)
class Packed:
    """A pickled `State.value` in transit. Only workers unpickle it, so the parent never loads the user's classes.

    With branching `NONE` the value stays in its worker, and can be stepped there alone.

    Attributes:
        blob: The pickled value; empty for one that stays.
        kept: The number of the request whose reply has the state, for a value that stays; 0 for any other.
        home: Index of the worker that may hold the live state; None without one. A hint, no part of the value.
    """

    blob: bytes = b""
    kept: int = 0
    home: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """The setup of a worker: the pickled environment, and the source files of its modules."""

    env: bytes
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An environment call: `draw` for tasks, `task` for start, `state` for step and plan, `action` for step.

    The reply has the same `number`, so a late reply to an earlier call is discarded. States of the numbers in `ended`
    are dropped, as no copy of them is left.
    """

    call: Call
    number: int = 0
    draw: tuple[Split, int, int] | None = None
    task: Task | None = None
    state: State | None = None
    action: AgentAction = ""
    ended: tuple[int, ...] = ()

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
    """The reply to the request of a number: the result or an error message, and the busy seconds since the last one."""

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
        server = _Server(env=ValidatedEnv(env=env), files=setup.files, stream=stream)
        while isinstance(request := _read(stream), Request):
            if waits_of(env):
                in_background(partial(server.answer_or_end, request), "bough-env-call")
            else:
                server.answer(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """Answers requests, of an environment that waits in several threads.

    Attributes:
        env: The environment.
        files: The source files of its modules.
        stream: Receives the replies.
        kept: The values of states that stay here, by the number of the request whose reply has the state.
    """

    env: ValidatedEnv
    files: Mapping[str, str]
    stream: BufferedRWPair
    kept: dict[int, object] = field(default_factory=dict[int, object])
    _busy: BusyTime = field(default_factory=BusyTime)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer_or_end(self, request: Request) -> None:
        """`answer` in a thread, whose error would end nothing: the caller would wait until its deadline."""
        try:
            self.answer(request)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def answer(self, request: Request) -> None:
        """Call the environment, and write the reply."""
        with self._lock:
            self._busy.__enter__()
        for number in request.ended:
            self.kept.pop(number, None)
        reply = self._reply(request)
        with self._lock:
            before_s = self._busy.seconds
            self._busy.__exit__()
            _write(self.stream, replace(reply, number=request.number, took_s=self._busy.seconds - before_s))

    def _reply(self, request: Request) -> Reply:
        try:
            return Reply(verdict=Verdict.ANSWER, answer=self._answer(request))
        except (EnvFault, ImportError, ValueError) as error:
            verdict = next(verdict for verdict, kind in ERRORS.items() if isinstance(error, kind))
            return Reply(verdict=verdict, message=str(error))

    def _answer(self, request: Request) -> Answer:
        if request.draw is not None:
            return self.env.tasks(*request.draw)
        if request.task is not None:
            return self._packed(self.env.start(request.task), request.number)
        state = self._unpacked(request.state)
        if request.call == "plan":
            return self.env.plan(state)
        step = self.env.step(state, request.action)
        return replace(step, state=self._packed(step.state, request.number))

    def _packed(self, state: State, number: int) -> State:
        if self.env.env.branching is Branching.NONE:
            self.kept[number] = state.value
            return replace(state, value=Packed(kept=number))
        try:
            blob = pickle.dumps(state.value)
        except Exception as broken:
            raise EnvFault(
                f"{self.env.name}: got a State.value of type {type(state.value).__name__} that cannot be pickled "
                f"({broken}); need a value, or an environment wrapped in Replay"
            ) from None
        return replace(state, value=Packed(blob=blob))

    def _unpacked(self, state: State | None) -> State:
        if state is None or not isinstance(state.value, Packed):
            raise EnvFault("Workers: got a state that no worker has returned; need one from start or step of Workers")
        packed = state.value
        if not packed.kept:
            return replace(state, value=unpickle(packed.blob, self.files))
        if packed.kept not in self.kept:
            raise EnvFault(f"{self.env.name}: got a state of a worker that was replaced; need a new start of its task")
        return replace(state, value=self.kept[packed.kept])


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
