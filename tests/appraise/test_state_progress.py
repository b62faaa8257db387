"""Progress of the environment's states: by plans, by a function, after a replay, and in a run."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.appraise.test_appraisers import asker, says
from tests.explore.stage import World, grow, runner, scripted
from tests.train.test_check import Bare
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import StateProgress
from bough.appraise.state_progress import plan_progress
from bough.cli.find import find_run
from bough.config import ConfigError
from bough.credit import Grpo
from bough.env import Branching, Env, InProcessHost, State, Step
from bough.explore import Chains
from bough.reward import reward_trees
from bough.rollout import Deadlines
from bough.train.appraise_stage import AppraisalClient
from bough.train.check import check
from bough.train.replayed_states import ReplayedStates
from bough.tree import Appraisal, Floats, Outcome, StageError, Task, Tree, Verdict, path_view, text_in
from bough.worlds.frozenlake import FrozenLake


def asked(tmp_path: Path, env: Any) -> AppraisalClient:
    """An `AppraisalClient` that replays actions in this environment."""
    ask, _ = asker(lambda _: says("hm"), tmp_path)
    host = InProcessHost(env=env)
    return replace(ask, replay=ReplayedStates(host=host, calls=False, deadlines=Deadlines(), deadline_s=9.0))


def grown(n: int = 6) -> Tree:
    """Chains of a's and b's, of three letters; only "aaa" is a success."""
    return grow(runner(scripted(lambda rng: rng.choice("ab"))), Chains(n=n)).trees[0]


def value(tree: Tree, piece: StateProgress, ask: AppraisalClient) -> tuple[Floats, Any]:
    """The value and the verdict at each action."""
    (entries,) = asyncio.run(piece.appraise([tree], ask))[piece.column]
    column, acts = Appraisal.of(entries, tree.nodes), tree.kind == ACTION
    return column.value[acts], column.verdict[acts]


def before(tree: Tree) -> list[str]:
    """The letters written before each action."""
    return [str(text_in(tree.info[int(tree.parent[node])])) for node in np.flatnonzero(tree.kind == ACTION)]


def test_the_worked_example() -> None:
    assert [plan_progress(4, here) for here in (4, 3, 2, 3, 1)] == [0, 0.25, 0.5, 0.25, 0.75]
    assert (plan_progress(4, None), plan_progress(4, 6), plan_progress(None, None)) == (0, 0, 0)


def test_states_are_those_of_a_replay_and_have_the_progress_of_their_plan(tmp_path: Path) -> None:
    tree = grown()
    found, verdict = value(tree, StateProgress(), asked(tmp_path, World()))
    assert (verdict == Verdict.OK).all()
    right = [0.0 if "b" in text else len(text.strip(".")) / 3 for text in before(tree)]
    assert found == pytest.approx(right)
    assert {0.0, 0.333} <= set(found.round(3).tolist())


@dataclass(frozen=True)
class Letters:
    """The number of a's; unknown after a b."""

    def __call__(self, state: State) -> float | None:
        said = str(state.value)
        return None if "b" in said else float(len(said))


def test_a_function_of_states_can_be_unknown(tmp_path: Path) -> None:
    tree = grown()
    found, verdict = value(tree, StateProgress(potential=Letters()), asked(tmp_path, World()))
    lost = np.asarray(["b" in text for text in before(tree)])
    assert (verdict[lost] == Verdict.REFUSED).all()
    assert np.isnan(found[lost]).all()
    assert found[~lost] == pytest.approx([len(text.strip(".")) for text in np.asarray(before(tree))[~lost]])
    assert StateProgress(potential=Letters()).needs == frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifting(World):
    """Answers otherwise than when the tree grew."""

    branching: Branching = Branching.COPY

    def step(self, state: State, action: str) -> Step:
        return World(length=self.length).step(replace(state, value=f"b{state.value}"), action)


def test_a_state_that_a_replay_does_not_reach_is_unknown(tmp_path: Path) -> None:
    tree = grown()
    _, verdict = value(tree, StateProgress(), asked(tmp_path, Shifting()))
    first = np.asarray([text == "." for text in before(tree)])
    assert (verdict[first] == Verdict.OK).all()
    assert (verdict[~first] == Verdict.REFUSED).all()
    plain, _ = asker(lambda _: says("hm"), tmp_path / "plain")
    with pytest.raises(StageError, match=r"got None; need an environment"):
        value(tree, StateProgress(), plain)


def test_turns_of_paths_that_all_fail_are_told_apart_by_the_oracle(tmp_path: Path) -> None:
    """On a lake with one way, one path goes two steps towards the goal, the other walks against the edge."""
    run = find_run("robo_dopamine(oracle=true)", "frozenlake")
    env = FrozenLake(size=3)
    task = replace(env.tasks("train", 1, seed=0)[0], data={"rows": ["SFF", "HHF", "HHG"]})
    tree = lake_tree(env, task, [("right", "right", "left"), ("left", "left", "left")])
    assert not tree.env_reward.any()
    (piece,) = run.world.appraisers
    entries = asyncio.run(piece.appraise([tree], asked(tmp_path, env)))
    tree = replace(tree, appraisals={name: Appraisal.of(each[0], tree.nodes) for name, each in entries.items()})
    rewarded = reward_trees([tree], run.world.rewards)
    (credited,) = run.method.credit(rewarded)
    view = path_view(rewarded)
    start = tree.span[view.node].tolist()
    advantage = (credited.positive + credited.negative)[start]
    assert tree.appraisals["progress"].value[view.node] == pytest.approx([0, 0.25, 0.5, 0, 0, 0])
    assert advantage[0] > 0 > advantage[3], "the first step towards the goal"
    bare = reward_trees([tree], [each for each in run.world.rewards if type(each).__name__ != "PotentialShaping"])
    (plain,) = run.method.credit(bare)
    assert plain.is_zero, "without shaping they learn nothing"
    assert Grpo()(bare)[0].is_zero


def lake_tree(env: FrozenLake, task: Task, ways: list[tuple[str, ...]]) -> Tree:
    """A tree of these ways, truncated after the last action."""
    start = env.start(task)
    nodes = [N(parent=-1, kind=PROMPT, info={"text": str(start.observation)})]
    for way in ways:
        at, state = 0, start
        for number, action in enumerate(way, start=1):
            nodes.append(N(parent=at, kind=ACTION, tokens=(5,), info={"text": action}))
            state = env.step(state, action).state
            done = Outcome.TRUNCATED if number == len(way) else Outcome.OPEN
            info = {"text": str(state.observation)}
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(4,), outcome=done, info=info))
            at = len(nodes) - 1
    return replace(build(*nodes), task=task)


def test_an_environment_without_plans_is_refused() -> None:
    world = find_run("grpo", "frozenlake").world
    bare = world.replace(env=cast("Env", Bare()), warmup=replace(world.warmup, demonstrations=0))
    with pytest.raises(ConfigError, match=r"StateProgress: needs an environment with an oracle.*potential="):
        check(find_run("robo_dopamine(oracle=true)", bare))
    check(bare.run(appraisers=(StateProgress(potential=Letters()),)))
