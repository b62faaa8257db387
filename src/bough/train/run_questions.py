"""The questions of appraisers and hooks to the models of a run."""

from typing import TypeVar

from bough.ask import Answer, Query, QueryClient
from bough.env.env import env_gives
from bough.needs import CALLS_TAKEN
from bough.rollout import Agent
from bough.store.answers import Answers
from bough.train.appraise_stage import AppraisalClient, AppraiseStage, required_columns
from bough.train.recorder import TrainState
from bough.train.replayed_states import ReplayedStates
from bough.train.runtime import Runtime
from bough.train.trained import TrainedPolicy

Read = TypeVar("Read")


class RunQuestions:
    """Sends the questions of appraisers and hooks to the models of a run, with one cache of answers."""

    def __init__(self, runtime: Runtime, state: TrainState, answers: Answers) -> None:
        """For a run whose present step is that of `state`."""
        self._runtime, self._state, self._answers = runtime, state, answers

    def appraise_stage(self, agent: Agent, step: int) -> AppraiseStage:
        """The stage that appraises the trees of a task as soon as they are complete."""
        runtime, world = self._runtime, self._runtime.run.world
        replay = ReplayedStates(
            host=runtime.host,
            calls=CALLS_TAKEN in env_gives(world.env),
            deadlines=runtime.deadlines,
            deadline_s=world.limits.env_deadline_s,
        )
        required = required_columns(world.rewards, runtime.run.method)
        return AppraiseStage(appraisers=world.appraisers, required=required, ask=self._client(agent, step, replay))

    def query_client(self, policy: TrainedPolicy) -> QueryClient:
        """The client for questions of a policy's hooks; its role `policy` is that policy."""

        async def ask(query: Query[Read]) -> Answer[Read]:
            return await self._client(policy.agent(self._runtime.models), self._state.step)(query)

        return ask

    def _client(self, agent: Agent, step: int, replay: ReplayedStates | None = None) -> AppraisalClient:
        return AppraisalClient(
            agent=agent,
            answers=self._answers,
            deadlines=self._runtime.deadlines,
            seed=self._runtime.run.seed,
            step=step,
            replay=replay,
        )
