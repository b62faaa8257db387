"""The stage of appraisers, and their questions to the models of a run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bough.appraise import Appraiser, Continuation, Scoring, appraise_trees
from bough.ask import Answer, Query, Reply
from bough.engine import Request, Sampling
from bough.env import State
from bough.needs import POLICY, Appraised, Need, names_of, needs_of
from bough.rollout import Agent, Deadlines, RoleModel
from bough.rollout.model_client import AnswerStore, ModelClient, reply_of
from bough.train.mask_observation import mask_observation
from bough.train.replayed_states import ReplayedStates
from bough.tree import AgentAction, StageError, Tree, Verdict, fail_unknown

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppraisalClient:
    """`AskModels` for one step of a run: a `ModelClient`, and what appraisers compute with the policy.

    Attributes:
        agent: Has the models, by role.
        answers: The cache.
        deadlines: The run's register of pending awaits.
        seed: Seed of the run.
        step: The step of the questions.
        replay: Replays actions in the environment; None without an environment.
        client: Sends the questions.
    """

    agent: Agent
    answers: AnswerStore
    deadlines: Deadlines
    seed: int
    step: int
    replay: ReplayedStates | None = None
    client: ModelClient = field(init=False)

    def __post_init__(self) -> None:
        client = ModelClient(
            model=self.agent.model,
            sampling=self.agent.sampling,
            deadlines=self.deadlines,
            seed=self.seed,
            owner=f"appraiser of step {self.step}",
            answers=self.answers,
            step=self.step,
        )
        object.__setattr__(self, "client", client)

    async def __call__(self, query: Query[Read]) -> Answer[Read]:
        """The answer, from the cache or the model."""
        return await self.client(query)

    async def score(self, scoring: Scoring) -> Reply:
        """The mean log-probability of a token of the continuation, from the cache or the policy."""
        model = self.agent.model(POLICY)
        read, tokens = scoring.tokens, scoring.action or _written(model, scoring.text)
        if scoring.masked is not None:
            read = mask_observation(model.renderer, read, scoring.masked)
        before = (*read, *_written(model, scoring.prefix))
        if len(before) + len(tokens) > model.engine.context_tokens:
            return Reply(verdict=Verdict.REFUSED)
        key = self.client.key(model, "score", [list(before), list(tokens)])

        async def score() -> Reply:
            logprobs = await model.engine.score(before, tokens)
            count = max(1, len(logprobs))
            probability = sum(map(math.exp, logprobs)) / count
            return Reply(verdict=Verdict.OK, logprob=sum(logprobs) / count, probability=probability)

        thing = f"score of {len(tokens)} tokens"
        return await self.client.once(key, lambda: self.client.limited(score(), scoring.deadline_s, thing))

    async def sample(self, continuation: Continuation) -> Reply:
        """A continuation by the policy, from the cache or the policy."""
        model = self.agent.model(POLICY)
        prompt = (*continuation.tokens, *_written(model, continuation.prefix))
        most = min(continuation.max_tokens, model.engine.context_tokens - len(prompt))
        if most < 1:
            return Reply(verdict=Verdict.REFUSED)
        key = self.client.key(model, "sample", [list(prompt), most, continuation.temperature, continuation.vote])

        async def generate() -> Reply:
            request = Request(
                prompt_tokens=prompt,
                sampling=Sampling(max_tokens=most, temperature=continuation.temperature),
                stop_tokens=model.renderer.stop_tokens,
                seed=self.client.content_seed(key),
            )
            completion = await model.engine.generate(request)
            nats = completion.entropies or ()
            return replace(reply_of(completion, model), entropy=sum(nats) / max(1, len(nats)))

        thing = f"continuation of {len(prompt)} tokens"
        return await self.client.once(key, lambda: self.client.limited(generate(), continuation.deadline_s, thing))

    async def states(self, tree: Tree) -> dict[int, State]:
        """The environment's states by node, of the nodes that a turn begins from."""
        return await self._environment().states(tree)

    async def plan(self, state: State) -> Sequence[AgentAction] | None:
        """The oracle's actions from a state to success; None where there are none, or the environment broke."""
        return await self._environment().plan(state)

    def _environment(self) -> ReplayedStates:
        if self.replay is None:
            raise StageError("AppraisalClient.replay: got None; need an environment for an appraiser of states")
        return self.replay

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens of the policy."""
        return self.agent.renderer.text(tokens)


def _written(model: RoleModel, text: str) -> tuple[int, ...]:
    """The tokens of a text inside an action."""
    stops = model.renderer.stop_tokens
    return tuple(token for token in model.renderer.write(text) if token not in stops) if text else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppraiseStage:
    """The stage between growth and reward, for the trees of one task.

    Attributes:
        appraisers: Ask the models.
        required: The columns that rewards, credit or objective need; a path without a value of one is `FAILED`.
        ask: Asks the models.
    """

    appraisers: Sequence[Appraiser]
    required: Sequence[str]
    ask: AppraisalClient

    async def __call__(self, trees: Sequence[Tree]) -> list[Tree]:
        """The trees with the columns."""
        found = await appraise_trees(trees, self.appraisers, self.ask)
        return [fail_unknown(tree, self.required) for tree in found]


def required_columns(*pieces: object) -> list[str]:
    """The names of the columns that pieces need."""
    return names_of(frozenset[Need]().union(*map(needs_of, pieces)), Appraised)
