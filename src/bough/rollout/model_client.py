"""The client of a run's models: seeds, budget, deadline and cache of questions."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, TypeVar

from bough.ask import Answer, Query, Reply
from bough.ask.answer import answer_of
from bough.ask.each import each
from bough.engine import Completion, EngineFault, FinishReason, Request, Sampling, text_sampling
from bough.rollout.agent import QuestionTooLong, RoleModel
from bough.rollout.budget import Budget, Usage
from bough.rollout.deadlines import Deadlines
from bough.tree import Verdict, derive

Read = TypeVar("Read")

SHOWN_CHARACTERS = 400
"""Length of the end of a question that is stored beside its answer, for readers."""
NOTHING: Mapping[str, object] = {}
GRACE_S = 5.0
"""Seconds between the deadline of a question and the time at which the run counts as stuck."""


class AnswerStore(Protocol):
    """Stored answers by the hash of their question, such as `bough.store.answers.Answers`."""

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The answer with this key; None without one."""
        ...

    def put(self, key: str, answer: Mapping[str, object]) -> None:
        """Store an answer."""
        ...


@dataclass(slots=True, kw_only=True)
class ModelClient:
    """The `QueryClient` of a run or of a rollout, for appraisers, hooks, explorers, searches and imagined environments.

    A model that fails gives the verdict `REFUSED`, one that is too slow `LATE`; neither stops the run.

    The seed of a query with a name is derived from the name, that of any other from its content: weights, prompt,
    sampling settings and number of the vote. So answers do not depend on the order of questions. With `answers` equal
    queries are sent once, also after a resume; a query without an answer is stored for its step alone: a resumed step
    does not repeat it, a later step does.

    Attributes:
        model: The model of a role.
        sampling: The sampling settings of a query without its own.
        deadlines: The register of pending awaits.
        seed: Seed of the run, or of the rollout.
        owner: The owner of the questions, for messages.
        deadline_s: The deadline of a query without its own, in seconds.
        budget: Pays for each request; None for no budget.
        answers: The cache; None for none.
        step: The step of the questions.
        pending: The questions that wait for an answer, by key; equal ones are sent once.
    """

    model: Callable[[str], RoleModel]
    sampling: Sampling
    deadlines: Deadlines
    seed: int
    owner: str = "question"
    deadline_s: float = 600.0
    budget: Budget | None = None
    answers: AnswerStore | None = None
    step: int = 0
    pending: dict[str, "asyncio.Task[Reply]"] = field(default_factory=dict[str, "asyncio.Task[Reply]"])

    async def __call__(self, query: Query[Read]) -> Answer[Read]:
        """The answer, from the cache or the model.

        Raises:
            BudgetExceeded: when it does not fit the budget.
        """
        if query.n == 1:
            return answer_of([await self._reply(query, 0)], query.read)
        return answer_of(await each(self._reply(query, vote) for vote in range(query.n)), query.read)

    async def _reply(self, query: Query[Read], vote: int) -> Reply:
        """The reply to one vote."""
        model = self.model(query.role)
        prompt, sampling = model.question(query.system, query.prompt), self._sampling(query, model)
        try:
            model.require_context(len(prompt))
        except QuestionTooLong as fault:
            return Reply(verdict=Verdict.REFUSED, text=str(fault), final=True)
        named = [list(query.name)] if query.name else []
        key = self.key(model, "answer", [list(prompt), sampling.max_tokens, sampling.temperature, vote, *named])
        seed = self.content_seed(key)
        if query.name:
            seed = derive(self.seed, "ask", *query.name, *([vote] if vote else []))
        request = Request(prompt_tokens=prompt, sampling=sampling, stop_tokens=model.renderer.stop_tokens, seed=seed)

        async def generate() -> Reply:
            return reply_of(await model.engine.generate(request), model)

        async def send() -> Reply:
            thing = " ".join(map(str, (query.role, "answer of", len(prompt), "tokens", *query.name)))
            deadline_s = query.deadline_s or self.deadline_s
            if self.budget is None:
                return await self.limited(generate(), deadline_s, thing)
            async with self.budget.reserve(Usage(tokens=sampling.max_tokens, calls=1)) as cost:
                cost.calls = 1
                reply = await self.limited(generate(), deadline_s, thing)
                cost.tokens = reply.tokens
                return reply

        asked = {"role": query.role, "step": self.step, "asked": query.prompt[-SHOWN_CHARACTERS:]}
        return await self.once(key, send, asked)

    def _sampling(self, query: Query[Read], model: RoleModel) -> Sampling:
        """The sampling settings of a query."""
        sampling = text_sampling(self.sampling, model.renderer)
        if query.temperature is not None:
            sampling = Sampling(max_tokens=sampling.max_tokens, temperature=query.temperature, entropies=False)
        return sampling if query.max_tokens is None else replace(sampling, max_tokens=query.max_tokens)

    def key(self, model: RoleModel, kind: str, content: object) -> str:
        """The key of a question to a model in the cache: a hash of its weights and its content."""
        data = [model.name, model.engine.policy_version, kind, content]
        return hashlib.blake2b(json.dumps(data).encode(), digest_size=16).hexdigest()

    def content_seed(self, key: str) -> int:
        """The seed of a question without a name."""
        return derive(self.seed, "appraise", key)

    async def limited(self, call: Awaitable[Reply], deadline_s: float, thing: str) -> Reply:
        """The reply of a call to an engine: `LATE` after the deadline; `REFUSED`, with the reason, when it fails."""
        deadline = asyncio.timeout(deadline_s)
        try:
            with self.deadlines.during(owner=self.owner, thing=thing, deadline_s=deadline_s + GRACE_S):
                async with deadline:
                    return await call
        except TimeoutError:
            if not deadline.expired():
                raise
            return Reply(verdict=Verdict.LATE)
        except EngineFault as fault:
            return Reply(verdict=Verdict.REFUSED, text=str(fault))

    async def once(
        self, key: str, send: Callable[[], Awaitable[Reply]], asked: Mapping[str, object] = NOTHING
    ) -> Reply:
        """The stored reply, or that of `send`, stored with `asked`; equal questions share one request."""
        if self.answers is None:
            return await send()
        stored = self.answers.get(key) or self.answers.get(f"{key} {self.step}")
        if stored is not None:
            return Reply(
                verdict=Verdict(stored["verdict"]),
                text=stored["text"],
                logprob=stored["logprob"],
                probability=stored.get("probability", 0.0),
                entropy=stored.get("entropy", 0.0),
                tokens=stored["tokens"],
            )
        if key not in self.pending:
            self.pending[key] = asyncio.create_task(self._stored(self.answers, key, send, asked))
        try:
            return await asyncio.shield(self.pending[key])
        except asyncio.CancelledError:
            self.pending[key].cancel()
            raise

    async def _stored(
        self,
        answers: AnswerStore,
        key: str,
        send: Callable[[], Awaitable[Reply]],
        asked: Mapping[str, object],
    ) -> Reply:
        try:
            reply = await send()
            data = {**asked, **asdict(reply), "verdict": int(reply.verdict)}
            answers.put(key if reply.verdict is Verdict.OK else f"{key} {self.step}", data)
            return reply
        finally:
            self.pending.pop(key, None)


def reply_of(completion: Completion, model: RoleModel) -> Reply:
    """The reply of a model with a completion."""
    tokens = len(completion.tokens)
    if completion.finish is FinishReason.ABORTED:
        return Reply(verdict=Verdict.REFUSED, text="the engine aborted the completion", tokens=tokens)
    return Reply(verdict=Verdict.OK, text=model.renderer.text(completion.tokens), tokens=tokens)
