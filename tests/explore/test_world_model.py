# ruff: noqa: ARG005
"""An environment that an engine imagines."""

import asyncio

import pytest
from tests.explore.stage import Letters, grow, runner, scripted
from tests.search.talk import answer, talk

from bough.ask import QueryClient
from bough.engine import InjectedFault, Sampling, Scripted
from bough.env import EnvFault, Host, State
from bough.explore import Chains
from bough.explore.world_model import ImaginedEpisode, WorldModel
from bough.rollout import Deadlines, Limits, RoleModel
from bough.rollout.model_client import ModelClient
from bough.searches.mcts import mcts
from bough.tree import Outcome, Task, Ternary

SAMPLING = Sampling(max_tokens=100)


def aside(engine: Scripted) -> ModelClient:
    model = RoleModel(engine=engine, renderer=Letters())
    return ModelClient(model=lambda _: model, sampling=SAMPLING, deadlines=Deadlines(), seed=0)


def test_a_dream_is_asked_what_the_agent_reads() -> None:
    said = iter(["a door", "a room", "treasure [over]", "gold [solved]"])
    engine = talk(lambda *_: "", lambda _: next(said))
    dream = WorldModel(ask=aside(engine))
    assert isinstance(dream, Host)
    assert isinstance(aside(engine), QueryClient)

    async def main() -> None:
        start = await dream.start(Task(id="t", data={"goal": "find {gold}"}))
        assert (start.observation, start.key) == ("a door", "")
        one = await dream.step(start, "open")
        assert (one.state.observation, one.outcome, one.reward) == ("a room", Outcome.OPEN, 0.0)
        two = await dream.step(one.state, "look")
        assert (two.state.observation, two.outcome, two.success) == ("treasure", Outcome.TERMINATED, False)
        three = await dream.step(one.state, "dig")
        assert (three.state.observation, three.success, three.reward) == ("gold", True, 1.0)
        assert await dream.plan(start) is None
        await dream.close()

    asyncio.run(main())
    read = ["".join(chr(token) for token in each.prompt_tokens) for each in engine.requests]
    assert "goal: find {gold}" in read[0]
    assert "a door\n> open\na room\n> look\n" in read[2]
    assert "[over]" in read[0], "it is told how to say that it is over"


def test_the_same_things_are_dreamt_alike_and_another_run_differently() -> None:
    engine = scripted(lambda luck: luck.choice("abcdefgh") * 3)
    dream = WorldModel(ask=aside(engine))

    async def step(run: int, action: str = "x") -> str:
        state = dream.state("here", ImaginedEpisode(instructions="t", run=run))
        return (await dream.step(state, action)).state.observation

    async def main() -> None:
        assert await step(0) == await step(0)
        assert len({await step(run) for run in range(20)}) > 1

    asyncio.run(main())


@pytest.mark.parametrize("said", [InjectedFault.FAULT, InjectedFault.ABORTED, " "])
def test_no_answer_is_a_fault_of_the_environment(said: InjectedFault | str) -> None:
    dream = WorldModel(ask=aside(talk(lambda *_: "", lambda _: said)))

    async def main() -> None:
        with pytest.raises(EnvFault, match=r"the world model's engine (broke|returned an empty answer)"):
            await dream.start(Task(id="t"))
        with pytest.raises(EnvFault, match="need an imagined one"):
            await dream.step(State(observation="", key="", value=3), "x")

    asyncio.run(main())


def test_an_answer_that_does_not_come_is_a_fault() -> None:
    silent = aside(Scripted(script=lambda _: InjectedFault.SILENCE))

    async def main() -> None:
        with pytest.raises(EnvFault, match=r"did not answer before the deadline \(WorldModel\.deadline_s\)"):
            await WorldModel(ask=silent, deadline_s=0.05).start(Task(id="t"))

    asyncio.run(main())
    with pytest.raises(ValueError, match=r"WorldModel\.deadline_s: got 0\.0"):
        WorldModel(ask=silent, deadline_s=0.0)


def test_trees_grow_in_a_dream_within_their_budget() -> None:
    """The agent's own engine dreams; each step is one question, so the budget of turns is one of questions."""
    engine = talk(lambda *_: "a", lambda read: "won [solved]" if read.count("> a") == 2 else "on")
    dream = WorldModel(ask=aside(engine))
    (tree,) = grow(runner(engine, dream), Chains(n=1)).trees
    assert [info["text"] for info in tree.info] == ["on", "a", "on", "a", "won"]
    assert tree.outcome[-1] == Outcome.TERMINATED
    assert tree.success[-1] == Ternary.YES
    asked = len(engine.requests)
    grow(runner(engine, dream, limits=Limits(tree_turns=1)), Chains(n=1))
    assert len(engine.requests) - asked == 3, "the start, an action, a step"


def test_a_dream_that_breaks_is_dreamt_again() -> None:
    said = iter([InjectedFault.FAULT, "on", "won [over]"])
    engine = talk(lambda *_: "a", lambda read: next(said))
    (tree,) = grow(runner(engine, WorldModel(ask=aside(engine))), Chains(n=1)).trees
    assert tree.outcome[-1] == Outcome.TERMINATED


def test_a_search_can_be_made_in_a_dream() -> None:
    """Monte-Carlo tree search in what the engine imagines: only two times a, of all that is done, is dreamt to win."""
    engine = talk(
        lambda _, luck: luck.choice("ab"),
        lambda read: "on" if read.count("> ") < 2 else "won [solved]" if read.count("> a") == 2 else "lost [over]",
    )
    (tree,) = grow(runner(engine, WorldModel(ask=aside(engine))), mcts(width=6)).trees
    assert answer(tree) == "aa"
