"""Questions of appraisers to the models of a run: seeds, deadlines, and the cache."""

import asyncio
import hashlib
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from bough.appraise import Appraiser, Continuation, Question, Reply, Scoring, appraise_trees
from bough.engine import Completion, EngineFault, FinishReason, Request, Sampling
from bough.env import State
from bough.needs import POLICY, Appraised, Need, names_of, needs_of
from bough.rollout import Agent, Deadlines, RoleModel
from bough.store.answers import Answers
from bough.train.mask_observation import mask_observation
from bough.train.replayed_states import ReplayedStates
from bough.tree import AgentAction, StageError, Tree, Verdict, derive, fail_unknown

SHOWN_CHARACTERS = 400
"""Length of the end of a question that is stored beside its answer, for readers."""
NOTHING: Mapping[str, object] = {}

GRACE_S = 5.0
"""Seconds between the deadline of a question and the time at which the run counts as stuck."""


@dataclass(slots=True, kw_only=True)
class Asker:
    """`AskModels` for one step of a run.

    The key of an answer has the model's weights, the prompt, the sampling settings and the number of the vote. The seed
    is derived from the key, so that answers do not depend on the order of questions. A question without an answer is
    stored for its step alone: a resumed step does not repeat it, a later step does.

    Attributes:
        agent: Has the models, by role.
        answers: The cache.
        deadlines: The run's register of pending awaits.
        seed: Seed of the run.
        step: The step of the questions.
        replay: Replays actions in the environment; None without an environment.
        pending: The questions that wait for an answer, by key; equal ones are sent once.
    """

    agent: Agent
    answers: Answers
    deadlines: Deadlines
    seed: int
    step: int
    replay: ReplayedStates | None = None
    pending: dict[str, "asyncio.Task[Reply]"] = field(default_factory=dict[str, "asyncio.Task[Reply]"])

    async def __call__(self, question: Question) -> Reply:
        """The answer, from the cache or the model."""
        model = self.agent.model(question.role)
        prompt = model.question(question.system, question.text)
        sampling = Sampling(max_tokens=question.max_tokens, temperature=question.temperature, entropies=False)
        asked = [list(prompt), question.max_tokens, question.temperature, question.vote]
        key = self._key(model, "answer", asked)

        async def generate() -> Reply:
            model.require_context(len(prompt))
            seed = derive(self.seed, "appraise", key)
            request = Request(
                prompt_tokens=prompt, sampling=sampling, stop_tokens=model.renderer.stop_tokens, seed=seed
            )
            return _reply(await model.engine.generate(request), model)

        thing = f"{question.role} answer of {len(prompt)} tokens"
        asked = {"role": question.role, "step": self.step, "asked": question.text[-SHOWN_CHARACTERS:]}
        return await self._once(key, generate, question.deadline_s, thing, asked)

    async def score(self, scoring: Scoring) -> Reply:
        """The mean log-probability of a token of the continuation, from the cache or the policy."""
        model = self.agent.model(POLICY)
        read, tokens = scoring.tokens, scoring.action or _written(model, scoring.text)
        if scoring.masked is not None:
            read = mask_observation(model.renderer, read, scoring.masked)
        before = (*read, *_written(model, scoring.prefix))
        if len(before) + len(tokens) > model.engine.context_tokens:
            return Reply(verdict=Verdict.REFUSED)
        key = self._key(model, "score", [list(before), list(tokens)])

        async def score() -> Reply:
            logprobs = await model.engine.score(before, tokens)
            count = max(1, len(logprobs))
            probability = sum(map(math.exp, logprobs)) / count
            return Reply(verdict=Verdict.OK, logprob=sum(logprobs) / count, probability=probability)

        return await self._once(key, score, scoring.deadline_s, f"score of {len(tokens)} tokens")

    async def sample(self, continuation: Continuation) -> Reply:
        """A continuation by the policy, from the cache or the policy."""
        model = self.agent.model(POLICY)
        prompt = (*continuation.tokens, *_written(model, continuation.prefix))
        most = min(continuation.max_tokens, model.engine.context_tokens - len(prompt))
        if most < 1:
            return Reply(verdict=Verdict.REFUSED)
        key = self._key(model, "sample", [list(prompt), most, continuation.temperature, continuation.vote])

        async def generate() -> Reply:
            request = Request(
                prompt_tokens=prompt,
                sampling=Sampling(max_tokens=most, temperature=continuation.temperature),
                stop_tokens=model.renderer.stop_tokens,
                seed=derive(self.seed, "appraise", key),
            )
            completion = await model.engine.generate(request)
            nats = completion.entropies or ()
            return replace(_reply(completion, model), entropy=sum(nats) / max(1, len(nats)))

        return await self._once(key, generate, continuation.deadline_s, f"continuation of {len(prompt)} tokens")

    async def states(self, tree: Tree) -> dict[int, State]:
        """The environment's states by node, of the nodes that a turn begins from."""
        return await self._environment().states(tree)

    async def plan(self, state: State) -> Sequence[AgentAction] | None:
        """The oracle's actions from a state to success; None where there are none, or the environment broke."""
        return await self._environment().plan(state)

    def _environment(self) -> ReplayedStates:
        if self.replay is None:
            raise StageError("Asker.replay: got None; need an environment for an appraiser of states")
        return self.replay

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens of the policy."""
        return self.agent.renderer.text(tokens)

    async def _once(
        self,
        key: str,
        get: Callable[[], Awaitable[Reply]],
        deadline_s: float,
        thing: str,
        asked: Mapping[str, object] = NOTHING,
    ) -> Reply:
        """The stored reply, or that of `get`, stored with the end of the question; equal questions share one call."""
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
            self.pending[key] = asyncio.create_task(self._get(key, get, deadline_s, thing, asked))
        try:
            return await asyncio.shield(self.pending[key])
        except asyncio.CancelledError:
            self.pending[key].cancel()
            raise

    async def _get(
        self,
        key: str,
        get: Callable[[], Awaitable[Reply]],
        deadline_s: float,
        thing: str,
        asked: Mapping[str, object],
    ) -> Reply:
        try:
            owner = f"appraiser of step {self.step}"
            with self.deadlines.during(owner=owner, thing=thing, deadline_s=deadline_s + GRACE_S):
                async with asyncio.timeout(deadline_s):
                    reply = await get()
        except TimeoutError:
            reply = Reply(verdict=Verdict.LATE)
        except EngineFault as fault:
            reply = Reply(verdict=Verdict.REFUSED, text=str(fault))
        data = {**asked, **asdict(reply), "verdict": int(reply.verdict)}
        self.answers.put(key if reply.verdict is Verdict.OK else f"{key} {self.step}", data)
        self.pending.pop(key, None)
        return reply

    def _key(self, model: RoleModel, kind: str, content: object) -> str:
        data = [model.name, model.engine.policy_version, kind, content]
        return hashlib.blake2b(json.dumps(data).encode(), digest_size=16).hexdigest()


def _written(model: RoleModel, text: str) -> tuple[int, ...]:
    """The tokens of a text inside an action."""
    stops = model.renderer.stop_tokens
    return tuple(token for token in model.renderer.write(text) if token not in stops) if text else ()


def _reply(completion: Completion, model: RoleModel) -> Reply:
    if completion.finish is FinishReason.ABORTED:
        return Reply(verdict=Verdict.REFUSED, tokens=len(completion.tokens))
    return Reply(verdict=Verdict.OK, text=model.renderer.text(completion.tokens), tokens=len(completion.tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class AppraiseStage:
    """The stage between growth and reward, for the trees of one task.

    Attributes:
        appraisers: AskModels the models.
        required: The columns that rewards, credit or objective need; a path without a value of one is `FAILED`.
        ask: Asks the models.
    """

    appraisers: Sequence[Appraiser]
    required: Sequence[str]
    ask: Asker

    async def __call__(self, trees: Sequence[Tree]) -> list[Tree]:
        """The trees with the columns."""
        found = await appraise_trees(trees, self.appraisers, self.ask)
        return [fail_unknown(tree, self.required) for tree in found]


def required_columns(*pieces: object) -> list[str]:
    """The names of the columns that pieces need."""
    return names_of(frozenset[Need]().union(*map(needs_of, pieces)), Appraised)
