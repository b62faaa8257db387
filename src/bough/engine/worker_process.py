"""The worker processes of a `MultiProcessEngine`: each builds an engine and serves the requests it receives."""

import asyncio
import gc
import os
import signal
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Literal, TypeAlias

import safetensors.torch
import torch

from bough.engine.decoder import Stats
from bough.engine.engine import Busy, CompilesGrammars, Completion, Engine, EngineFault, Replacing, Request
from bough.engine.generation import LocalEngine
from bough.engine.local import Local
from bough.engine.model import Model
from bough.engine.replicated_recipe import ReplicatedRecipe
from bough.engine.sent_policy import SentPolicy
from bough.grammar import Grammar
from bough.launch import OUTPUT, receive_setup


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """A call of `Engine.score`."""

    prompt_tokens: tuple[int, ...]
    continuation_tokens: tuple[int, ...]
    temperature: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiling:
    """A call of `CompilesGrammars.compile_grammar`, whose result is ()."""

    grammar: Grammar
    stop_tokens: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request with an id."""

    call_id: int
    request: Request | Scoring | Compiling


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Cancels a call."""

    call_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """Resets the KV cache; `None` keeps the version of the shared weights."""

    policy_version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """New weights for a process that shares no memory: a safetensors file as bytes, and their version."""

    weights: bytes
    policy_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The first message to a process that shares no memory.

    Attributes:
        engine: Settings of its engine.
        policy: The policy as built.
        threads: PyTorch's threads in the process.
        newest: The newest weights, if the policy was updated since.
    """

    engine: ReplicatedRecipe
    policy: SentPolicy
    threads: int
    newest: Load | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a call."""

    call_id: int
    result: Completion | tuple[float, ...] | Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Results and the engine's counts.

    Attributes:
        answers: Results of calls, in any order.
        stats: Counts since the engine was built.
        busy_s: Total seconds of passes.
        replaced: Processes that the engine started and replaced, such as vLLM servers.
    """

    answers: Sequence[Answer]
    stats: Stats
    busy_s: float
    replaced: int = 0


Message: TypeAlias = Sequence[Call] | Cancel | Renew | Load | Literal["end"]


def serve(connection: Connection, config: Local, model: Model, policy_version: int, threads: int) -> None:
    """Build an engine, send None (or the error), then serve calls until the connection closes.

    The weights lie in shared memory; the parent changes them before it sends `Renew`.
    """
    # Ctrl-C is for the parent, which closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    try:
        engine = LocalEngine(config, model)
    except ValueError as error:
        connection.send(str(error))
        return
    engine.renew(policy_version)
    serve_engine(connection, engine)


def serve_replica(channel: int) -> None:
    """Receive a `Setup`, build its engine, send None (or the error), then serve calls until the channel closes.

    Args:
        channel: The number of the open file that is the channel.
    """
    with suppress(EOFError, ConnectionError):
        connection, setup = receive_setup(channel)
        assert isinstance(setup, Setup)
        torch.set_num_threads(setup.threads)
        try:
            engine = setup.engine.build(setup.policy)
            if setup.newest is not None:
                _load(engine, setup.newest)
        except (EngineFault, ImportError, ValueError) as error:
            connection.send(str(error))
            return
        serve_engine(connection, engine)


def serve_engine(connection: Connection, engine: Engine) -> None:
    """Send that the engine is ready, then serve calls until the connection closes; ends the process."""
    # All objects so far live as long as the process, so garbage collection can skip them.
    gc.freeze()
    with suppress(ConnectionError):
        connection.send(None)
        asyncio.run(_RequestServer(connection, engine).serve())
    # Threads of libraries would keep the process alive.
    os._exit(0)


def _load(engine: Engine, new: Load) -> None:
    engine.load_weights(safetensors.torch.load(new.weights), new.policy_version)


@dataclass(slots=True, eq=False)
class _RequestServer:
    connection: Connection
    engine: Engine
    running: dict[int, asyncio.Task[None]] = field(default_factory=dict[int, asyncio.Task[None]])
    done: list[Answer] = field(default_factory=list[Answer])

    async def serve(self) -> None:
        loop, inbox = asyncio.get_running_loop(), asyncio.Queue[Message]()

        def read() -> None:
            # In a thread, so that a writer never waits for the end of a pass.
            message: Message = []
            while message != "end":
                try:
                    message = self.connection.recv()
                except (EOFError, OSError):
                    message = "end"
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(inbox.put_nowait, message)

        threading.Thread(target=read, daemon=True).start()
        try:
            await self._serve(inbox)
        finally:
            await self.engine.close()

    async def _serve(self, inbox: "asyncio.Queue[Message]") -> None:
        while (message := await inbox.get()) != "end":
            if isinstance(message, Cancel):
                await self._cancel(message.call_id)
            elif isinstance(message, Renew):
                self._renew(message.policy_version)
            elif isinstance(message, Load):
                _load(self.engine, message)
            else:
                for call in message:
                    self.running[call.call_id] = asyncio.create_task(self._answer(call))

    def _renew(self, policy_version: int | None) -> None:
        if policy_version is not None and isinstance(self.engine, LocalEngine):
            self.engine.renew(policy_version)
        else:
            self.engine.reset_cache()

    async def _cancel(self, call_id: int) -> None:
        if task := self.running.get(call_id):
            task.cancel()
            await asyncio.wait([task])

    async def _answer(self, call: Call) -> None:
        request, engine = call.request, self.engine
        result: Completion | tuple[float, ...] | Exception
        try:
            if isinstance(request, Request):
                result = await engine.generate(request)
            elif isinstance(request, Scoring):
                result = await engine.score(request.prompt_tokens, request.continuation_tokens, request.temperature)
            else:
                result = ()
                if isinstance(engine, CompilesGrammars):
                    await engine.compile_grammar(request.grammar, request.stop_tokens)
        except (EngineFault, ModuleNotFoundError, ValueError) as error:
            result = error
        except Exception as error:  # the parent waits for each call
            traceback.print_exc()
            result = EngineFault(f"an engine process got {type(error).__name__}: {error}; {OUTPUT}")
        finally:
            del self.running[call.call_id]
        if not self.done:
            # One message has all completions of a pass.
            asyncio.get_running_loop().call_soon(self._report)
        self.done.append(Answer(call_id=call.call_id, result=result))

    def _report(self) -> None:
        answers, self.done = self.done, []
        # The reading thread handles the end of the parent.
        with suppress(ConnectionError):
            stats = self.engine.stats if isinstance(self.engine, LocalEngine) else Stats()
            busy_s = self.engine.busy_s if isinstance(self.engine, Busy) else 0.0
            replaced = self.engine.replaced if isinstance(self.engine, Replacing) else 0
            self.connection.send(Report(answers=answers, stats=stats, busy_s=busy_s, replaced=replaced))
