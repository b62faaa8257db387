"""A graph of thoughts: a controller picks transformations, and a solver executes them."""

import itertools
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, TypeAlias, cast

from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import AtLeast, Between, piece
from bough.tree import Outcome, Task

CONTROLLER, SOLVER = "controller", "solver"
NUMBERS = re.compile(r"\d+")
MOST_CHARACTERS = 4000
"""Maximum length of a solver's text that is read."""

Numbers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A node of the graph.

    Attributes:
        move: The transformation that made it, such as "merge 3 4"; "" for the task.
        span: First and last position of the task's list that it is about, the last excluded.
        answer: The sorted numbers as far as the solver is right; None for a subtask without an answer.
    """

    move: str
    span: tuple[int, int]
    answer: Numbers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtGraphState:
    """The value of a state of `ThoughtGraph`.

    Attributes:
        numbers: The list to sort.
        thoughts: The nodes, by number.
        move: The transformation that the solver executes; "" while the controller acts.
        moves: Number of the controller's moves, the invalid ones included.
        over: Whether the episode is over.
    """

    numbers: Numbers
    thoughts: tuple[Thought, ...]
    move: str = ""
    moves: int = 0
    over: bool = False


@piece
class ThoughtGraph:
    """ARIES (arXiv 2502.21208): transformations of a graph of thoughts as actions, on the paper's task of sorting.

    The seat `controller` reads the whole graph and answers with a transformation of its nodes:

        split 0      two subtasks, the halves of the list of thought 0
        solve 1      the solver sorts the list of thought 1
        refine 3     the solver corrects the answer of thought 3
        merge 3 4    the solver merges two answers whose lists are neighbours
        submit 5     ends with an answer to the whole task

    Each one adds thoughts and leaves the others as they are. The seat `solver` executes all but split and submit,
    and writes a list of numbers; any text is an answer, of which the numbers of the last line with numbers count. The
    script `ScriptedSolver` acts for it; so can a model.

    The reward of an answer is 1 - errors / numbers, at least 0. As in Graph of Thoughts, errors are the neighbours in
    the wrong order and the numbers that are missing or too many. Each turn of the solver costs `query_cost`. Success is
    an answer without errors.

    The paper's tasks also include intersections of sets and programs. There the solver splits, too, and thoughts can be
    removed.

    Attributes:
        numbers: Length of a list, at least 2.
        highest: The numbers are 0 to this one, at least 1.
        max_moves: Number of the controller's moves after which the episode is `TRUNCATED`.
        query_cost: Subtracted from the reward at each turn of the solver.
        reach: Length of a list that the solver is assumed to sort without errors: the oracle splits longer ones.

    Raises:
        ValueError: when a field is out of its range.
    """

    numbers: Annotated[int, AtLeast(2)] = 8
    highest: Annotated[int, AtLeast(1)] = 9
    max_moves: Annotated[int, AtLeast(1)] = 12
    query_cost: float = 0.01
    reach: Annotated[int, AtLeast(1)] = 4

    seats: ClassVar[Mapping[str, str]] = {
        CONTROLLER: "You control the graph. Answer with one transformation.",
        SOLVER: "You carry out a transformation. Answer with the list of numbers alone.",
    }
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The task and the transformations."""
        return (
            "Sort the list of thought 0 in ascending order. split N, solve N, refine N and merge N M add thoughts; "
            "submit N ends with an answer to the whole task."
        )

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different lists of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        drawn = draw_instances(
            name="ThoughtGraph",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, count=self.numbers, highest=self.highest),
            content=_text,
            accept=lambda numbers: sort_errors(numbers, numbers) > 0,
        )
        return [instance_task(name="thoughts", content=_text(each), data={"numbers": [*each]}) for each in drawn]

    def start(self, task: Task) -> State:
        """Returns the state in which the graph has the task alone.

        Raises:
            ValueError: when `task.data["numbers"]` is not a list of two or more integers.
        """
        found = task.data.get("numbers")
        numbers = tuple(cast("list[int]", found)) if isinstance(found, list) else ()
        if len(numbers) < 2 or not all(type(each) is int and each >= 0 for each in numbers):
            raise ValueError(f"ThoughtGraph: task {task.id} got the numbers {found!r}; need two or more, none below 0")
        whole = Thought(move="", span=(0, len(numbers)))
        return _state(ThoughtGraphState(numbers=numbers, thoughts=(whole,)))

    def step(self, state: State, action: str) -> Step:
        """Executes a transformation of the controller, or takes an answer of the solver."""
        current = thought_state(state)
        if current.over:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        if current.move:
            return self._answered(current, action)
        move = " ".join(action.lower().split())
        after = replace(current, moves=current.moves + 1)
        if move not in moves(current):
            return self._next(after, valid=False)
        kind, *names = move.split()
        if kind == "split":
            begin, end = current.thoughts[int(names[0])].span
            halves = ((begin, (begin + end) // 2), ((begin + end) // 2, end))
            added = tuple(Thought(move=move, span=span) for span in halves)
            return self._next(replace(after, thoughts=(*current.thoughts, *added)))
        if kind == "submit":
            errors = sort_errors(current.thoughts[int(names[0])].answer or (), current.numbers)
            return Step(
                state=_state(replace(after, over=True)),
                reward=max(0.0, 1 - errors / len(current.numbers)),
                outcome=Outcome.TERMINATED,
                success=errors == 0,
                info={"errors": errors, "thoughts": len(current.thoughts)},
            )
        return Step(state=_state(replace(after, move=move)))

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the controller's next move, or the right answer where the solver acts; None when there is none.

        The move follows one schedule: split lists longer than `reach`, solve the parts, refine answers with errors,
        merge, and submit.
        """
        current = thought_state(state)
        if current.move:
            return (_text(sorted(_wanted(current))),)
        found = None if current.over else self._schedule(current, (0, len(current.numbers)))
        return None if found is None else (found,)

    def _schedule(self, current: ThoughtGraphState, span: tuple[int, int]) -> str:
        """The next move toward a right answer for a part of the list."""
        there = {number: each for number, each in enumerate(current.thoughts) if each.span == span}
        answers = {number: _errors(current, each) for number, each in there.items() if each.answer is not None}
        best = min(answers, key=lambda number: (answers[number], number), default=None)
        if best is not None and not answers[best]:
            return f"submit {best}"
        own = next(number for number, each in there.items() if each.answer is None)
        if span[1] - span[0] <= self.reach:
            return f"solve {own}" if best is None else f"refine {best}"
        parts = [each.span for each in current.thoughts if each.move == f"split {own}"]
        if not parts:
            return f"split {own}"
        below = [self._schedule(current, part) for part in parts]
        open_move = next((move for move in below if not move.startswith("submit")), None)
        return open_move or "merge " + " ".join(move.split()[1] for move in below)

    def _answered(self, current: ThoughtGraphState, text: str) -> Step:
        """The solver's turn."""
        lines = [line for line in text[:MOST_CHARACTERS].splitlines() if NUMBERS.search(line)]
        found = tuple(int(each[:9]) for each in NUMBERS.findall(lines[-1] if lines else ""))
        made = Thought(move=current.move, span=_span(current), answer=found)
        after = replace(current, thoughts=(*current.thoughts, made), move="")
        return replace(self._next(after, valid=bool(found)), reward=-self.query_cost)

    def _next(self, after: ThoughtGraphState, *, valid: bool = True) -> Step:
        """The controller's next turn, or the end."""
        out = after.moves >= self.max_moves
        return Step(
            state=_state(replace(after, over=out)),
            outcome=Outcome.TRUNCATED if out else Outcome.OPEN,
            valid=valid,
        )


@piece
class ScriptedSolver:
    """A solver that is mostly right on short lists, merges without errors, and corrects one error at a time.

    When it solves a list longer than `reach`, each number beyond the reach changes places with its neighbour with
    probability `slip`. In a shorter one two neighbours change places with probability `short_slip`.

    Attributes:
        reach: Length of the longest list that it mostly sorts without errors, at least 1.
        slip: Probability of an error for each number beyond, in [0, 1].
        short_slip: Probability of an error in a list within the reach, in [0, 1].
    """

    reach: Annotated[int, AtLeast(1)] = 4
    slip: Annotated[float, Between(0, 1)] = 0.9
    short_slip: Annotated[float, Between(0, 1)] = 0.25

    def act(self, state: State, seed: int) -> str:
        """See `Script.act`.

        Raises:
            EnvFault: when the solver does not act in the state, or it is one of another environment.
        """
        if not isinstance(state.value, ThoughtGraphState) or not state.value.move:
            raise EnvFault("ScriptedSolver: got a state in which no solver acts; need one of ThoughtGraph")
        current, rng = state.value, random.Random(seed)
        kind, *names = current.move.split()
        found = sorted(_wanted(current))
        if kind == "solve":
            places = [place for place in range(self.reach, len(found)) if rng.random() < self.slip]
            if 1 < len(found) <= self.reach and rng.random() < self.short_slip:
                places = [rng.randrange(1, len(found))]
            for place in places:
                found[place - 1], found[place] = found[place], found[place - 1]
        if kind == "merge":
            found = sorted(number for name in names for number in current.thoughts[int(name)].answer or ())
        if kind == "refine":
            found = _corrected(list(current.thoughts[int(names[0])].answer or ()), found)
        return _text(found)


def moves(current: ThoughtGraphState) -> tuple[str, ...]:
    """The transformations that are possible, in the order of the thoughts."""
    found: list[str] = []
    made = {each.move for each in current.thoughts}
    for number, thought in enumerate(current.thoughts):
        begin, end = thought.span
        if thought.answer is None:
            some = [f"split {number}"] if end - begin > 1 and f"split {number}" not in made else []
            found += [*some, f"solve {number}"]
            continue
        found.append(f"refine {number}")
        found += [
            f"merge {number} {other}"
            for other, each in enumerate(current.thoughts)
            if each.answer is not None and each.span[0] == end
        ]
        if end - begin == len(current.numbers):
            found.append(f"submit {number}")
    return tuple(found)


def sort_errors(answer: Sequence[int], numbers: Sequence[int]) -> int:
    """The errors of an answer: neighbours in the wrong order, and numbers that are missing or too many.

    Examples:
        >>> sort_errors((1, 3, 2), (3, 2, 1)), sort_errors((1, 2), (3, 2, 1)), sort_errors((1, 2, 2), (1, 2, 3))
        (1, 1, 2)
    """
    wrong = sum(one > other for one, other in itertools.pairwise(answer))
    have, need = Counter(answer), Counter(numbers)
    return wrong + (have - need).total() + (need - have).total()


def thought_state(state: State) -> ThoughtGraphState:
    """The value of a state of `ThoughtGraph`.

    Raises:
        TypeError: for a state of another environment.
    """
    return value_of(state, ThoughtGraphState, "ThoughtGraph")


def _state(current: ThoughtGraphState) -> State:
    graph = "\n".join(_line(current, number) for number in range(len(current.thoughts)))
    if current.move:
        return State(observation=_question(current), key=f"{current.move}\n{graph}", value=current, seat=SOLVER)
    key = f"{graph}\nover" if current.over else graph
    return State(observation=graph, key=key, value=current, admissible=moves(current), seat=CONTROLLER)


def _line(current: ThoughtGraphState, number: int) -> str:
    """A thought as the controller reads it; its open subtasks show their list."""
    thought = current.thoughts[number]
    begin, end = thought.span
    shown = current.numbers[begin:end] if thought.answer is None else thought.answer
    return f"{number} {thought.move or 'task'}: {_text(shown)}"


def _question(current: ThoughtGraphState) -> str:
    """What the solver reads."""
    kind, *names = current.move.split()
    wanted = _text(_wanted(current))
    answers = [_text(current.thoughts[int(name)].answer or ()) for name in names]
    if kind == "solve":
        return f"Sort in ascending order: {wanted}"
    if kind == "merge":
        return f"Merge into one list in ascending order: {answers[0]} and {answers[1]}"
    return f"Sorted in ascending order, {wanted} is not quite: {answers[0]}\nCorrect it."


def _span(current: ThoughtGraphState) -> tuple[int, int]:
    """The part of the list that the solver's answer is about."""
    spans = [current.thoughts[int(name)].span for name in current.move.split()[1:]]
    return spans[0][0], spans[-1][1]


def _wanted(current: ThoughtGraphState) -> Numbers:
    begin, end = _span(current)
    return current.numbers[begin:end]


def _errors(current: ThoughtGraphState, thought: Thought) -> int:
    begin, end = thought.span
    return sort_errors(thought.answer or (), current.numbers[begin:end])


def _corrected(answer: list[int], right: list[int]) -> list[int]:
    """An answer with its first wrong neighbours exchanged; the right one where numbers are missing or too many."""
    if Counter(answer) != Counter(right):
        return right
    for place in range(1, len(answer)):
        if answer[place - 1] > answer[place]:
            answer[place - 1], answer[place] = answer[place], answer[place - 1]
            break
    return answer


def _text(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def _propose(rng: random.Random, *, count: int, highest: int) -> Numbers:
    return tuple(rng.randint(0, highest) for _ in range(count))
