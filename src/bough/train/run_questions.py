"""The questions of appraisers and hooks to the models of a run."""

from bough.appraise import Question
from bough.env.env import env_gives
from bough.hooks.hook import HookQuestion
from bough.needs import CALLS_TAKEN
from bough.rollout import Agent
from bough.store.answers import Answers
from bough.train.asker import AppraiseStage, Asker, required_columns
from bough.train.recorder import TrainState
from bough.train.replayed_states import ReplayedStates
from bough.train.runtime import Runtime
from bough.tree import Verdict


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
        return AppraiseStage(appraisers=world.appraisers, required=required, ask=self._asker(agent, step, replay))

    async def answer_hook(self, question: HookQuestion) -> str | None:
        """The answer of a model to a hook of the run's `policy`; None when it is late or refused."""
        ask = self._asker(self._runtime.main.agent(self._runtime.models), self._state.step)
        reply = await ask(
            Question(
                text=question.text,
                role=question.role,
                max_tokens=question.max_tokens,
                temperature=question.temperature,
                deadline_s=question.deadline_s,
            )
        )
        return reply.text if reply.verdict is Verdict.OK else None

    def _asker(self, agent: Agent, step: int, replay: ReplayedStates | None = None) -> Asker:
        deadlines, seed = self._runtime.deadlines, self._runtime.run.seed
        return Asker(agent=agent, answers=self._answers, deadlines=deadlines, seed=seed, step=step, replay=replay)
