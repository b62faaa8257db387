"""Paths of an oracle that makes mistakes, what is true of them, and a scripted judge that knows it."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bough.appraise import Continuation, Scoring
from bough.appraise.path_fields import path_fields, path_steps
from bough.ask import Answer, Query, Reply
from bough.ask.answer import answer_of
from bough.context import Full, Plain
from bough.engine import Sampling, Scripted
from bough.env import InProcessHost
from bough.env.env import Env, Oracle, State
from bough.policy.policy import Policy
from bough.rollout import Agent, Cursor, Deadlines, Explorer, Limits, Rollout, RolloutRunner
from bough.tree import Task, Ternary, Tree, Verdict, derive
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.linear_programs import LinearPrograms

WORLDS: Mapping[str, Env] = {"linear_programs": LinearPrograms(), "frozenlake": FrozenLake(size=4)}
ACTED = "\n\nIt then did this:\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistaken:
    """Paths of the oracle, which at each turn makes a mistake with probability `rate`.

    In linear programs a mistake is a wrong number, or `solve` before all rows are there; elsewhere another admissible
    action. Where the oracle has no plan any more, the last action of its last plan follows.
    """

    n: int = 4
    rate: float = 0.2

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the paths."""
        root = await rollout.root()
        for branch in range(self.n):
            rng, last = random.Random(rollout.seed("mistakes", branch)), ""
            cursor: object = root
            while isinstance(cursor, Cursor):
                plan = tuple(map(str, await rollout.plan(cursor) or ()))
                last = plan[-1] if plan else last
                action = plan[0] if plan else last
                if plan and rng.random() < self.rate:
                    action = mistake(plan, cursor.state, rng)
                cursor = await rollout.advance(cursor, branch=branch, action=action, ahead=(action,))


def mistake(plan: Sequence[str], state: State, rng: random.Random) -> str:
    """Another action than the first of the plan."""
    words = plan[0].split()
    if state.admissible:
        return rng.choice([each for each in state.admissible if each != plan[0]])
    if len(words) == 1 or rng.random() < 0.5:
        return plan[-1]
    place = rng.randrange(1, len(words))
    words[place] = str((int(words[place]) + rng.randint(1, 3)) % 10)
    return " ".join(words)


def grow(env: Env, policy: Policy, tasks: Sequence[Task], explorer: Explorer | None = None) -> list[Tree]:
    """A tree for each task, by default of `Mistaken`; the data of a task have the oracle's plan as a checklist."""
    agent = Agent(
        engine=Scripted(script=lambda _: (0,)),
        renderer=policy.renderer,
        context=Full(),
        parser=Plain(),
        sampling=Sampling(max_tokens=32),
    )
    assert isinstance(env, Oracle)
    named = [
        replace(task, data={**task.data, "checklist": [*dict.fromkeys(map(str, env.plan(env.start(task)) or ()))]})
        for task in tasks
    ]

    async def run() -> list[Tree]:
        host = InProcessHost(env=env)
        runner = RolloutRunner(
            agent=agent, host=host, instructions=env.instructions, limits=Limits(turns=12), deadlines=Deadlines()
        )
        return list((await runner.run(explorer or Mistaken(), named, seed=0)).trees)

    return asyncio.run(run())


def right_steps(env: Env, tree: Tree) -> dict[int, bool]:
    """By the action of each step, whether the oracle's plan is shorter after it; of the last step, success."""
    assert isinstance(env, Oracle)
    found: dict[int, bool] = {}
    for leaf, steps in path_steps(tree).items():
        state = env.start(tree.task)
        for node in steps:
            before = env.plan(state)
            state = env.step(state, path_fields(tree, node)["action"]).state
            after = env.plan(state)
            found[node] = before is not None and after is not None and len(after) < len(before)
        found[steps[-1]] = bool(tree.success[leaf] == Ternary.YES)
    return found


def new_items(tree: Tree) -> dict[int, bool]:
    """By the action of each step, whether it is an item of the checklist that no step before it is."""
    checklist = tree.task.data["checklist"]
    assert isinstance(checklist, list)
    found: dict[int, bool] = {}
    for steps in path_steps(tree).values():
        done = set[str]()
        for node in steps:
            action = path_fields(tree, node)["action"]
            found[node] = action in checklist and action not in done
            done.add(action)
    return found


def story_of(fields: Mapping[str, str]) -> str:
    """What the default prompts show of a path."""
    return f"{fields['turns']}\n{fields['observation']}"


@dataclass(slots=True)
class NoisyJudge:
    """Answers the default questions of appraisers, with verdicts that are true with a given probability.

    Attributes:
        accuracy: Probability of a true verdict, independent for each verdict of an answer.
        unparsed: Probability of an answer without a verdict.
        policy: Counts the tokens of an answer.
        results: By the text of a path, its success.
        steps: By the text of a path, the truth of its steps.
        turns: By the text of a path up to an action, the truth of the action.
        items: By the same text, the numbers of the items of the checklist that the action satisfies, and the action.
    """

    accuracy: float
    unparsed: float
    policy: Policy
    results: dict[str, bool] = field(default_factory=dict[str, bool])
    steps: dict[str, list[bool]] = field(default_factory=dict[str, list[bool]])
    turns: dict[str, bool] = field(default_factory=dict[str, bool])
    items: dict[str, tuple[list[int], str]] = field(default_factory=dict[str, tuple[list[int], str]])

    def learn(self, tree: Tree, steps: Mapping[int, bool]) -> None:
        """Store the truth of the paths of a tree."""
        checklist = list(tree.task.data["checklist"])  # type: ignore[call-overload]
        for leaf, nodes in path_steps(tree).items():
            text = story_of(path_fields(tree, leaf))
            self.results[text] = bool(tree.success[leaf] == Ternary.YES)
            self.steps[text] = [steps[node] for node in nodes]
            for node in nodes:
                fields = path_fields(tree, node)
                before = f"{story_of(fields)}{ACTED}{fields['action']}"
                self.turns[before] = steps[node]
                done = [number for number, item in enumerate(checklist, start=1) if item == fields["action"]]
                self.items[before] = done, fields["action"]

    async def __call__(self, query: Query[Any]) -> Answer[Any]:
        """See `AskModels`."""
        return answer_of([self._vote(query.prompt, vote) for vote in range(query.n)], query.read)

    def _vote(self, prompt: str, vote: int) -> Reply:
        rng = random.Random(derive(0, "judge", prompt, vote))
        text = "I can't say." if rng.random() < self.unparsed else self._answer(prompt, rng)
        return Reply(verdict=Verdict.OK, text=text, tokens=len(self.policy.renderer.write(text)))

    async def score(self, scoring: Scoring) -> Reply:
        """See `AskModels`; a script has no probabilities."""
        del scoring
        return Reply(verdict=Verdict.REFUSED)

    async def sample(self, continuation: Continuation) -> Reply:
        """See `AskModels`; a script continues nothing."""
        del continuation
        return Reply(verdict=Verdict.REFUSED)

    def text(self, tokens: Sequence[int]) -> str:
        """See `AskModels`."""
        return self.policy.renderer.text(tokens)

    def _answer(self, question: str, rng: random.Random) -> str:
        def noisy(truth: bool) -> bool:
            return truth if rng.random() < self.accuracy else not truth

        if "The second:\n" in question:
            first, second = question.split("The first:\n")[1].split("\n\nThe second:\n")
            one, two = self.results[first], self.results[second.rsplit("\n\n", 1)[0]]
            if one == two and "tie" in question and noisy(True):
                return "tie"
            return "1" if noisy(first < second if one == two else one) else "2"
        shown = question.split("What happened:\n")[1]
        if "Checklist:\n" in shown:
            done, action = self.items[shown.split("\n\nChecklist:")[0]]
            count = len([line for line in shown.split("Checklist:\n")[1].split("\n\n")[0].splitlines() if line])
            named = [number for number in range(1, count + 1) if noisy(number in done)]
            return "\n".join(f"{number}: {action}" for number in named) or "none"
        if ACTED in shown:
            return "good" if noisy(self.turns[shown.rsplit("\n\n", 1)[0]]) else "bad"
        if "Its steps, by number:" in shown:
            text = shown.split("\n\nIts steps, by number:")[0]
            verdicts = [noisy(each) for each in self.steps[text]]
            if "Which steps are wrong?" in shown:
                return str([number for number, each in enumerate(verdicts, start=1) if not each])
            return f"{[*map(int, verdicts)]} {'yes' if noisy(self.results[text]) else 'no'}"
        return "8" if noisy(self.results[shown.rsplit("\n\n", 1)[0]]) else "2"


def ordered_pairs(values: Sequence[float], won: Sequence[bool]) -> tuple[float, int]:
    """Pairs of a success and a failure: those in which the success has the larger value, a tie as half; and all."""
    value, good = np.asarray(values), np.asarray(won, dtype=np.bool_)
    margin = value[good][:, None] - value[~good][None, :]
    return float((margin > 0).sum() + 0.5 * (margin == 0).sum()), margin.size
