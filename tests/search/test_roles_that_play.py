"""Models of four roles that really play: a server over HTTP reads the lake from the text, and knows the way.

It is judge, critic, teacher and world model of an agent that moves at random. Each role has to help, and answers that
cannot be read have to be counted.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.engine.endpoint import Asked, Endpoint, Say, chat

from bough.appraise import PathCritique
from bough.ask.prompts import NumberParser
from bough.context import Full, Plain
from bough.engine import OpenAi, Sampling
from bough.env import InProcessHost
from bough.explore import Chains, Correct, FirstInvalid
from bough.rollout import Agent, Deadlines, Explorer, Limits, RolloutRunner
from bough.rollout.agent import RoleModel
from bough.search import BeamWidth, Judge, Level, Sample, Search, StarWm
from bough.search.star_wm import SimulateAndRefine
from bough.store.answers import Answers
from bough.train.appraise_stage import AppraisalClient, AppraiseStage
from bough.tree import Kind, Outcome, Source, Ternary, Tree, Verdict, counted, path, text_in
from bough.worlds.frozenlake import FrozenLake

MOVES = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
ROLES = ("judge", "critic", "teacher", "world")
ENV = FrozenLake(size=6, min_moves=4)
TASKS = ENV.tasks("train", 10, 0)
Board = tuple[str, ...]


def boards(text: str) -> list[Board]:
    """The boards in a text, in order: rows of the player P, the goal G, holes O and ice _."""
    found = re.findall(r"(?:^[PGO_](?: [PGO_])+$\n?)+", text, flags=re.MULTILINE)
    return [tuple(row.replace(" ", "") for row in each.split("\n") if row) for each in found]


def player(board: Board) -> tuple[int, int]:
    return next((y, row.index("P")) for y, row in enumerate(board) if "P" in row)


def moved(board: Board, move: str) -> tuple[Board, str]:
    """The board after a move, and what the player moved onto; a wall stops it."""
    (y, x), (dy, dx) = player(board), MOVES[move]
    to_y, to_x = min(max(y + dy, 0), len(board) - 1), min(max(x + dx, 0), len(board[0]) - 1)
    rows = [list(row) for row in board]
    onto, rows[y][x] = rows[to_y][to_x], "_"
    rows[to_y][to_x] = "P"
    return tuple(map("".join, rows)), onto


def way(board: Board) -> list[str] | None:
    """The shortest way to the goal; None without one."""
    ways, seen = [(board, list[str]())], {board}
    for at, moves in ways:
        for move in MOVES:
            after, onto = moved(at, move)
            if onto == "G":
                return [*moves, move]
            if onto == "_" and after not in seen:
                seen.add(after)
                ways.append((after, [*moves, move]))
    return None


def wrong(board: Board, move: str) -> bool:
    """Whether a move brings the goal no nearer."""
    after, onto = moved(board, move)
    return onto != "G" and (onto == "O" or len(way(after) or "far away") >= len(way(board) or ""))


def judge(text: str) -> str:
    return str(max(10 - len(way(boards(text)[-1]) or "far far away"), 0))


def critic(text: str) -> str:
    moves = re.findall(r"^> (\w+)$", text, flags=re.MULTILINE)
    seen = boards(text.partition("Its steps")[0])
    return f"{[number for number, (board, move) in enumerate(zip(seen, moves, strict=False), 1) if wrong(board, move)]}"


def teacher(text: str) -> str:
    return (way(boards(text)[-1]) or ["left"])[0]


def world(text: str) -> str:
    move = re.findall(r"^> (\w+)$", text, flags=re.MULTILINE)[-1]
    after, onto = moved(boards(text)[-1], move)
    mark = {"G": "\n[solved]", "O": "\n[over]"}.get(onto, "")
    return "\n".join(" ".join(row) for row in after) + mark


def policy(text: str, seed: int) -> str:
    """Any move; and what it considered, unless it was told that this ends badly."""
    considered = re.search(r"You consider this: (\w+)", text)
    if considered and "(the end)" not in text:
        return considered[1]
    return random.Random(seed).choice([move for move in MOVES if considered is None or move != considered[1]])


class Server:
    """Answers for all roles; `dumb` ones say what nobody can read."""

    def __init__(self, *dumb: str) -> None:
        self.dumb = dumb
        self.asked: Counter[str] = Counter()

    def reply(self, asked: Asked) -> Say:
        role = asked.body["model"]
        self.asked[role] += 1
        text = asked.body["messages"][-1]["content"]
        if role == "policy":
            return chat(policy(text, asked.body["seed"]))
        return chat("" if role in self.dumb else {f.__name__: f for f in (judge, critic, teacher, world)}[role](text))


async def _grow(server: Server, explorer: Explorer, turns: int, appraise: Path | None) -> Sequence[Tree]:
    async with Endpoint(server.reply) as endpoint:
        engines = {name: OpenAi(model=name, base_url=endpoint.url).build() for name in ("policy", *ROLES)}
        acts = engines["policy"]
        agent = Agent(
            engine=acts,
            renderer=acts.renderer,
            context=Full(),
            parser=Plain(),
            sampling=Sampling(max_tokens=64),
            models={
                name: RoleModel(engine=engines[name], renderer=engines[name].renderer, name=name) for name in ROLES
            },
        )
        host, deadlines = InProcessHost(env=ENV), Deadlines()
        limits = Limits(turns=turns)
        runner = RolloutRunner(
            agent=agent, host=host, instructions=ENV.instructions, limits=limits, deadlines=deadlines
        )
        try:
            trees = (await runner.run(explorer, TASKS, seed=0)).trees
            if appraise is None:
                return trees
            ask = AppraisalClient(agent=agent, answers=Answers(appraise), deadlines=deadlines, seed=1, step=1)
            return await AppraiseStage(appraisers=(PathCritique(role="critic", n=1),), required=(), ask=ask)(
                list(trees)
            )
        finally:
            await host.close()
            for engine in engines.values():
                await engine.close()


def grow(server: Server, explorer: Explorer, *, turns: int = 12, appraise: Path | None = None) -> Sequence[Tree]:
    return asyncio.run(_grow(server, explorer, turns, appraise))


def solved(trees: Sequence[Tree]) -> int:
    """Tasks whose answer, or one of whose paths, succeeds."""
    return sum(
        bool((tree.success[tree.answer if tree.answer.any() else slice(None)] == Ternary.YES).any()) for tree in trees
    )


def unanswered(trees: Sequence[Tree]) -> int:
    return sum(tree.counts.unanswered for tree in trees)


def test_the_player_knows_the_lake() -> None:
    for task in TASKS:
        state = ENV.start(task)
        moves = way(boards(state.observation)[0])
        assert moves is not None
        assert len(moves) == len(ENV.plan(state) or ())
        for move in moves:
            after, onto = moved(boards(state.observation)[0], move)
            step = ENV.step(state, move)
            assert step.success is (onto == "G")
            if not step.success:
                assert boards(step.state.observation) == [after]
            state = step.state


def test_a_judge_leads_a_beam_to_the_goal_and_one_that_says_nothing_is_counted() -> None:
    beam = Search(
        select=Level(),
        expand=Sample(width=8),
        evaluate=Judge(role="judge", read=NumberParser()),
        prune=(BeamWidth(width=1),),
        eager=True,
    )
    wise, dumb = Server(), Server("judge")
    led, lost = grow(wise, beam), grow(dumb, beam)
    assert unanswered(led) == 0
    assert solved(led) >= 5 > 3 >= solved(lost), (solved(led), solved(lost))
    # Each question is asked once more before it counts.
    assert unanswered(lost) == dumb.asked["judge"] / 2 > 0


def test_a_teacher_completes_failures_and_one_that_says_nothing_does_not() -> None:
    explorer = Correct(n=2, max_corrected=2, blame=FirstInvalid(), teacher="teacher")
    trees, lost = grow(Server(), explorer), grow(Server("teacher"), explorer)
    taught = [
        node for tree in trees for node in np.flatnonzero(tree.source == Source.TEACHER) if text_in(tree.info[node])
    ]
    assert taught
    assert solved(trees) >= 4 > 2 >= solved(lost), (solved(trees), solved(lost))


def test_a_world_model_warns_of_holes_and_one_that_says_nothing_is_counted() -> None:
    search = StarWm(expand=SimulateAndRefine(role="world", rounds=6))
    wise, dumb = Server(), Server("world")
    warned, unwarned = grow(wise, search), grow(dumb, search)

    def drowned(trees: Sequence[Tree]) -> int:
        return sum(bool(((tree.outcome == Outcome.TERMINATED) & (tree.success == Ternary.NO)).any()) for tree in trees)

    assert drowned(warned) <= 1 < 3 <= drowned(unwarned), (drowned(warned), drowned(unwarned))
    assert unanswered(warned) == 0
    assert unanswered(unwarned) == dumb.asked["world"] > 0


@pytest.mark.parametrize("dumb", [False, True])
def test_a_critic_names_the_wrong_moves_and_one_that_says_nothing_gives_no_verdict(dumb: bool, tmp_path: Path) -> None:
    server = Server("critic") if dumb else Server()
    trees = grow(server, Chains(n=3), appraise=tmp_path / "answers.jsonl")
    columns = [tree.appraisals["critique"] for tree in trees]
    if dumb:
        verdicts = {Verdict(each) for column in columns for each in column.verdict[column.questions > 0]}
        assert verdicts == {Verdict.UNPARSED}
        return
    for tree, column in zip(trees, columns, strict=True):
        for leaf in counted(tree).tolist():
            nodes = path(tree, leaf).tolist()
            steps = [node for node in nodes if tree.kind[node] == Kind.ACTION]
            seen = [boards(text_in(tree.info[node]) or "") for node in nodes if tree.kind[node] != Kind.ACTION]
            truth = [wrong(board[0], text_in(tree.info[node]) or "") for node, board in zip(steps, seen, strict=False)]
            assert column.value[steps].tolist() == truth
