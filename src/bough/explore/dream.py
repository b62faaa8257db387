"""An environment that an engine imagines."""

import asyncio
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bough.context import Renderer
from bough.engine import Engine, EngineFault, FinishReason, Request, Sampling
from bough.env import Branching, EnvFault, State, Step
from bough.tree import Outcome, Task
from bough.tree.seeds import derive

SYSTEM = (
    "You are the environment of an agent. Answer with nothing but what the agent would read after its last action. "
    "If that ends the episode, end with {over}; with {solved} if the task is then solved."
)
FIRST = "{task}\n\nThe episode begins. What does the agent read first?"
NEXT = "{told}\n\nWhat happened:\n{turns}\n\nWhat does the agent read now?"


@runtime_checkable
class Ask(Protocol):
    """Asks an engine something: `Rollout.ask`, which pays from a tree's budget, or `DirectLlmCall`."""

    async def __call__(self, system: str, text: str, *name: int | str, sampling: Sampling | None = None) -> str:
        """The whole answer.

        Raises:
            EngineFault: when the engine broke.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectLlmCall:
    """Asks an engine outside of any tree.

    Attributes:
        engine: Who is asked.
        renderer: Turns text into its tokens.
        sampling: How answers are sampled when nobody says otherwise.
        deadline_s: How long an answer may take.
        seed: With the name of a question, the seed of its answer.
    """

    engine: Engine
    renderer: Renderer
    sampling: Sampling
    deadline_s: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.deadline_s > 0:
            raise ValueError(f"DirectLlmCall.deadline_s: got {self.deadline_s}; need more than 0 seconds")

    async def __call__(self, system: str, text: str, *name: int | str, sampling: Sampling | None = None) -> str:
        """See `Ask`."""
        request = Request(
            prompt_tokens=self.renderer.render(system, (), text),
            sampling=sampling or self.sampling,
            stop_tokens=self.renderer.stop_tokens,
            seed=derive(self.seed, "aside", *name),
        )
        deadline = asyncio.timeout(self.deadline_s)
        try:
            async with deadline:
                completion = await self.engine.generate(request)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise EngineFault(f"no answer within {self.deadline_s:g} s (Aside.deadline_s)") from error
        if completion.finish is FinishReason.ABORTED:
            raise EngineFault("the engine aborted the answer")
        return self.renderer.text(completion.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamt:
    """The value of an imagined state.

    Attributes:
        told: What the agent was told first, or what the task is.
        past: What was read and done so far.
        run: Tells imaginations of the same things apart.
    """

    told: str
    past: tuple[tuple[str, str], ...] = ()
    run: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dream:
    """A world model that is an engine (WebDreamer, arXiv 2411.06559): it says what the agent would read.

    A host like any other, in which agents can be searched, trained and judged without the real environment; each step
    is one question, so that the budget of turns is one of questions. An engine that breaks or says nothing is a fault
    of the environment. States are values, without keys.

    Attributes:
        ask: Whom.
        system: What it is told. It may use the places {over} and {solved}.
        over: How it says that the episode is over.
        solved: How it says that the task is solved, too.
        branching: States are values.
    """

    ask: Ask
    system: str = SYSTEM
    over: str = "[over]"
    solved: str = "[solved]"
    branching: Branching = Branching.COPY

    async def start(self, task: Task) -> State:
        """What the agent reads first; `Task.data` is told, or the id where there is none.

        Raises:
            EnvFault: when there is no answer.
        """
        told = "\n".join(f"{name}: {value}" for name, value in task.data.items()) or task.id
        said = await self._said(FIRST.format(task=told), "dream", task.seed)
        return self.state(said, Dreamt(told=told))

    async def step(self, state: State, action: str) -> Step:
        """What the agent would read after an action.

        Raises:
            EnvFault: when there is no answer.
        """
        before = state.value
        if not isinstance(before, Dreamt):
            raise EnvFault(f"got a state with the value {before!r}; need one that was dreamt")
        past = (*before.past, (state.observation, action))
        turns = "\n".join(f"{read}\n> {done}" for read, done in past)
        said = await self._said(NEXT.format(told=before.told, turns=turns), "dream", before.run, *_flat(past))
        solved = self.solved in said
        observation = said.replace(self.solved, "").replace(self.over, "").strip()
        return Step(
            state=self.state(observation, Dreamt(told=before.told, past=past, run=before.run)),
            outcome=Outcome.TERMINATED if solved or self.over in said else Outcome.OPEN,
            success=solved,
            reward=float(solved),
        )

    async def plan(self, state: State) -> tuple[str, ...] | None:
        """None: nobody knows."""
        del state

    async def close(self) -> None:
        """Nothing to let go of."""

    def state(self, observation: str, value: Dreamt) -> State:
        """A state from which to dream on, such as a real one."""
        return State(observation=observation, key="", value=value)

    async def _said(self, text: str, *name: int | str) -> str:
        system = self.system.format(over=self.over, solved=self.solved)
        try:
            said = (await self.ask(system, text, *name)).strip()
        except EngineFault as fault:
            raise EnvFault(f"the engine that dreams broke: {fault}") from fault
        if not said:
            raise EnvFault("the engine that dreams said nothing")
        return said


def _flat(past: tuple[tuple[str, str], ...]) -> list[str]:
    return [text for turn in past for text in turn]
