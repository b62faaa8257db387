"""A world model: an environment that an engine imagines."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.ask import QueryClient, QuerySettings, Text
from bough.env import Branching, EnvFault, State, Step
from bough.tree import AgentAction, Outcome, Task, Verdict, action_text, plain_text

SYSTEM = (
    "You are the environment of an agent. Answer with nothing but what the agent would read after its last action. "
    "If that ends the episode, end with {over}; with {solved} if the task is then solved."
)
FIRST = "{task}\n\nThe episode begins. What does the agent read first?"
NEXT = "{instructions}\n\nWhat happened:\n{turns}\n\nWhat does the agent read now?"


OVER, SOLVED = "[over]", "[solved]"
"""Marks of the end of an episode, without and with success."""


def system_text(*, over: str = OVER, solved: str = SOLVED) -> str:
    """The system prompt of a world model."""
    return SYSTEM.format(over=over, solved=solved)


def world_question(instructions: str, past: Sequence[tuple[str, str]]) -> str:
    """The question for the observation after some turns.

    Args:
        instructions: The agent's instructions.
        past: Pairs of observation and action so far, the last action included.
    """
    turns = "\n".join(f"{read}\n> {done}" for read, done in past)
    return NEXT.format(instructions=instructions, turns=turns)


def observed_text(observation: str, *, over: bool, solved: bool) -> str:
    """The answer that stands for an observation: with its mark at the end of an episode."""
    mark = SOLVED if solved else OVER if over else ""
    return f"{observation}\n{mark}".strip() if mark else observation.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImaginedEpisode:
    """The value of an imagined state.

    Attributes:
        instructions: The agent's instructions, or the task.
        past: Pairs of observation and action so far.
        run: Distinguishes simulations with the same history.
    """

    instructions: str
    past: tuple[tuple[str, str], ...] = ()
    run: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldModel(QuerySettings):
    """A world model that is an engine (WebDreamer, arXiv 2411.06559): it generates the observations.

    It is a host like any other, in which agents can be searched, trained and evaluated without the real environment.
    Each step is one question, so the budget of turns is one of questions. A model that breaks, is late or returns an
    empty answer is a fault of the environment. States are values, without keys.

    Attributes:
        ask: Asks the model, such as `Rollout.ask`, charged to a tree's budget, or a `ModelClient`.
        system: The system prompt. It may use the placeholders {over} and {solved}.
        over: Text that marks the end of the episode.
        solved: Text that marks the end of the episode with success.
        branching: States are values.
    """

    ask: QueryClient
    system: str = SYSTEM
    over: str = OVER
    solved: str = SOLVED
    branching: Branching = Branching.COPY

    async def start(self, task: Task) -> State:
        """The first observation; the prompt has `Task.data`, or the id where it is empty.

        Raises:
            EnvFault: when there is no answer.
        """
        instructions = "\n".join(f"{name}: {value}" for name, value in task.data.items()) or task.id
        answer = await self._generate(FIRST.format(task=instructions), "dream", task.seed)
        return self.state(answer, ImaginedEpisode(instructions=instructions))

    async def step(self, state: State, action: AgentAction) -> Step:
        """The observation after an action.

        Raises:
            EnvFault: when there is no answer.
        """
        before = state.value
        if not isinstance(before, ImaginedEpisode):
            raise EnvFault(f"got a state with the value {before!r}; need an imagined one")
        past = (*before.past, (plain_text(state.observation), action_text(action)))
        question = world_question(before.instructions, past)
        answer = await self._generate(question, "dream", before.run, *_flat(past))
        solved = self.solved in answer
        observation = answer.replace(self.solved, "").replace(self.over, "").strip()
        return Step(
            state=self.state(observation, ImaginedEpisode(instructions=before.instructions, past=past, run=before.run)),
            outcome=Outcome.TERMINATED if solved or self.over in answer else Outcome.OPEN,
            success=solved,
            reward=float(solved),
        )

    async def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """None: there is no oracle."""
        del state

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def state(self, observation: str, value: ImaginedEpisode) -> State:
        """A state, imagined or real, from which simulations start."""
        return State(observation=observation, key="", value=value)

    async def _generate(self, text: str, *name: int | str) -> str:
        system = self.system.format(over=self.over, solved=self.solved)
        answer = await self.ask(self.query(text, Text(), *name, system=system))
        if answer.value is not None:
            return answer.value
        match answer.verdict:
            case Verdict.REFUSED:
                raise EnvFault(f"the world model's engine broke: {answer.texts[-1]}")
            case Verdict.LATE:
                raise EnvFault("the world model's engine did not answer before the deadline (WorldModel.deadline_s)")
            case _:
                raise EnvFault("the world model's engine returned an empty answer")


def _flat(past: tuple[tuple[str, str], ...]) -> list[str]:
    return [text for turn in past for text in turn]
