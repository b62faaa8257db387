# ruff: noqa: ARG002
"""Small problems of which all is known, and what a search knows when it is over."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from tests.explore.stage import grow, runner, says

from bough.engine import Completion, Engine, Request, Scripted
from bough.env import Branching, Env, InProcessHost, Split, State, Step
from bough.rollout import Limits, Rollout
from bough.search import Commit, Search, SearchNode, SearchTree
from bough.tree import Kind, Outcome, Task, Tree, path

TASK = Task(id="t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """Words of `depth` letters; a word pays what the table says. What is worth 1 counts as success.

    `keys` names states: by default by the word so far.
    """

    depth: int = 2
    letters: str = "ab"
    pays: Mapping[str, float] = field(default_factory=dict)
    keys: Callable[[str], str] = str

    branching: Branching = Branching.COPY
    instructions: str = "go"

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{index}", seed=seed) for index in range(count)]

    def start(self, task: Task) -> State:
        return self._state("")

    def step(self, state: State, action: str) -> Step:
        word = f"{state.value}{action}"
        over = len(word) >= self.depth or word in self.pays
        pay = self.pays.get(word, 0.0)
        outcome = Outcome.TERMINATED if over else Outcome.OPEN
        return Step(
            state=self._state(word), reward=pay, outcome=outcome, success=pay == 1, valid=action in self.letters
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        won = [word for word, pay in self.pays.items() if pay == 1 and word.startswith(str(state.value))]
        return tuple(min(won, key=len)[len(str(state.value)) :]) if won else None

    def exact(self, word: str = "") -> float:
        """What can be had from a place, by enumeration."""
        if len(word) >= self.depth or word in self.pays:
            return self.pays.get(word, 0.0)
        return max(self.exact(word + letter) for letter in self.letters)

    def words(self) -> list[str]:
        """All ends, if none comes early."""
        return ["".join(word) for word in itertools.product(self.letters, repeat=self.depth)]

    def _state(self, word: str) -> State:
        return State(
            observation=word or ".", key=self.keys(word) if word else ".", value=word, admissible=tuple(self.letters)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A search that shows what it knew in the end."""

    search: Search | Commit
    known: list[SearchTree] = field(default_factory=list)

    async def __call__(self, rollout: Rollout) -> None:
        inner = self.search.search if isinstance(self.search, Commit) else self.search
        tree = SearchTree(
            rollout, await rollout.root(), success_value=inner.success_value, failure_value=inner.failure_value
        )
        self.known.append(tree)
        try:
            await self.search.go(tree)
        finally:
            tree.store_results(answer_at_any_node=inner.answer_at_any_node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """What the environment paid; no opinion of what is not over."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        return node.reward if node.ended else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A table of values, by what was done so far."""

    values: Mapping[str, float]

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        return self.values[word(node)]


def word(node: SearchNode) -> str:
    """What was done so far."""
    return "".join(each.action for each in node.path())


def search(
    how: Search | Commit, env: Env, *, engine: Engine | None = None, limits: Limits | None = None, task: Task = TASK
) -> tuple[SearchTree, Tree]:
    """What a search knew in the end, and its tree."""
    watched = Watched(search=how)
    place = runner(
        engine or Scripted(script=says(lambda luck: luck.choice("ab"))),
        InProcessHost(env=env),
        limits=limits or Limits(),
    )
    (tree,) = grow(replace(place), watched, task.id).trees if task is TASK else _one(place, watched, task)
    return watched.known[0], tree


def _one(place, explorer, task):  # type: ignore[no-untyped-def]
    import asyncio

    return asyncio.run(place.run(explorer, [task], seed=0)).trees


def answer(tree: Tree) -> list[str]:
    """What was done on the way to the answer; fails when there is none or more than one."""
    (node,) = np.flatnonzero(tree.answer).tolist()
    acts = [step for step in path(tree, node) if tree.kind[step] == Kind.ACTION]
    # Pieces of an action but its last have no text.
    return [str(tree.info[step]["text"]) for step in acts if "text" in tree.info[step]]


@dataclass(slots=True, kw_only=True)
class Counted:
    """An engine that counts what it is asked."""

    inner: Scripted
    calls: int = 0
    tokens: int = 0

    @property
    def policy_version(self) -> int:
        return self.inner.policy_version

    @property
    def context_tokens(self) -> int:
        return self.inner.context_tokens

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        done = await self.inner.generate(request)
        self.tokens += len(done.tokens)
        return done

    async def score(self, prompt_tokens, continuation_tokens, temperature=1.0):  # type: ignore[no-untyped-def]
        self.calls += 1
        return await self.inner.score(prompt_tokens, continuation_tokens, temperature)

    async def score_each(self, prompt_tokens, continuations, temperature=1.0):  # type: ignore[no-untyped-def]
        self.calls += 1
        return await self.inner.score_each(prompt_tokens, continuations, temperature)

    def load_weights(self, weights: object, policy_version: int) -> None: ...

    def reset_cache(self) -> None: ...

    async def close(self) -> None:
        await self.inner.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """An environment that counts its steps, those that `Replay` plays again as well."""

    env: Env
    count: list[str] = field(default_factory=list)

    @property
    def branching(self) -> Branching:
        return self.env.branching

    @property
    def instructions(self) -> str:
        return self.env.instructions

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return list(self.env.tasks(split, count, seed))

    def start(self, task: Task) -> State:
        return self.env.start(task)

    def step(self, state: State, action: str) -> Step:
        self.count.append(action)
        return self.env.step(state, action)

    def plan(self, state: State) -> tuple[str, ...] | None:
        return self.env.plan(state)  # type: ignore[attr-defined]
