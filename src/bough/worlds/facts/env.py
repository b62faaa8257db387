"""Hidden facts: questions reveal the facts of a case, and a few of them decide its class."""

import random
from dataclasses import dataclass
from typing import Annotated, cast

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import content_hash, draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

SIGNS = [
    "fever",
    "cough",
    "rash",
    "pain",
    "chills",
    "thirst",
    "nausea",
    "fatigue",
    "headache",
    "dizziness",
    "itching",
    "swelling",
    "sweating",
    "cramps",
    "sneezing",
    "insomnia",
    "tremor",
    "hoarseness",
    "weakness",
    "numbness",
]
CLASSES = ("flu", "cold", "gout", "measles", "mumps", "asthma", "anemia", "migraine")
VALUES = ("no", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsState:
    """The value of a state of `HiddenFacts`: the values of the signs, the signs asked about so far, and the end."""

    values: tuple[str, ...]
    asked: tuple[str, ...] = ()
    turns: int = 0
    over: bool = False


@piece
class HiddenFacts:
    """A case with hidden facts: `ask SIGN` reveals one, `answer CLASS` ends the episode (ProMed, arXiv 2508.13514).

    A case has `facts` signs, each yes or no. `informative` of them decide its class, one of 2 ** `informative`, by a
    table that is the same for all tasks and follows from `table`; the other signs are noise. The first observation
    names the signs without their values:

        fever cough rash pain?    ask fever -> fever yes    ask pain -> pain no    answer cold

    A right answer pays 1 and is success. The data of a task have its "facts", texts such as "fever yes", and the
    action of the right "answer". A question costs `turn_cost`. The oracle asks about the informative signs alone.

    Attributes:
        facts: Number of signs, 2 to 20.
        informative: Number of signs that decide, 1 to 3, at most `facts`.
        turn_cost: Subtracted from the reward at each question.
        patience: Number of turns after which the episode is `TRUNCATED`.
        table: Seed of the informative signs and of the classes.

    Raises:
        ValueError: when a field is out of its range.
    """

    facts: Annotated[int, Between(2, len(SIGNS))] = 6
    informative: Annotated[int, Between(1, 3)] = 2
    turn_cost: float = 0.0
    patience: Annotated[int, AtLeast(1)] = 6
    table: int = 0
    branching = Branching.COPY

    def __post_init__(self) -> None:
        if self.informative > self.facts:
            raise ValueError(f"HiddenFacts.informative: got {self.informative}; need at most facts={self.facts}")

    @property
    def instructions(self) -> str:
        """The rules."""
        return f"Find the class of a case: ask SIGN, then answer one of {', '.join(self._classes)}."

    @property
    def deciding(self) -> tuple[str, ...]:
        """The informative signs."""
        return tuple(sorted(self._rng.sample(SIGNS[: self.facts], self.informative), key=SIGNS.index))

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different cases of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        drawn = draw_instances(
            name="HiddenFacts",
            split=split,
            count=count,
            seed=seed,
            propose=lambda rng: tuple(rng.choice(VALUES) for _ in range(self.facts)),
            content=" ".join,
            accept=bool,
        )
        return [self._task(values) for values in drawn]

    def start(self, task: Task) -> State:
        """Returns the state with the names of the signs.

        Raises:
            ValueError: when `task.data["facts"]` is not one text for each sign.
        """
        found = task.data.get("facts")
        facts = [*map(str, cast("list[object]", found))] if isinstance(found, list | tuple) else []
        values = tuple(fact.rpartition(" ")[2] for fact in facts)
        if [fact.rpartition(" ")[0] for fact in facts] != self._signs or not {*values} <= {*VALUES}:
            raise ValueError(
                f"HiddenFacts: task {task.id} got the facts {found!r}; need one for each of {', '.join(self._signs)}, "
                "such as 'fever yes'"
            )
        return self._state(FactsState(values=values), f"{' '.join(self._signs)}?")

    def step(self, state: State, action: str) -> Step:
        """Reveals a fact, or ends the episode with an answer."""
        current = value_of(state, FactsState, "HiddenFacts")
        kind, _, word = action.strip().partition(" ")
        if current.over:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        turns = current.turns + 1
        if kind == "answer" and word in self._classes:
            right = word == self.class_of(current.values)
            end = FactsState(values=current.values, asked=current.asked, turns=turns, over=True)
            return Step(
                state=self._state(end, "right" if right else "wrong"),
                reward=float(right),
                outcome=Outcome.TERMINATED,
                success=right,
            )
        valid = kind == "ask" and word in self._signs
        asked = current.asked if not valid or word in current.asked else (*current.asked, word)
        over = turns >= self.patience
        text = f"{word} {current.values[self._signs.index(word)]}" if valid else "ask or answer"
        return Step(
            state=self._state(FactsState(values=current.values, asked=asked, turns=turns, over=over), text),
            reward=-self.turn_cost,
            outcome=Outcome.TRUNCATED if over else Outcome.OPEN,
            valid=valid,
        )

    def class_of(self, values: tuple[str, ...]) -> str:
        """The class of a case."""
        number = sum((values[self._signs.index(sign)] == "yes") << place for place, sign in enumerate(self.deciding))
        return self._classes[number]

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Questions about the informative signs that are left, and the right answer; None after the end."""
        current = value_of(state, FactsState, "HiddenFacts")
        if current.over:
            return None
        left = [f"ask {sign}" for sign in self.deciding if sign not in current.asked]
        plan = (*left, f"answer {self.class_of(current.values)}")
        return plan if len(plan) <= self.patience - current.turns else None

    @property
    def _rng(self) -> random.Random:
        return random.Random(content_hash(f"facts {self.table}"))

    @property
    def _signs(self) -> list[str]:
        return SIGNS[: self.facts]

    @property
    def _classes(self) -> tuple[str, ...]:
        return CLASSES[: 2**self.informative]

    def _task(self, values: tuple[str, ...]) -> Task:
        facts = [f"{sign} {value}" for sign, value in zip(self._signs, values, strict=True)]
        data = {"facts": facts, "answer": f"answer {self.class_of(values)}"}
        return instance_task(name="facts", content=f"{self.table} {self.informative} {' '.join(facts)}", data=data)

    def _state(self, current: FactsState, text: str) -> State:
        acts = (*(f"ask {sign}" for sign in self._signs), *(f"answer {name}" for name in self._classes))
        known = [f"{sign} {current.values[self._signs.index(sign)]}" for sign in sorted(current.asked)]
        key = f"{' '.join(known)}{' over' if current.over else ''} {text}"
        return State(observation=text, key=key, value=current, admissible=acts)
