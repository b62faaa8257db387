# ruff: noqa: ARG002
"""What growth may cost: every explorer and every search, found by looking."""

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.engines import Late
from tests.explore.stage import STOP, World, runner
from tests.rollout.test_builder import columns
from tests.search.game import Counted, Game, Steps, answer, search

from bough import explore
from bough.cli.catalogue import entries
from bough.config.kinds import wrong_kind
from bough.config.naming import exported
from bough.engine import InjectedFault, Request, Scripted
from bough.env import Branching, Env, EnvFault, InProcessHost, Replay, State, Step
from bough.rollout import Budget, Explorer, Limits, RoleModel, Rollout, TreeBuilder
from bough.search import Admissible, Best, BestOf, ConstantValue, CriticValue, Level, MeanBackup, NodeValue, Search
from bough.searches.best_first import best_first
from bough.searches.bfs_prover import bfs_prover
from bough.searches.cr_planner import cr_planner
from bough.searches.q_star import q_star
from bough.tree import Outcome, Task, Ternary, Tree

PAYS = {"aaaa": 1.0, "abba": 0.5, "bb": 0.0}


def explorers(name: str, *rooms: str) -> dict[str, Explorer]:
    """All that is listed under a name, grows a tree, and is exported by one of the rooms."""
    made: dict[str, Explorer] = {}
    pieces = {each: piece for room in rooms for each, piece in exported(room)}
    for entry in entries():
        if entry.room != name:
            continue
        piece: Any = pieces[entry.name]
        try:
            made_one = piece()
        except TypeError:
            continue  # needs more than its defaults
        # A demonstration has no budget of its own: it needs an oracle that solves the task.
        if not wrong_kind(Explorer, type(made_one)) and entry.name != "Demonstration":
            made[entry.name] = made_one
    return made


SEARCHES, SHAPES = explorers("search", "bough.search", "bough.searches"), explorers("explore", "bough.explore")
# The default kinds fill the short actions of this world.
SEARCHES["cr_planner"] = cr_planner(kinds=("a", "b"))
EXPLORERS = SEARCHES | SHAPES | {"Slate": explore.Slate(quality=explore.LlmJudge())}


def script(request: Request) -> tuple[int, ...]:
    """Acts at random; answers every question with a number and words that judges know, sometimes with nonsense."""
    luck = random.Random(request.seed)
    read = "".join(chr(token) for token in request.prompt_tokens if token != STOP)
    return tuple(map(ord, luck.choice("ab") if read.startswith("{go: }") else luck.choice(["1 yes", "0 no", "2", "?"])))


def grown(
    explorer: Explorer, env: Env, limits: Limits, *, in_turn: bool = False, late: int | None = None
) -> tuple[Tree, Counted, Rollout]:
    """A tree, and what engine and critic were asked for; completions may arrive in a random order."""
    engine = Counted(inner=Scripted(script=script))
    front = engine if late is None else Late(engine, random.Random(late))

    async def critic(texts: Sequence[tuple[int, ...]]) -> list[float]:
        engine.calls += 1
        return [random.Random(len(tokens)).random() for tokens in texts]

    async def embed(tokens: tuple[int, ...], count: int) -> list[float]:
        engine.calls += 1
        return [1.0, len(tokens) % 3, count % 2]

    async def main() -> tuple[Tree, Rollout]:
        place = runner(front, InProcessHost(env=env), limits=limits)
        # It shares the engine, so that what it is asked is counted.
        reference = RoleModel(engine=front, renderer=place.agent.renderer, name="reference")
        models = dict.fromkeys(("judge", "q", "reference"), reference)
        rollout = Rollout(
            TreeBuilder(Task(id="t")),
            replace(place.agent, critic=critic, embed=embed, models=models),
            place.host,
            instructions="go",
            limits=limits,
            seed=3,
            deadlines=place.deadlines,
        )
        rollout.budget = Budget(limits, Branching.REPLAY) if in_turn else rollout.budget
        await explorer(rollout)
        rollout.finish()
        return rollout.builder.done(), rollout

    tree, rollout = asyncio.run(main())
    return tree, engine, rollout


def test_there_are_searches_to_look_at() -> None:
    assert {"mcts", "a_star", "beam", "dfsdt", "rebase", "Commit", "BestOf", "dts", "q_star"} <= set(SEARCHES)
    assert {"Chains", "Forks", "FullTree", "Segments", "EpTree", "EntropyForks", "Latr", "Guided"} <= set(SHAPES)


@pytest.mark.parametrize("name", EXPLORERS)
@settings(max_examples=8)
@given(data=strategies.data())
def test_no_budget_is_exceeded(name: str, data: strategies.DataObject) -> None:
    limit = strategies.one_of(strategies.none(), strategies.integers(1, 60))
    turns, tokens, calls = data.draw(limit), data.draw(limit), data.draw(strategies.integers(1, 120))
    count: list[str] = []
    game: Any = Steps(env=Game(depth=4, pays=PAYS), count=count)
    # What an oracle has to play again to look at a place is nobody's turn; `Correct` asks it about places left behind.
    if name != "Correct" and data.draw(strategies.booleans()):
        game = Replay(
            env=game,
            keep=64 if name in ("a_star", "Guided") else data.draw(strategies.integers(0, 2)),
        )
    limits = Limits(turns=4, tree_turns=turns, tree_tokens=tokens, tree_calls=calls)
    tree, engine, rollout = grown(EXPLORERS[name], game, limits)
    spent = rollout.budget.spent
    assert (len(count), engine.calls, engine.tokens) == (spent.turns, spent.calls, spent.tokens)
    assert spent.turns <= (turns or math.inf)
    assert spent.tokens <= (tokens or math.inf)
    assert spent.calls <= calls
    if name in SEARCHES:
        assert isinstance(answer(tree), list), "one node, and one only, is the answer"


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_budget_gives_the_tree_of_calls_that_run_one_after_the_other(name: str) -> None:
    luck = random.Random(name)
    for _ in range(4):
        sizes = {"tree_turns": 60, "tree_tokens": 200, "tree_calls": 60}
        limits = Limits(turns=4, **{each: luck.randint(1, most) for each, most in sizes.items() if luck.random() < 0.6})
        env: Env = Game(depth=4, pays=PAYS)
        if name != "Correct" and luck.random() < 0.5:
            env = Replay(env=env)
        slow = replace(limits, tree_turns=limits.tree_turns or 10**9)
        wanted, _, in_turn = grown(EXPLORERS[name], env, slow, in_turn=True)
        tree, _, rollout = grown(EXPLORERS[name], env, limits, late=luck.getrandbits(32))
        for each in (wanted, tree) if limits.tree_turns is None else ():
            for info in each.info:
                cast("dict[str, object]", info).pop("replayed_steps", None)
            rollout.budget.spent.turns = in_turn.budget.spent.turns = 0
        assert columns(tree) == columns(wanted)
        assert rollout.budget.spent == in_turn.budget.spent


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_same_seed_grows_the_same_tree(name: str) -> None:
    one, other = (grown(EXPLORERS[name], Game(depth=4, pays=PAYS), Limits(turns=4, tree_calls=80))[0] for _ in range(2))
    assert one.equals(other)


def test_a_place_where_nothing_could_be_written_is_tried_again() -> None:
    """BFS-Prover's released code loses a place for good when its actions did not come in time."""
    asked: list[int] = []

    def first_times(request: Request) -> tuple[int, ...] | InjectedFault:
        asked.append(request.seed)
        return InjectedFault.FAULT if len(asked) <= 4 else (ord("a"),)

    how = replace(bfs_prover(width=2), evaluate=ConstantValue())
    known, tree = search(how, Game(depth=3, pays={"aaa": 1.0}), engine=Scripted(script=first_times))
    assert answer(tree) == ["a", "a", "a"]
    assert len(set(asked)) == len(asked), "each attempt draws anew"
    asked.clear()
    known, tree = search(replace(how, retries=1), Game(depth=3, pays={"aaa": 1.0}), engine=Scripted(script=first_times))
    assert answer(tree) == []
    assert known.root.pruned


class Shaky:
    """Fails on `b`; a fault is no end, and no value."""

    branching = Branching.COPY
    instructions = "go"

    def tasks(self, split: str, count: int, seed: int) -> list[Task]:
        return []

    def start(self, task: Task) -> State:
        return Game().start(task)

    def step(self, state: State, action: str) -> Step:
        if action == "b":
            raise EnvFault("broken")
        return Game(depth=2, pays={"aa": 0.5}).step(state, action)


@pytest.mark.parametrize("eager", [False, True])
def test_what_the_environment_broke_on_counts_nowhere(eager: bool) -> None:
    known, tree = search(
        Search(select=Best(), expand=Admissible(), backup=MeanBackup(), eager=eager, evaluate=ConstantValue(value=0.3)),
        Shaky(),
    )
    broken = [node for node in known.nodes if node.at is Outcome.FAILED]
    assert [node.action for node in broken] == ["b", "b"]
    assert all(node.pruned and node.visits == 0 and math.isnan(node.q) for node in broken)
    assert answer(tree) == ["a", "a"]


def test_an_evaluation_that_broke_is_asked_for_again_and_then_counts_nowhere() -> None:
    class Moody:
        def __init__(self, faults: int) -> None:
            self.faults, self.asked = faults, 0

        async def __call__(self, tree: Any, node: Any) -> float:
            from bough.engine import EngineFault

            self.asked += 1
            if self.asked <= self.faults:
                raise EngineFault("no")
            return 0.5

    for faults, visits in ((2, 1), (3, 0)):
        moody = Moody(faults)
        how = Search(select=Level(), expand=Admissible(), evaluate=moody, rounds=1, success_value=None)
        known, tree = search(how, Game())
        assert (moody.asked, known.root.visits) == (3, visits)
        assert tree.info[0]["faults"] == faults


def test_replayed_turns_are_paid_for() -> None:
    count: list[str] = []
    env: Any = Replay(env=Steps(env=Game(depth=4), count=count), keep=0)
    how = Search(select=Best(by=NodeValue()), expand=Admissible(), rounds=1000)
    known, tree = search(how, env, limits=Limits(turns=4, tree_turns=50))
    assert known.spent
    cost = tree.counts
    assert len(count) == cost.turns <= 50
    assert cost.replayed_turns == cost.turns - np.sum(tree.valid != Ternary.UNKNOWN)
    assert cost.replayed_turns > 0


def test_q_star_rates_all_actions_of_a_place_by_one_call() -> None:
    game = Game(depth=3, letters="abcd", pays={"dcb": 1.0})
    tree, engine, rollout = grown(q_star(), game, Limits(turns=3))
    written = sum("prior" in info for info in tree.info)
    assert answer(tree) == ["d", "c", "b"]
    assert engine.calls == rollout.budget.spent.calls == written / 4


@pytest.mark.parametrize("length", [1, 2])
def test_a_critic_chooses_among_paths(length: int) -> None:
    """Independent paths of random letters: the answer is one whose last letter the critic likes, not the first path."""

    async def critic(texts: Sequence[tuple[int, ...]]) -> list[float]:
        return [0.9 if tokens[-1] == ord("a") else 0.1 for tokens in texts]

    first = set[str]()
    for seed in range(4):
        engine = Scripted(script=lambda request: (ord(random.Random(request.seed).choice("ab")),))
        place = runner(engine, InProcessHost(env=World(length=length)))
        judged = replace(place, agent=replace(place.agent, critic=critic))
        (tree,) = asyncio.run(judged.run(BestOf(judge=CriticValue()), [Task(id="t")], seed=seed)).trees
        assert answer(tree)[-1] == "a"
        first.add(str(tree.info[1]["text"]))
    assert first != {"a"}, "the first path is not always one of these"


@pytest.mark.parametrize(("of", "read"), [("state", "}"), ("action", "a")])
def test_a_critic_reads_the_state_or_the_action(of: Literal["state", "action"], read: str) -> None:
    seen = set[str]()

    async def critic(texts: Sequence[tuple[int, ...]]) -> list[float]:
        seen.update(chr(tokens[-1]) for tokens in texts)
        return [0.0] * len(texts)

    place = runner(Scripted(script=lambda _: (ord("a"),)), InProcessHost(env=World(length=3)))
    place = replace(place, agent=replace(place.agent, critic=critic))
    search = replace(best_first(width=1), evaluate=CriticValue(of=of))
    asyncio.run(place.run(search, [Task(id="t")], seed=0))
    assert read in seen
    assert ("a" in seen) == (of == "action")
