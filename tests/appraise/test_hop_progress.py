"""Progress from hops: its numbers, unknown answers, trees, and the potential that shaping reads."""

import asyncio
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from tests.reward.test_potential import best_moves, lake, shaped
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import Continuation, HopProgress, Scoring
from bough.appraise.hops import HopParser, fuse, hop_between, progress_after, read_back
from bough.ask import Answer, Query, Reply
from bough.ask.answer import answer_of
from bough.env import State
from bough.needs import Appraised, names_of
from bough.reward import PotentialShaping
from bough.tree import Appraisal, Outcome, Task, Tree, Verdict, counted, fail_unknown
from bough.worlds.frozenlake import FrozenLake

DONE = Outcome.TERMINATED
PARTS = re.compile(r"START, the first state:\n(.*)\n\nGOAL.*?BEFORE:\n(.*)\n\nAFTER:\n(.*)\n\nIs AFTER", re.DOTALL)


@dataclass
class Ruler:
    """A judge that knows the progress of each state by its text; some answers are flipped or missing."""

    progress: Mapping[str, float]
    unknown: frozenset[tuple[str, str]] = frozenset()
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def __call__(self, query: Query[Any]) -> Answer[Any]:
        return answer_of([Reply(verdict=Verdict.OK, text=self._text(query.prompt), tokens=3)], query.read)

    def _text(self, prompt: str) -> str:
        found = PARTS.search(prompt)
        assert found is not None
        _, before, after = found.groups()
        self.asked.append((before, after))
        if (before, after) in self.unknown:
            return "hard to say"
        start = 1.0 if before.startswith("The task is done") else self.progress[before]
        return f"{100 * hop_between(start, self.progress[after]):+.9f}%"

    async def score(self, scoring: Scoring) -> Reply:
        raise AssertionError(scoring)

    async def sample(self, continuation: Continuation) -> Reply:
        raise AssertionError(continuation)


def told(*states: str) -> Tree:
    """A path through these observations, with a turn after each."""
    nodes = [N(parent=-1, kind=PROMPT, info={"text": states[0], "instructions": "go"})]
    for number, state in enumerate((*states[1:], "over"), start=1):
        nodes.append(N(parent=2 * number - 2, kind=ACTION, tokens=(3,), info={"text": "on"}))
        done = DONE if state == "over" else Outcome.OPEN
        nodes.append(N(parent=2 * number - 1, kind=OBSERVATION, tokens=(4,), info={"text": state}, outcome=done))
    return build(*nodes)


def appraised(tree: Tree, judge: Ruler, piece: HopProgress) -> Tree:
    """The tree with the columns of the piece."""
    columns = asyncio.run(piece.appraise([tree], judge))
    found = {name: Appraisal.of(entries[0], tree.nodes) for name, entries in columns.items()}
    return replace(tree, appraisals=found)


def acts(tree: Tree) -> list[int]:
    return np.flatnonzero(tree.kind == ACTION).tolist()


SHOWN = {"s0": 0.0, "s1": 0.2, "s2": 0.6, "s3": 0.45, "s4": 0.67}


def test_the_worked_example() -> None:
    hops = [0.2, 0.5, -0.25, 0.4, 1.0]
    found = [each["incremental"] for each in read_back({"incremental": hops})]
    assert found == pytest.approx([0.2, 0.6, 0.45, 0.67, 1.0])
    found = [each["backward"] for each in read_back({"backward": [-0.8, -0.4, -0.55]})]
    assert found == pytest.approx([0.2, 0.6, 0.45])
    before = [0.0, 0.2, 0.6, 0.45, 0.67]
    after = [0.2, 0.6, 0.45, 0.67, 1.0]
    assert [hop_between(b, a) for b, a in zip(before, after, strict=True)] == pytest.approx(hops)
    assert [progress_after(b, h) for b, h in zip(before, hops, strict=True)] == pytest.approx(after)


def test_an_answer_is_a_signed_percentage() -> None:
    read = HopParser()
    assert [read(text) for text in ("nearer: +25%", "-40 %", "10% then \N{MINUS SIGN}5%", "0%")] == [
        0.25,
        -0.4,
        -0.05,
        0.0,
    ]
    assert [read(text) for text in ("", "nearer", "25", "+150%", "no change")] == [None] * 5


def test_a_judge_that_is_right_gives_the_progress_and_shaping_its_worked_example() -> None:
    tree, judge = told(*SHOWN), Ruler(SHOWN)
    found = appraised(tree, judge, HopProgress())
    column = found.appraisals["progress"]
    assert column.value[acts(tree)] == pytest.approx(list(SHOWN.values()), abs=1e-6)
    assert found.appraisals["progress_spread"].value[acts(tree)][1:] == pytest.approx([0.0] * 4, abs=1e-6)
    assert column.questions[acts(tree)].tolist() == [0, 3, 3, 3, 3]
    (channels,) = PotentialShaping(discount=0.9)([found])
    turns = [channels["shaping"][act] + channels["shaping"][act + 1] for act in acts(tree)]
    assert turns == pytest.approx([0.18, 0.34, -0.195, 0.153, -0.67], abs=1e-6)


def test_views_compare_with_the_state_before_the_first_and_the_goal() -> None:
    tree, judge = told("s0", "s1", "s2"), Ruler(SHOWN)
    appraised(tree, judge, HopProgress())
    goal = "The task is done, as the agent was told."
    assert sorted(judge.asked) == sorted(
        [("s0", "s1"), ("s0", "s1"), (goal, "s1"), ("s1", "s2"), ("s0", "s2"), (goal, "s2")]
    )
    assert not any(before == "over" or after == "over" for before, after in judge.asked), "the end is no goal"
    named = replace(tree, task=Task(id="t", data={"goal": "s4"}))
    appraised(named, judge, HopProgress(views=("backward",)))
    assert judge.asked[-2:] == [("s4", "s1"), ("s4", "s2")]


def test_one_view_has_no_disagreement() -> None:
    one = HopProgress(views=("forward",))
    found = appraised(told("s0", "s1"), Ruler(SHOWN), one)
    assert set(found.appraisals) == {"progress"} == set(names_of(one.gives, Appraised))


def test_an_unknown_hop_is_not_no_progress() -> None:
    tree = told("s0", "s1", "s2", "s3")
    judge = Ruler(SHOWN, unknown=frozenset({("s1", "s2")}))
    alone = appraised(tree, judge, HopProgress(views=("incremental",)))
    verdicts = alone.appraisals["progress"].verdict[acts(tree)].tolist()
    assert verdicts == [Verdict.OK, Verdict.OK, Verdict.UNPARSED, Verdict.UNPARSED], "and what builds on it is unknown"
    assert not len(counted(fail_unknown(alone, ["progress"])))
    fused = appraised(tree, judge, HopProgress())
    column = fused.appraisals["progress"]
    assert column.value[acts(tree)] == pytest.approx([0.0, 0.2, 0.6, 0.45], abs=1e-6), "other views know it"
    assert column.votes[acts(tree)].tolist() == [3, 3, 2, 2]
    assert len(counted(fail_unknown(fused, ["progress"]))) == 1


def test_views_that_disagree_are_uncertain_and_followed_less() -> None:
    mean, apart = fuse({"incremental": 0.2, "forward": 0.5, "backward": None})
    assert (mean, apart) == (pytest.approx(0.35), pytest.approx(0.3))
    assert fuse({"forward": None}) == (None, None)
    tree = told("s0", "s1")

    @dataclass
    class Torn(Ruler):
        def _text(self, prompt: str) -> str:
            found = PARTS.search(prompt)
            assert found is not None
            return "-20%" if found.group(2).startswith("The task") else "+40%"

    plain = appraised(tree, Torn(SHOWN), HopProgress())
    careful = appraised(tree, Torn(SHOWN), HopProgress(caution=2.0))
    last = acts(tree)[1]
    assert plain.appraisals["progress_spread"].value[last] == pytest.approx(0.4)
    assert plain.appraisals["progress"].value[last] == pytest.approx(1.6 / 3)
    assert careful.appraisals["progress"].value[last] == pytest.approx(np.exp(-0.8) * 1.6 / 3)


def test_turns_from_one_state_share_its_comparisons() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, info={"text": "s0"}),
        N(parent=0, kind=ACTION, info={"text": "x"}),
        N(parent=1, kind=OBSERVATION, info={"text": "s1"}),
        N(parent=2, kind=ACTION, info={"text": "x"}, outcome=DONE),
        N(parent=2, kind=ACTION, info={"text": "y"}, outcome=DONE),
    )
    judge = Ruler(SHOWN)
    column = appraised(tree, judge, HopProgress()).appraisals["progress"]
    assert len(judge.asked) == 3
    assert column.questions.tolist() == [0, 0, 0, 3, 0]
    assert column.value[[1, 3, 4]] == pytest.approx([0.0, 0.2, 0.2])


def test_noisy_hops_keep_the_best_moves_of_a_lake_and_paying_progress_itself_does_not() -> None:
    """A tenth of the hops have the wrong sign and a tenth is unknown; the goal's neighbour has high progress."""
    moves, rewards = lake()
    best = best_moves(rewards, moves)
    env = FrozenLake(size=3, max_steps=1000)
    (task,) = env.tasks("train", 1, seed=0)
    exact, queue = dict[str, float](), [env.start(task)]
    whole = len(env.plan(queue[0]) or ())
    while queue:
        here: State = queue.pop()
        text = str(here.observation)
        if text in exact:
            continue
        exact[text] = max(0.0, 1 - len(env.plan(here) or ()) / whole)
        steps = [env.step(here, action) for action in here.admissible or ()]
        queue += [step.state for step in steps if step.outcome is Outcome.OPEN]
    states = sorted({state for state, _ in moves})
    rng = random.Random(1)
    potential = dict[str, float]()
    for state in states:
        hops: list[float | None] = [exact[state], exact[state] - 1.0]
        noisy = [None if rng.random() < 0.1 else hop if rng.random() < 0.9 or hop is None else -hop for hop in hops]
        (views,) = read_back({"forward": noisy[:1], "backward": noisy[1:]})
        potential[state] = fuse(views)[0] or 0.0
    shaping = {
        (s, a): shaped(PotentialShaping(discount=0.9), potential[s], None if t is None else potential[t], "progress")
        for (s, a), t in moves.items()
    }
    assert best_moves({move: rewards[move] + shaping[move] for move in moves}, moves) == best
    paid = {(s, a): 0.0 if t is None else exact[t] for (s, a), t in moves.items()}
    near = max(states, key=lambda state: exact[state])
    circling = best_moves({move: rewards[move] + paid[move] for move in moves}, moves)
    assert circling[near].isdisjoint(best[near]), "paid for progress itself, the agent stays near the goal"


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"HopProgress.views: got \(\); need one or more of"):
        HopProgress(views=())
    with pytest.raises(ValueError, match=r"HopProgress.caution: got -1; need at least 0"):
        HopProgress(caution=-1)
    with pytest.raises(ValueError, match=r"HopProgress.prompt: got the placeholders \['end'\]"):
        HopProgress(prompt="{end}")
