"""Generation in worker processes, each with an engine.

    generate, score --> waiting --Router.route--> process 0 --> results
                                                 process 1 --> results

Rendering and the environment overlap with generation. A pass of a small model gains little from more threads; two
processes run two passes at a time. A request goes to the process that holds its prefix (see `Router`), so that branches
share prefixes as they do in one process.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from itertools import count

from torch import Tensor

from bough.engine.decoder import Stats
from bough.engine.engine import Completion, EngineFault, Request
from bough.engine.engine_processes import EngineProcesses
from bough.engine.generation import ROUNDS
from bough.engine.replacement import Replacement, end_started
from bough.engine.router import Router, Work
from bough.engine.worker import EngineWorker, Job
from bough.engine.worker_process import Call, Cancel, Compiling, Message, Renew, Scoring
from bough.grammar import Grammar
from bough.launch import OUTPUT, STARTS, LaunchError, in_background, in_event_loop, memory_note, retried


class MultiProcessEngine:
    """The engine that `Local` with processes and `Replicas` configure.

    When a process dies, its requests fail with an `EngineFault`, and a new process replaces it.
    """

    def __init__(self, processes: EngineProcesses) -> None:
        """Start the processes and wait until they are ready.

        Raises:
            ValueError: when a process cannot start, or cannot build an engine.
            LaunchError: when a process dies or hangs during its start.
        """
        self._processes = processes
        self._policy_version = 0
        self._router = Router(processes.count, slots=processes.slots, cache_tokens=processes.cache_tokens)
        self._call_ids = count()
        self._waiting: list[Job] = []
        self._routing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._replaced = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._workers: list[EngineWorker] = []
        self._starting: dict[int, Replacement] = {}
        try:
            self._workers.extend(self._start(index) for index in range(processes.count))
            for index in range(processes.count):
                retried(partial(self._ready, index), LaunchError)
        except BaseException:
            for worker in self._workers:
                worker.end()
            processes.close()
            raise

    @property
    def policy_version(self) -> int:
        """The number of weight updates of the weights."""
        return self._policy_version

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        return self._processes.context_tokens

    @property
    def cache_tokens(self) -> int:
        """Most tokens in the KV cache of this process: none."""
        return 0

    cached_tokens = cache_tokens

    def bound_cache(self, tokens: int) -> None:
        """Do nothing: the caches are in other processes."""

    @property
    def replaced(self) -> int:
        """Number of processes that died or hung and were replaced, with those of the engines."""
        return self._replaced + sum(worker.replaced for worker in self._workers)

    @property
    def pids(self) -> tuple[int | None, ...]:
        """The process ids."""
        return tuple(worker.pid for worker in self._workers)

    @property
    def passes(self) -> int:
        """Forward passes since the engine was built."""
        return self.stats.passes

    @property
    def sequences(self) -> int:
        """Sequences in these passes, each counted in every pass that computes it."""
        return self.stats.sequences

    @property
    def stats(self) -> Stats:
        """The sum of the workers' counts, as last reported."""
        every = [worker.stats for worker in self._workers]
        return Stats(**{one.name: sum(getattr(stats, one.name) for stats in every) for one in fields(Stats)})

    @property
    def busy_s(self) -> float:
        """Total seconds of passes, the mean over the workers, as last reported."""
        return sum(worker.busy_s for worker in self._workers) / len(self._workers)

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
        return await self._ask_one(scoring, tuple(prompt_tokens))

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`; the continuations are scored concurrently, over all processes."""
        return tuple(await asyncio.gather(*(self.score(prompt_tokens, each, temperature) for each in continuations)))

    async def score_each_process(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...]
    ) -> Mapping[int, tuple[float, ...]]:
        """See `PerProcessScoring`; leaves out processes that start or are replaced meanwhile."""
        scoring = Scoring(prompt_tokens=prompt_tokens, continuation_tokens=continuation_tokens, temperature=1.0)
        return await self._ask_each(scoring, tuple(prompt_tokens))

    async def compile_grammar(self, grammar: Grammar, stop_tokens: Sequence[int]) -> None:
        """See `CompilesGrammars.compile_grammar`: in each process, as any of them may get the completion."""
        await self._ask_each(Compiling(grammar=grammar, stop_tokens=tuple(stop_tokens)), ())

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        """See `Engine.load_weights`.

        Raises:
            RuntimeError: when requests are in flight.
            ValueError: when the weights do not fit the model.
        """
        self._settled(f"load_weights: got weights of version {policy_version}")
        message = self._processes.load(weights, policy_version)
        self._policy_version = policy_version
        self._renew(message)

    def reset_cache(self) -> None:
        """See `Engine.reset_cache`.

        Raises:
            RuntimeError: when requests are in flight.
        """
        self._settled("reset_cache: called")
        self._renew(Renew(policy_version=None))

    async def close(self) -> None:
        """See `Engine.close`. Requests in flight fail with an `EngineFault`."""
        self._closed = True
        fault = "got close() with this request in flight; await requests before"
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            job.fail(EngineFault(fault))
        for index in range(len(self._workers)):
            self._let_go(index, fault)
        starting, self._starting = self._starting, {}
        for each in starting.values():
            each.worker.add_done_callback(end_started)
        if self._watching is not None:
            self._watching.cancel()
        self._processes.close()

    def _renew(self, message: Message) -> None:
        self._router.reset()
        for index in range(len(self._workers)):
            self._send(index, message)

    def _settled(self, call: str) -> None:
        if flying := len(self._waiting) + sum(len(worker.jobs) for worker in self._workers):
            raise RuntimeError(f"{call} with {flying} requests in flight; need none; await or cancel them first")

    async def _ask_each(self, request: Scoring | Compiling, prompt: tuple[int, ...]) -> Mapping[int, tuple[float, ...]]:
        """The result of each process that serves requests; a process that starts or is replaced meanwhile has none."""
        workers = {index: worker for index, worker in enumerate(self._workers) if index not in self._starting}
        found = await asyncio.gather(
            *(self._ask_one(request, prompt, index) for index in workers), return_exceptions=True
        )
        results = dict[int, tuple[float, ...]]()
        for (index, worker), each in zip(workers.items(), found, strict=True):
            if not isinstance(each, BaseException):
                results[index] = each
            elif self._workers[index] is worker and index not in self._starting:
                raise each
        # Without any process, the one that starts first.
        return results or {0: await self._ask_one(request, prompt)}

    async def _ask_one(
        self, request: Scoring | Compiling, prompt: tuple[int, ...], process: int | None = None
    ) -> tuple[float, ...]:
        result = await self._ask(request, Work(prompt=prompt, tokens=1, process=process))
        assert not isinstance(result, Completion)
        return result

    async def _ask(self, request: Request | Scoring | Compiling, work: Work) -> Completion | tuple[float, ...]:
        if self._closed:
            raise EngineFault("the engine is closed; build a new one")
        self._listen(loop := asyncio.get_running_loop())
        job = Job(call=Call(call_id=next(self._call_ids), request=request), work=work, future=loop.create_future())
        self._waiting.append(job)
        if self._routing is None or self._routing.done():
            self._routing = loop.create_task(self._route(), name="bough-engine-router")
        if self._watching is None or self._watching.done():
            self._watching = loop.create_task(self._watch(), name="bough-engine-watch")
        try:
            return await job.future
        except asyncio.CancelledError:
            self._cancel(job)
            raise

    async def _route(self) -> None:
        """Send the waiting requests to the processes."""
        # Requests of one event-loop iteration are routed together.
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        waiting, self._waiting = self._waiting, []
        indices = self._router.route([job.work for job in waiting])
        for index, worker in enumerate(self._workers):
            jobs = [job for job, to in zip(waiting, indices, strict=True) if to == index]
            worker.take(jobs)
            if jobs:
                self._send(index, [job.call for job in jobs])

    async def _watch(self) -> None:
        """Replace processes that have requests and do not answer, until none is in flight."""
        while self._waiting or any(worker.jobs for worker in self._workers):
            await asyncio.sleep(self._processes.deadline_s / 10)
            for index, worker in enumerate(self._workers):
                if worker.is_late and index not in self._starting:
                    worker.hung = True
                    self._replace(index)

    def _cancel(self, job: Job) -> None:
        if job in self._waiting:
            self._waiting.remove(job)
        for index, worker in enumerate(self._workers):
            if worker.jobs.pop(job.call.call_id, None) is not None:
                self._router.done(index)
                self._send(index, Cancel(call_id=job.call.call_id))

    def _send(self, index: int, message: Message) -> None:
        if index in self._starting:
            self._starting[index].outbox.append(message)
            return
        try:
            self._workers[index].send(message)
        except OSError:
            self._replace(index)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read results in this event loop; an engine may be used in several, one after the other."""
        if loop is self._loop:
            return
        self._mute()
        self._loop = loop
        for index, worker in enumerate(self._workers):
            if not worker.connection.closed:
                loop.add_reader(worker.connection.fileno(), self._read, index)
        for index, starting in self._starting.items():
            self._notify(index, starting)

    def _mute(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            for worker in self._workers:
                if not worker.connection.closed:
                    self._loop.remove_reader(worker.connection.fileno())
        self._loop = None

    def _read(self, index: int) -> None:
        worker = self._workers[index]
        try:
            report = worker.receive()
        except (EOFError, OSError):
            self._replace(index)
            return
        for answer in report.answers if report else ():
            # A cancelled call has no job.
            if job := worker.jobs.pop(answer.call_id, None):
                self._router.done(index)
                if isinstance(answer.result, Exception):
                    job.fail(answer.result)
                elif not job.future.done():
                    job.future.set_result(answer.result)

    def _start(self, index: int) -> EngineWorker:
        return self._processes.start(index, self._policy_version)

    def _ready(self, index: int) -> None:
        """Wait until a process is ready; start another one first if it has ended."""
        if self._workers[index].connection.closed:
            self._workers[index] = self._start(index)
        self._workers[index].await_ready()

    def _replace(self, index: int) -> None:
        """Replace a process that died or hangs, unless it cannot build an engine or never becomes ready.

        The new one starts in a thread, as a start may take minutes. Requests and weights wait for it.
        """
        worker = self._workers[index]
        why = worker.wrong or (
            f"it did not answer for {worker.limit_s:g} s; set a higher deadline_s if passes take longer"
            if worker.hung
            else f"it ran out of memory or was killed; {OUTPUT}"
        )
        state = "hung" if worker.hung else "ended"
        self._let_go(index, f"an engine process {state} with {len(worker.jobs)} requests in flight; {why}")
        starts = 1 if worker.ready else worker.starts + 1
        if worker.wrong or starts > STARTS or self._closed:
            return
        self._replaced += 1 + worker.replaced
        worker.replaced = 0
        starting = Replacement(in_background(partial(self._start, index), "bough-engine-start"), starts)
        self._starting[index] = starting
        if in_event_loop():
            self._notify(index, starting)
        else:
            with suppress(Exception):  # `_started` handles it
                starting.worker.result()
            self._started(index, starting)

    def _notify(self, index: int, starting: Replacement) -> None:
        """Have the present event loop take over a process when it has started."""
        loop = self._loop

        def started(_: object) -> None:
            # The loop may be closed; the next one takes over the process.
            with suppress(RuntimeError):
                if loop is not None:
                    loop.call_soon_threadsafe(self._started, index, starting)

        starting.worker.add_done_callback(started)

    def _started(self, index: int, starting: Replacement) -> None:
        """Take over a process that has started, or fail the requests that wait for it."""
        if self._starting.get(index) is not starting:
            return
        del self._starting[index]
        worker = self._workers[index]
        if (error := starting.worker.exception()) is not None:
            worker.ready, worker.wrong = False, str(error)  # the next request raises it
            self._let_go(index, f"an engine process ended with {len(worker.jobs)} requests in flight; {error}")
            return
        fresh = starting.worker.result()
        fresh.stats, fresh.busy_s, fresh.starts = worker.stats, worker.busy_s, starting.starts
        fresh.take(list(worker.jobs.values()))
        self._workers[index] = fresh
        if self._loop is not None and not self._loop.is_closed():
            self._loop.add_reader(fresh.connection.fileno(), self._read, index)
        for message in starting.outbox:
            self._send(index, message)

    def _let_go(self, index: int, fault: str) -> None:
        """End a process and fail its requests."""
        worker = self._workers[index]
        if self._loop is not None and not self._loop.is_closed() and not worker.connection.closed:
            self._loop.remove_reader(worker.connection.fileno())
        status, by_us = worker.end(), self._closed or worker.hung or worker.wrong
        note = "" if by_us else memory_note(status, "lower `engine.slots` or `engine.cache_tokens`")
        jobs, worker.jobs = worker.jobs, {}
        self._router.reset(index)
        for job in jobs.values():
            self._router.done(index)
            job.fail(EngineFault(f"{fault} (exit status {status}){note}"))
