"""Generation in worker processes, each with a `LocalEngine`, over one copy of the weights.

    generate, score --> waiting --Router.deal--> process 0 --> results
                                                 process 1 --> results

Rendering and the environment overlap with generation. A pass of a small model gains little from more threads; two
processes run two passes at a time. A request goes to the process that holds its prefix (see `Router`), so that branches
share prefixes as they do in one process.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import count

import torch
from torch import Tensor

from bough.engine.decoder import Stats
from bough.engine.engine import Completion, EngineFault, Request
from bough.engine.generation import ROUNDS
from bough.engine.local import Local
from bough.engine.model import Model
from bough.engine.router import Router, Work
from bough.engine.worker import EngineWorker, Job
from bough.engine.worker_process import Call, Cancel, Message, Renew, Scoring


class MultiProcessEngine:
    """The engine that `Local` configures with processes.

    When a process dies, its requests fail with an `EngineFault`, and a new process replaces it.
    """

    def __init__(self, config: Local, model: Model) -> None:
        """Start the processes and wait until they are ready; no other object may change the model.

        Raises:
            ValueError: when the model is not on the CPU, cannot be pickled or does not fit the shared memory, or a
                process cannot build an engine.
            RuntimeError: when a process dies during its start.
        """
        if model.device.type != "cpu":
            raise ValueError(
                f"Local.processes: got {config.processes} with a model on {model.device}; need a model on the CPU, or "
                "processes=0, as this one keeps a GPU busy"
            )
        slots = -(-config.slots // config.processes)
        cache = None if config.cache_tokens is None else config.cache_tokens // config.processes
        self._config = replace(config, processes=0, slots=slots, cache_tokens=cache)
        self._model = model
        self._threads = max(torch.get_num_threads() // config.processes, 1)
        self._context_tokens = config.context_of(model)
        self._policy_version = 0
        self._router = Router(config.processes, slots=slots, most_tokens=cache or slots * self._context_tokens)
        self._numbers = count()
        self._waiting: list[Job] = []
        self._dealing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._crew: list[EngineWorker] = []
        try:
            self._crew.extend(self._start() for _ in range(config.processes))
            for hand in self._crew:
                hand.greet()
        except BaseException:
            for hand in self._crew:
                hand.end()
            raise

    @property
    def policy_version(self) -> int:
        """The number of weight updates of the weights."""
        return self._policy_version

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        return self._context_tokens

    @property
    def cache_tokens(self) -> int:
        """Most tokens in the KV cache of this process: none."""
        return 0

    @property
    def cached_tokens(self) -> int:
        """The tokens for which this process allocates memory: none."""
        return 0

    @property
    def pids(self) -> tuple[int | None, ...]:
        """The process ids."""
        return tuple(hand.process.pid for hand in self._crew)

    @property
    def passes(self) -> int:
        """Forward passes since the engine was built."""
        return self.stats.passes

    @property
    def stats(self) -> Stats:
        """The sum of the workers' counts, as last reported."""
        every = [hand.stats for hand in self._crew]
        return Stats(**{one.name: sum(getattr(stats, one.name) for stats in every) for one in fields(Stats)})

    @property
    def busy_s(self) -> float:
        """Total seconds of passes, the mean over the workers, as last reported."""
        return sum(hand.busy_s for hand in self._crew) / len(self._crew)

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`."""
        work = Work(prompt=tuple(request.prompt_tokens), tokens=request.sampling.max_tokens)
        completion = await self._ask(request, work)
        assert isinstance(completion, Completion)
        return completion

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`."""
        scoring = Scoring(prompt_tokens=prompt_tokens, continuation_tokens=continuation_tokens, temperature=temperature)
        logprobs = await self._ask(scoring, Work(prompt=tuple(prompt_tokens), tokens=1))
        assert not isinstance(logprobs, Completion)
        return logprobs

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`; the continuations are scored concurrently, over all processes."""
        return tuple(await asyncio.gather(*(self.score(prompt_tokens, each, temperature) for each in continuations)))

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        """See `Engine.load_weights`. Processes share the weights' memory, so weights are copied once.

        Raises:
            RuntimeError: when requests are in flight.
            ValueError: when the weights do not fit the model.
        """
        self._settled(f"load_weights: got weights of version {policy_version}")
        self._model.load(weights)
        self._policy_version = policy_version
        self._renew(policy_version)

    def reset_cache(self) -> None:
        """See `Engine.reset_cache`.

        Raises:
            RuntimeError: when requests are in flight.
        """
        self._settled("reset_cache: called")
        self._renew(None)

    async def close(self) -> None:
        """See `Engine.close`. Requests in flight fail with an `EngineFault`."""
        self._closed = True
        fault = "the engine was closed"
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            job.fail(EngineFault(fault))
        for place in range(len(self._crew)):
            self._let_go(place, fault)

    def _renew(self, policy_version: int | None) -> None:
        self._router.reset()
        for place in range(len(self._crew)):
            self._send(place, Renew(policy_version=policy_version))

    def _settled(self, call: str) -> None:
        if flying := len(self._waiting) + sum(len(hand.jobs) for hand in self._crew):
            raise RuntimeError(f"{call} with {flying} requests in flight; need none; await or cancel them first")

    async def _ask(self, request: Request | Scoring, work: Work) -> Completion | tuple[float, ...]:
        if self._closed:
            raise EngineFault("the engine is closed; build a new one")
        loop = asyncio.get_running_loop()
        self._listen(loop)
        job = Job(call=Call(number=next(self._numbers), request=request), work=work, future=loop.create_future())
        self._waiting.append(job)
        if self._dealing is None or self._dealing.done():
            self._dealing = loop.create_task(self._deal(), name="bough-engine-router")
        try:
            return await job.future
        except asyncio.CancelledError:
            self._cancel(job)
            raise

    async def _deal(self) -> None:
        """Send the waiting requests to the processes."""
        # Requests of one event-loop iteration are routed together.
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        waiting, self._waiting = self._waiting, []
        places = self._router.deal([job.work for job in waiting])
        for place, hand in enumerate(self._crew):
            jobs = [job for job, to in zip(waiting, places, strict=True) if to == place]
            hand.jobs.update((job.call.number, job) for job in jobs)
            if jobs:
                self._send(place, [job.call for job in jobs])

    def _cancel(self, job: Job) -> None:
        if job in self._waiting:
            self._waiting.remove(job)
        for place, hand in enumerate(self._crew):
            if hand.jobs.pop(job.call.number, None) is not None:
                self._router.done(place)
                self._send(place, Cancel(number=job.call.number))

    def _send(self, place: int, message: Message) -> None:
        try:
            self._crew[place].send(message)
        except OSError:
            self._replace(place)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read results in this event loop; an engine may be used in several, one after the other."""
        if loop is self._loop:
            return
        self._mute()
        self._loop = loop
        for place, hand in enumerate(self._crew):
            if not hand.connection.closed:
                loop.add_reader(hand.connection.fileno(), self._read, place)

    def _mute(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            for hand in self._crew:
                if not hand.connection.closed:
                    self._loop.remove_reader(hand.connection.fileno())
        self._loop = None

    def _read(self, place: int) -> None:
        hand = self._crew[place]
        try:
            report = hand.receive()
        except (EOFError, OSError):
            self._replace(place)
            return
        for answer in report.answers if report else ():
            # A cancelled call has no job.
            if job := hand.jobs.pop(answer.number, None):
                self._router.done(place)
                if isinstance(answer.result, Exception):
                    job.fail(answer.result)
                elif not job.future.done():
                    job.future.set_result(answer.result)

    def _start(self) -> EngineWorker:
        return EngineWorker.start(self._config, self._model, policy_version=self._policy_version, threads=self._threads)

    def _replace(self, place: int) -> None:
        """Replace a process that died, unless it died before it was ready."""
        hand = self._crew[place]
        flying, ready = len(hand.jobs), hand.ready
        why = hand.wrong or "out of memory, or killed?"
        self._let_go(place, f"an engine process died with {flying} requests in hand; {why}")
        if not ready or self._closed:
            return
        try:
            fresh = self._start()
        except ValueError as error:
            # The next request raises the error.
            hand.ready, hand.wrong = False, str(error)
            return
        fresh.stats, fresh.busy_s = hand.stats, hand.busy_s
        self._crew[place] = fresh
        if self._loop is not None and not self._loop.is_closed():
            self._loop.add_reader(fresh.connection.fileno(), self._read, place)

    def _let_go(self, place: int, fault: str) -> None:
        """End a process and fail its requests."""
        hand = self._crew[place]
        if self._loop is not None and not self._loop.is_closed() and not hand.connection.closed:
            self._loop.remove_reader(hand.connection.fileno())
        status = hand.end()
        jobs, hand.jobs = hand.jobs, {}
        self._router.reset(place)
        for job in jobs.values():
            self._router.done(place)
            job.fail(EngineFault(f"{fault} (exit status {status})"))
