"""Groups of episodes of a small world as trees, with everything that any credit rule may ask for."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np

from bough.needs import REFERENCE, Appraised, Channel, Estimate, Head, Need, names_of
from bough.tree import (
    DTYPES,
    UNKNOWN_VALUES,
    Appraisal,
    Entry,
    Floats,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Task,
    Ternary,
    Tree,
    Verdict,
)
from worlds import Exact, Ints, World

Design: TypeAlias = Literal["chains", "branches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A turn of an episode: the points at which its tokens were written, the tokens, and what was paid."""

    points: tuple[int, ...]
    tokens: tuple[int, ...]
    paid: float


Episode: TypeAlias = list[Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Groups of a world, and what belongs to each of the T tokens of their trees.

    Attributes:
        world: Whose.
        trees: One for each group.
        tree: [T] of which tree a token is.
        point: [T] at which point it was written; -1 where the policy did not write.
        choice: [T] which token it is.
        first: [T] at which point its turn began.
        last: [T] at which point the last token of its turn was written.
        closing: [T] which token that is.
    """

    world: World
    trees: tuple[Tree, ...]
    tree: Ints
    point: Ints
    choice: Ints
    first: Ints
    last: Ints
    closing: Ints

    @property
    def written(self) -> int:
        """How many tokens the policy wrote."""
        return int((self.point >= 0).sum())

    def rewarded(self, needs: Collection[Need] = (), discount: float = 1.0) -> list[Rewarded]:
        """The trees with what a rule needs.

        Every head of a critic, and every other adviser, gives the exact value of the state in which a token is
        written, with the rule's discount; "q1" and "q2" give that of the whole answer, "success_rate" the mean return
        of the task. An appraiser gives the value of the state before a turn. The reference has a uniform distribution
        over tokens. A channel that a rule needs holds the environment's rewards.
        """
        exact, starts = self.world.exact, self.world.starts
        values, qualities = exact.solve(discount)
        value = np.append(values, np.nan)[self.point]
        quality = np.append(qualities, np.full((1, qualities.shape[1]), np.nan), axis=0)[self.last, self.closing]
        usual = np.asarray([exact.value[exact.number[start]] for start in starts])[self.tree % len(starts)]
        advice = {"success_rate": usual, "q1": quality, "q2": quality}
        thought = dict.fromkeys(names_of(needs, Head), value)
        thought |= {name: advice.get(name, value) for name in names_of(needs, Estimate)}
        if REFERENCE in needs:
            thought["reference"] = np.append(-np.log(exact.choices), np.nan)[self.point]
        ends = np.cumsum([0, *(len(tree.token) for tree in self.trees)]).tolist()
        paid = ["env", *names_of(needs, Channel)]
        columns = names_of(needs, Appraised)
        return [
            Rewarded(
                tree=_with_values(tree, columns, value[ends[i] : ends[i + 1]]) if columns else tree,
                channels=dict.fromkeys(paid, tree.env_reward),
                estimates={name: column[ends[i] : ends[i + 1]] for name, column in thought.items()},
            )
            for i, tree in enumerate(self.trees)
        ]


def _with_values(tree: Tree, columns: Sequence[str], value: Floats) -> Tree:
    """The tree with appraisers' columns that hold the value [T] at the first token of each turn."""
    at = {
        node: Entry(value=float(value[tree.span[node]]), verdict=Verdict.OK, votes=1)
        for node in np.flatnonzero(tree.kind == Kind.ACTION).tolist()
    }
    return replace(tree, appraisals={name: Appraisal.of(at, tree.nodes) for name in columns})


def sample(world: World, *, groups: int, paths: int, design: Design = "chains", seed: int = 0) -> Sample:
    """Groups of a world; its tasks take turns.

    Args:
        world: Whose.
        groups: How many.
        paths: Episodes of a group.
        design: "chains" share nothing but the prompt. With "branches" half of the episodes start at the beginning, and
            each of them has a branch that leaves it before a later answer. Where does not depend on the episode, so
            that every path by itself is one that the policy might have sampled from the beginning.
        seed: Of the draws.
    """
    rng, exact = np.random.default_rng(seed), world.exact
    shortest = exact.shortest()
    starts = [exact.number[start] for start in world.starts]
    grown: list[_Grown] = []
    for group in range(groups):
        start = starts[group % len(starts)]
        each = _Grown(exact, start)
        for _ in range(paths if design == "chains" else paths // 2):
            episode = play(exact, start, rng)
            fork = int(rng.integers(1, shortest)) if design == "branches" else 0
            each.add(episode, fork, play(exact, episode[fork].points[0], rng) if fork else [])
        grown.append(each)
    names = ("point", "choice", "first", "last", "closing")
    columns = {name: np.asarray([said for each in grown for said in getattr(each, name)]) for name in names}
    return Sample(
        world=world,
        trees=tuple(each.done(str(number)) for number, each in enumerate(grown)),
        tree=np.repeat(np.arange(groups), [len(each.point) for each in grown]),
        **columns,
    )


def play(exact: Exact, start: int, rng: np.random.Generator) -> Episode:
    """An episode from a point to its end."""
    here: int | None = start
    episode: Episode = []
    written: list[tuple[int, int]] = []
    while here is not None:
        token = _draw(exact.chance[here].tolist(), rng)
        chances = exact.points[here].chances[token]
        chance = chances[_draw([each.of for each in chances], rng)]
        written.append((here, token))
        if chance.ends_turn:
            points, tokens = zip(*written, strict=True)
            episode.append(Answer(points=points, tokens=tokens, paid=chance.reward))
            written = []
        here = None if chance.after is None else exact.number[chance.after]
    return episode


def _draw(chances: Sequence[float], rng: np.random.Generator) -> int:
    """One of several, each with its chance."""
    return 0 if len(chances) == 1 else min(bisect_right(list(accumulate(chances)), rng.random()), len(chances) - 1)


class _Grown:
    """A tree that grows node by node."""

    def __init__(self, exact: Exact, start: int) -> None:
        self.exact = exact
        self.nodes: list[tuple[int, Kind, Outcome, float, int, dict[str, object]]] = []
        self.lengths: list[int] = []
        self.success: list[Ternary] = []
        self.point: list[int] = []
        self.choice: list[int] = []
        self.first: list[int] = []
        self.last: list[int] = []
        self.closing: list[int] = []
        self._read(-1, Kind.PROMPT, start, Outcome.OPEN)

    def add(self, episode: Episode, fork: int, branch: Episode) -> None:
        """An episode from the root, and a branch that leaves it before its answer number `fork`."""
        places = self._write(0, episode, 0.0, 0)
        if branch:
            self._write(places[fork], branch, sum(answer.paid for answer in episode[:fork]), fork)

    def done(self, task: str) -> Tree:
        """The tree."""
        parent, kind, outcome, paid, state, info = zip(*self.nodes, strict=True)
        acts = np.asarray(kind) == Kind.ACTION
        written = np.asarray(self.point) >= 0
        chance = self.exact.chance[self.point]
        entropy = -np.sum(chance * np.log(np.where(chance > 0, chance, 1.0)), axis=1)
        columns: dict[str, Any] = {
            **{name: np.full(len(kind), unknown) for name, unknown in UNKNOWN_VALUES.items()},
            "parent": parent,
            "kind": kind,
            "span": np.cumsum([0, *self.lengths]),
            "token": self.choice,
            "logprob": np.where(written, np.log(chance[np.arange(len(written)), self.choice]), np.nan),
            "entropy": np.where(written, entropy, np.nan),
            "allowed": np.full(len(written), -1),
            "outcome": outcome,
            "env_reward": paid,
            "state_key": state,
            "source": np.where(acts, Source.SAMPLED, Source.FORCED),
            "policy_version": np.where(acts, 0, -1),
            "valid": np.where(acts, Ternary.YES, Ternary.UNKNOWN),
            "well_formed": np.where(acts, Ternary.YES, Ternary.UNKNOWN),
            "success": self.success,
        }
        typed: dict[str, Any] = {name: np.asarray(column).astype(DTYPES[name]) for name, column in columns.items()}
        return Tree(task=Task(id=task), info=info, **typed)

    def _write(self, place: int, episode: Episode, so_far: float, turn: int) -> list[int]:
        """The answers from a place on; returns the places that they were written in."""
        places: list[int] = []
        for number, answer in enumerate(episode):
            places.append(place)
            so_far += answer.paid
            info = _found(self.exact, answer, turn + number)
            self._node(place, Kind.ACTION, Outcome.OPEN, answer.paid, 0, info, len(answer.tokens))
            self.point += answer.points
            self.choice += answer.tokens
            self.first += [answer.points[0]] * len(answer.tokens)
            self.last += [answer.points[-1]] * len(answer.tokens)
            self.closing += [answer.tokens[-1]] * len(answer.tokens)
            last = number == len(episode) - 1
            after = -1 if last else episode[number + 1].points[0]
            place = self._read(
                len(self.nodes) - 1, Kind.OBSERVATION, after, Outcome.TERMINATED if last else Outcome.OPEN
            )
        usual = float(self.exact.value[: len(self.exact.world.starts)].mean())
        self.success[-1] = Ternary.YES if so_far > usual else Ternary.NO
        return places

    def _read(self, parent: int, kind: Kind, point: int, outcome: Outcome) -> int:
        """What the environment says when the next answer begins at a point, or at the end."""
        self._node(parent, kind, outcome, 0.0, 0 if point < 0 else self.exact.points[point].state, {}, 1)
        for column in (self.point, self.first, self.last):
            column.append(-1)
        for column in (self.choice, self.closing):
            column.append(0)
        return len(self.nodes) - 1

    def _node(
        self, parent: int, kind: Kind, outcome: Outcome, paid: float, state: int, info: dict[str, object], tokens: int
    ) -> None:
        self.nodes.append((parent, kind, outcome, paid, state, info))
        self.lengths.append(tokens)
        self.success.append(Ternary.UNKNOWN)


def _found(exact: Exact, answer: Answer, turn: int) -> dict[str, object]:
    """What parsers find: in "planner" the parts of an answer, elsewhere an aim that is taken up once and kept."""
    levels = [exact.world.level(exact.places[point]) for point in answer.points]
    parts = {level: [levels.index(level), len(levels) - levels[::-1].index(level)] for level in levels}
    taken = "subgoal" in parts or ("switch" not in parts and turn == 0)
    if taken and "subgoal" not in parts:
        parts["subgoal"] = [0, 0]
    goal = {"subgoal": f"aim {answer.tokens[parts['subgoal'][0]]}"} if taken else {}
    marked = dict.fromkeys(MARKS, True) if answer.tokens[-1] == 1 else {}
    return {**marked, "switch": taken, **goal, "spans": parts}


MARKS = ("call",)
"""Other marks: an answer has them when its last token is 1."""
