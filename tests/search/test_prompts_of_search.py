# ruff: noqa: ARG002
"""What searches that ask have in common: any engine, any order of answers, exact accounts."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.engine.endpoint import Asked, Endpoint, chat
from tests.engines import Late
from tests.explore.stage import World, grow, runner, scripted
from tests.search.talk import actions, answer, letter, search, talk

from bough.context import Full, Plain, Tagged
from bough.engine import OpenAi, Sampling
from bough.env import Branching, InProcessHost, ParallelCalls, Split, State, Step
from bough.explore import Chains
from bough.rollout import Agent, Deadlines, Explorer, Limits, RolloutRunner
from bough.search import BeamWidth, Judge, Level, Sample, Search, WebDreamer
from bough.searches.agent_q import agent_q
from bough.searches.code_tree import code_tree
from bough.searches.i_mcts import i_mcts
from bough.searches.lats import lats
from bough.searches.rethink import rethink
from bough.searches.spar import spar
from bough.searches.web_pilot import web_pilot
from bough.tree import Outcome, Source, Task, Tree

SEARCHES: list[Callable[[], Explorer]] = [agent_q, code_tree, i_mcts, lats, rethink, spar, web_pilot, WebDreamer]


def mind(read: str) -> str:
    """Answers any question in some way that depends on it alone."""
    luck = random.Random(read)
    if "Rank them" in read:
        order = [line[0] for line in read.splitlines() if line[1:3] == ". "]
        luck.shuffle(order)
        return ", ".join(order)
    return luck.choice(["3 yes", "6 on track", "9 no", "1 what"])


@pytest.mark.parametrize("make", SEARCHES, ids=lambda make: make.__name__)
def test_the_tree_is_the_same_whatever_arrives_first(make: Callable[[], Explorer]) -> None:
    limits = Limits(turns=4, tree_turns=60)
    host = InProcessHost(env=World(length=4))
    trees = [
        search(engine, make(), host=host, limits=limits)  # type: ignore[arg-type]
        for engine in (
            talk(letter, mind),
            Late(talk(letter, mind), random.Random(1)),
            Late(talk(letter, mind), random.Random(2)),
        )
    ]
    assert trees[0].equals(trees[1])
    assert trees[0].equals(trees[2])


@pytest.mark.parametrize("make", SEARCHES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("budget", ["tree_turns", "tree_tokens", "tree_calls"])
def test_no_budget_is_exceeded(make: Callable[[], Explorer], budget: str) -> None:
    for most in (1, 7, 30, 200):
        engine = talk(letter, mind)
        tree = search(
            engine, make(), host=InProcessHost(env=World(length=4)), limits=Limits(**{budget: most, "turns": 4})
        )
        cost = tree.counts
        assert cost.calls == len(engine.requests)
        assert getattr(cost, budget.removeprefix("tree_")) <= most
        assert tree.answer.sum() == 1


def test_a_chat_server_acts_and_judges() -> None:
    """One server writes the actions and says what they are worth; the judge likes what is wrong, and decides."""

    def reply(asked: Asked) -> object:
        system, *said = [message["content"] for message in asked.body["messages"]]
        if system == "go":
            return chat("ab"[asked.body["seed"] % 2])
        return chat("yes" if said[-1].rpartition("> ")[2].startswith("b") else "no")

    async def main() -> tuple[Tree, int]:
        async with Endpoint(reply) as endpoint:  # type: ignore[arg-type]
            engine = OpenAi(model="m", base_url=endpoint.url).build()
            agent = Agent(
                engine=engine,
                renderer=engine.renderer,
                context=Full(),
                parser=Plain(),
                sampling=Sampling(max_tokens=16),
            )
            host = InProcessHost(env=World())
            place = RolloutRunner(agent=agent, host=host, instructions="go", limits=Limits(), deadlines=Deadlines())
            beam = Search(
                select=Level(),
                expand=Sample(width=8),
                evaluate=Judge(n=2),
                prune=(BeamWidth(width=1),),
                eager=True,
                success_value=None,
                stop_value=None,
            )
            try:
                (tree,) = (await place.run(beam, [Task(id="t")], seed=0)).trees
            finally:
                await host.close()
                await engine.close()
            return tree, len(endpoint.asked)

    tree, asked = asyncio.run(main())
    assert answer(tree) == "bbb"
    assert tree.counts.calls == asked == 3 * (8 + 2 * 2)
    assert {info["source"] for info in actions(tree).values()} == {Source.TEACHER}


class Shop:
    """Says what things cost; `pay` with the sum ends it well."""

    branching = Branching.COPY
    instructions = "Shop."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{number}") for number in range(count)]

    def start(self, task: Task) -> State:
        return State(observation="shop", key="", value=0)

    def step(self, state: State, action: str) -> Step:
        said = {"tea": "2", "milk": "1"}.get(action, "?")
        over = action == "pay 2 1"
        return Step(
            state=State(observation=said, key="", value=0),
            outcome=Outcome.TERMINATED if over else Outcome.OPEN,
            success=over,
        )


def test_an_agent_makes_parallel_calls_in_one_turn() -> None:
    said = "<action>1: tea\n2: milk\n3: pay $1 $2</action>"
    engine = scripted(lambda _: said)
    place = runner(engine, InProcessHost(env=ParallelCalls(env=Shop(), at_once=True)), max_tokens=100)
    place = replace(place, agent=replace(place.agent, parser=Tagged()))
    (tree,) = grow(place, Chains(n=1)).trees
    assert tree.info[-1]["text"] == "1: 2\n2: 1\n3: ?"
    assert tree.outcome[-1] == Outcome.TERMINATED
    assert tree.counts.turns == 1
