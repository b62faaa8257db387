"""A number to find by questions on its bits, and a policy with the exact posterior."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.explore.stage import Letters, grow, runner, says

from bough.appraise import Appraiser
from bough.engine import Scripted
from bough.env import Branching, InProcessHost, State, Step
from bough.env.env import Split
from bough.explore import Chains
from bough.rollout import Deadlines
from bough.store.answers import Answers
from bough.train.appraise_stage import AppraisalClient, AppraiseStage
from bough.tree import Outcome, Task, Tree

BITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The number is 6. `x`, `y` and `z` ask for a bit, `w` asks for nothing; any other action is an answer."""

    branching: Branching = Branching.COPY
    instructions: str = "find it"
    number: int = 6

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{index}", seed=seed, data={"answer": str(self.number)}) for index in range(count)]

    def start(self, task: Task) -> State:
        del task
        return State(observation="?", key="", value="")

    def step(self, state: State, action: str) -> Step:
        asked = f"{state.value}{action}"
        bit = "xyz".find(action)
        told = f"{action}{self.number >> bit & 1}" if bit >= 0 else "hm"
        answered = action not in "xyzw"
        return Step(
            state=State(observation=told, key=asked, value=asked),
            outcome=Outcome.TERMINATED if answered or len(asked) == 4 else Outcome.OPEN,
            success=action == str(self.number),
            reward=float(action == str(self.number)),
        )


@dataclass
class Bayes(Scripted):
    """Scores an answer by the posterior, uniform over the numbers that agree with every bit in its context.

    Attributes:
        questions: The actions that it samples from.
        scored: Every context and continuation that it scored.
    """

    questions: Sequence[str] = "xyz"
    scored: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(script=says(lambda rng: rng.choice(self.questions)))

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        del temperature
        read, written = Letters().text(prompt_tokens), Letters().text(continuation_tokens)
        self.scored.append((read, written))
        return tuple(math.log(chance(read, letter)) for letter in written)


def consistent(read: str) -> list[int]:
    """The numbers that agree with the context."""
    told = {
        bit: name + str(value) for bit, name in enumerate("xyz") for value in (0, 1) if f"{{{name}{value}}}" in read
    }
    return [n for n in range(2**BITS) if all(told[bit].endswith(str(n >> bit & 1)) for bit in told)]


def chance(read: str, letter: str) -> float:
    """The posterior of a number; a question gets what the numbers leave, the same for those not yet answered."""
    possible = consistent(read)
    if letter.isdigit():
        return 1 / len(possible) if int(letter) in possible else 1e-9
    open_bits = [name for name in "xyz" if f"{{{name}" not in read]
    return 0.9 / len(open_bits) if letter in open_bits else 0.1 / 4


def grown(n: int = 6, questions: str = "xyzw") -> tuple[list[Tree], Bayes]:
    """A tree of paths with random questions, and their policy."""
    engine = Bayes(questions=questions)
    return list(grow(runner(engine, InProcessHost(env=Numbers())), Chains(n=n), "one").trees), engine


def appraised(trees: list[Tree], engine: Bayes, appraiser: Appraiser, folder: Path) -> list[Tree]:
    """The trees after the questions of an appraiser."""
    ask = AppraisalClient(
        agent=runner(engine).agent, answers=Answers(folder / "a.jsonl"), deadlines=Deadlines(), seed=1, step=1
    )
    return asyncio.run(AppraiseStage(appraisers=(appraiser,), required=(), ask=ask)(trees))
