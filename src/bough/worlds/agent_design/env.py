"""Designs of agents: a workflow and components, edited step by step and evaluated on a benchmark."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Annotated, Protocol, TypeAlias, runtime_checkable

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

LIBRARY: Mapping[str, tuple[str, ...]] = {
    "workflow": ("direct", "chain", "debate", "reflect"),
    "planning": ("none", "steps", "tree", "replan"),
    "memory": ("none", "window", "notes", "retrieval"),
    "tools": ("none", "search", "code", "browser"),
}
"""The options of each slot; the first is that of the first design."""
VARIANTS = 3
"""Variants of an option that mutations can reach, the original included."""
LEVELS = 4
"""Levels of a component's setting, 0 to 3."""

Component: TypeAlias = tuple[str, int, int]
"""An option, its variant, and the level of its setting."""
Design: TypeAlias = tuple[tuple[str, Component], ...]
"""The component of each slot, in the order of `LIBRARY`."""


@runtime_checkable
class Benchmark(Protocol):
    """Evaluates designs: a frozen dataclass. A call may run real agents; it happens once for each executed edit."""

    def score(self, design: Design, seed: int) -> float:
        """The score of a design on the benchmark of a task, 0 to 1; a function of its arguments."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBenchmark:
    """A generated benchmark: each option has an effect of its own and one with every option of another slot.

    Variants and settings change an option's effect; one level of the setting is best. The table is a function of the
    seed. Scores are scaled so that the worst combination of plain options has 0 and the best .8.
    """

    def score(self, design: Design, seed: int) -> float:
        """See `Benchmark`."""
        low, high = _extremes(seed)
        return min(1.0, max(0.0, 0.8 * (_effect(design, seed) - low) / (high - low)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignState:
    """The value of a state of `AgentDesign`.

    Attributes:
        design: The present design.
        seed: Seed of the benchmark.
        score: The score of the design.
        edits: Number of edits so far, the invalid ones included.
        over: Whether no edit is left.
    """

    design: Design
    seed: int
    score: float
    edits: int = 0
    over: bool = False


@piece
class AgentDesign:
    """AgentSwift (arXiv 2506.06017): design an agent by edits of a workflow and three components.

    An action is one edit, and its reward the change of the score, so the return is the score less that of the first
    design:

        recombine planning tree    another component of the library
        mutate planning            the next variant of the component, whose effect is unknown
        refine planning up         the setting of the component, one level up or down

    Every executed edit is an evaluation on the benchmark, which is the cost of a search. Success is a score of
    `target`. With a `Benchmark` of your own the designs are real agents; the paper's workflows and components are
    programs that a model writes.

    Attributes:
        benchmark: Evaluates designs.
        max_edits: Edits after which the episode is `TRUNCATED`, at least 1.
        target: Score of a success, above 0, at most 1.

    Raises:
        ValueError: when a field is out of its range.
    """

    benchmark: Benchmark = field(default_factory=TableBenchmark)
    max_edits: Annotated[int, AtLeast(1)] = 6
    target: Annotated[float, Between(0, 1, above=True)] = 0.8
    branching = Branching.COPY

    @property
    def deviations(self) -> Mapping[str, str]:
        """The oracle need not succeed."""
        return {"oracle": "it makes the best edit of each step, which need not reach the target"}

    @property
    def instructions(self) -> str:
        """The edits and the library."""
        slots = "; ".join(f"{slot}: {', '.join(options)}" for slot, options in LIBRARY.items())
        return f"Improve the agent by one edit: recombine SLOT OPTION, mutate SLOT, or refine SLOT up or down. {slots}."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different benchmarks of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        drawn = draw_instances(
            name="AgentDesign",
            split=split,
            count=count,
            seed=seed,
            propose=lambda rng: rng.randrange(2**31),
            content=str,
            accept=lambda _: True,
        )
        return [instance_task(name="design", content=str(each), data={"benchmark": each}) for each in drawn]

    def start(self, task: Task) -> State:
        """Returns the state with the first design, which is evaluated.

        Raises:
            ValueError: when `task.data["benchmark"]` is no integer.
        """
        seed = task.data.get("benchmark")
        if type(seed) is not int:
            raise ValueError(f"AgentDesign: task {task.id} got the benchmark {seed!r}; need an integer")
        design: Design = tuple((slot, (options[0], 0, 0)) for slot, options in LIBRARY.items())
        return _state(DesignState(design=design, seed=seed, score=self.benchmark.score(design, seed)))

    def step(self, state: State, action: str) -> Step:
        """Executes an edit. An edit that changes nothing is valid; any other text is not."""
        current = design_state(state)
        if current.over:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        edits = possible_edits(current.design)
        design = edits.get(" ".join(action.lower().split()))
        after = replace(current, edits=current.edits + 1)
        if design is not None:
            after = replace(after, design=design, score=self.benchmark.score(design, current.seed))
        success, out = design is not None and after.score >= self.target, after.edits >= self.max_edits
        after = replace(after, over=success or out)
        return Step(
            state=_state(after),
            reward=after.score - current.score,
            outcome=Outcome.TERMINATED if success else Outcome.TRUNCATED if out else Outcome.OPEN,
            valid=design is not None,
            success=success,
            info={"score": after.score},
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the best edit of each step, by evaluating all of them; None when none improves the design.

        The last design need not reach the target.
        """
        current = design_state(state)
        design, score, plan = current.design, current.score, list[str]()
        for _ in range(0 if current.over else self.max_edits - current.edits):
            found = {edit: self.benchmark.score(each, current.seed) for edit, each in possible_edits(design).items()}
            best = max(found, key=lambda edit: found[edit])
            if found[best] <= score:
                break
            plan.append(best)
            design, score = possible_edits(design)[best], found[best]
            if score >= self.target:
                break
        return tuple(plan) or None


def possible_edits(design: Design) -> dict[str, Design]:
    """The edits of a design, with the designs that they lead to."""
    found: dict[str, Design] = {}
    for slot, (option, variant, level) in design:
        for other in LIBRARY[slot]:
            if other != option:
                found[f"recombine {slot} {other}"] = _with(design, slot, (other, 0, 0))
        found[f"mutate {slot}"] = _with(design, slot, (option, (variant + 1) % VARIANTS, level))
        for name, change in (("up", 1), ("down", -1)):
            if 0 <= level + change < LEVELS:
                found[f"refine {slot} {name}"] = _with(design, slot, (option, variant, level + change))
    return found


def design_state(state: State) -> DesignState:
    """The value of a state of `AgentDesign`.

    Raises:
        TypeError: for a state of another environment.
    """
    return value_of(state, DesignState, "AgentDesign")


def _state(current: DesignState) -> State:
    lines = [f"{slot} {option}{'*' * variant} {level}" for slot, (option, variant, level) in current.design]
    text = "\n".join([*lines, f"score {current.score:.2f}"])
    key = f"{current.seed} {lines}{' over' if current.over else ''}"
    return State(observation=text, key=key, value=current, admissible=tuple(possible_edits(current.design)))


def _with(design: Design, slot: str, component: Component) -> Design:
    return tuple((each, component if each == slot else found) for each, found in design)


def _effect(design: Design, seed: int) -> float:
    """The sum of all effects of a design."""
    total = 0.0
    for place, (slot, (option, variant, level)) in enumerate(design):
        total += _random(seed, slot, option)
        total += 0.3 * _random(seed, slot, option, variant) if variant else 0.0
        best = int(LEVELS * (_random(seed, slot, option, "level") + 1) / 2)
        total += 0.1 * (abs(best) - abs(best - level))
        for other_slot, (other, _, _) in design[place + 1 :]:
            total += 0.3 * _random(seed, slot, option, other_slot, other)
    return total


@lru_cache(maxsize=256)
def _extremes(seed: int) -> tuple[float, float]:
    """The lowest and the highest effect of plain combinations."""
    plain = product(*([(slot, (option, 0, 0)) for option in options] for slot, options in LIBRARY.items()))
    effects = [_effect(each, seed) for each in plain]
    return min(effects), max(effects)


@lru_cache(maxsize=65536)
def _random(seed: int, *name: str | int) -> float:
    """A number from -1 to 1."""
    return random.Random(f"{seed} {name}").uniform(-1, 1)
