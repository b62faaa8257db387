"""Trajectory quality and state-action coverage of trees."""

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.small import run as small
from typer.testing import CliRunner

from bough.cli.app import app
from bough.evaluate import DatasetMeasures, measure
from bough.evaluate.baselines import oracle_return, random_return
from bough.evaluate.run_measures import sentences
from bough.store import RunDirectory
from bough.train import start
from bough.tree import Kind, Outcome, Tree, TreeNode, build
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.shop import Shop


def path(moves: Sequence[tuple[int, str, float]], task: str = "t", outcome: Outcome = Outcome.TERMINATED) -> Tree:
    """One path: the key of the state, the action in it, and its reward."""
    nodes: list[TreeNode] = []
    for number, (key, action, reward) in enumerate(moves):
        kind = Kind.OBSERVATION if number else Kind.PROMPT
        nodes.append(TreeNode(parent=len(nodes) - 1, kind=kind, state_key=key, info={"text": f"at {number}"}))
        last = number == len(moves) - 1
        end = outcome if last else Outcome.OPEN
        info = {"text": action}
        nodes.append(TreeNode(parent=len(nodes) - 1, kind=Kind.ACTION, env_reward=reward, info=info, outcome=end))
    return build(*nodes, task=task)


def measures(**changed: float) -> DatasetMeasures:
    fields = {"paths": 1, "mean_return": 0.4, "random_return": 0.1, "best_return": 0.9}
    counts = {"actions": 1, "states": 1, "pairs": 120, "unknown": 0, "reference_pairs": 400}
    return DatasetMeasures(**{**fields, **counts, **changed})  # type: ignore[arg-type]


def test_the_formulas_on_the_numbers_of_a_worked_example() -> None:
    assert measures().quality == pytest.approx(0.375)
    assert measures().coverage == pytest.approx(0.3)
    assert measures(mean_return=1.7).quality == pytest.approx(2.0)
    assert math.isnan(measures(best_return=0.1).quality)
    assert math.isnan(measures(reference_pairs=0).coverage)
    assert measures(random_return=math.nan).record()["trajectory_quality"] is None
    assert measures(mean_return=math.inf).record()["mean_return"] is None
    assert json.dumps(measures().record())


def test_rewards_that_are_not_finite_are_named() -> None:
    paths = [path([(1, "left", reward)]) for reward in (math.inf, -math.inf)]
    with pytest.raises(ValueError, match="got a path with the return inf; need trees with finite rewards"):
        measure(paths)


def test_pairs_are_counted_once_over_trees_and_branches() -> None:
    first = path([(1, "left", 0.0), (2, "right", 1.0)])
    second = path([(1, "left", 0.0), (2, "left", 0.0)], task="u")
    found = measure([first, second, first])
    assert (found.paths, found.actions, found.states, found.pairs) == (3, 6, 2, 3)
    assert found.mean_return == pytest.approx(2 / 3)
    both = measure([second], reference=[first, second])
    assert (both.pairs, both.reference_pairs) == (2, 3)
    assert both.coverage == pytest.approx(2 / 3)


def test_a_shared_prefix_is_one_action_and_counts_in_every_return() -> None:
    tree = build(
        TreeNode(parent=-1, kind=Kind.PROMPT, state_key=1),
        TreeNode(parent=0, kind=Kind.ACTION, env_reward=0.5, info={"text": "go"}),
        TreeNode(parent=1, kind=Kind.OBSERVATION, state_key=2),
        TreeNode(parent=2, kind=Kind.ACTION, info={"text": "a"}, outcome=Outcome.TERMINATED, env_reward=1.0),
        TreeNode(parent=2, kind=Kind.ACTION, info={"text": "b"}, outcome=Outcome.FAILED, env_reward=9.0),
        TreeNode(parent=2, kind=Kind.ACTION, info={}),
        TreeNode(parent=5, kind=Kind.ACTION, info={"text": "c"}, outcome=Outcome.TRUNCATED),
    )
    found = measure([tree])
    assert (found.paths, found.actions, found.pairs, found.states) == (2, 3, 3, 2), "the failed path is left out"
    assert found.mean_return == pytest.approx(1.0)


def test_states_without_a_key_are_compared_by_their_texts_within_a_task() -> None:
    same = path([(0, "left", 0.0)])
    assert measure([same, same]).pairs == 1
    assert measure([same, path([(0, "left", 0.0)], task="u")]).pairs == 2
    assert measure([same]).unknown == 1
    assert "without a key" in sentences(measure([same]))[1]


def test_no_path_is_no_data_set() -> None:
    with pytest.raises(ValueError, match="need at least one"):
        measure([path([(1, "left", 0.0)], outcome=Outcome.FAILED)])


def test_expert_random_and_mixed_data_rank_as_in_the_paper() -> None:
    """Experts have the highest quality, random actions the widest coverage, a mixture lies between."""
    env = FrozenLake(size=4)
    tasks = env.tasks("train", 30, 0)
    expert = [_played(env, task.id, place, 0.0) for place, task in enumerate(tasks) for _ in range(4)]
    wild = [_played(env, task.id, 10 * place + n, 1.0) for place, task in enumerate(tasks) for n in range(4)]
    mixed = [*expert[::2], *wild[::2]]
    low, high = random_return(env, tasks, turns=20, seed=0), oracle_return(env, tasks, turns=20)
    assert low < 0.5 < 0.9 < high
    quality, coverage = zip(
        *(
            (found.quality, found.coverage)
            for found in (
                measure(trees, random_return=low, best_return=high, reference=[*expert, *wild])
                for trees in (expert, mixed, wild)
            )
        ),
        strict=True,
    )
    assert quality[0] > quality[1] > quality[2]
    assert quality[0] == pytest.approx(1.0, abs=0.05)
    assert coverage[0] < coverage[1] < coverage[2] <= 1


def _played(env: FrozenLake, name: str, seed: int, noise: float) -> Tree:
    """A path of the oracle, or of random actions, on one of the 30 tasks."""
    from random import Random

    rng = Random(seed)
    task = next(task for task in env.tasks("train", 30, 0) if task.id == name)
    state, moves, outcome = env.start(task), list[tuple[int, str, float]](), Outcome.TRUNCATED
    for _ in range(20):
        plan = env.plan(state)
        action = rng.choice(state.admissible or ()) if rng.random() < noise or not plan else plan[0]
        step = env.step(state, action)
        moves.append((hash((name, state.key)) % 2**60 + 1, action, step.reward))
        state = step.state
        if step.outcome is not Outcome.OPEN:
            outcome = step.outcome
            break
    return path(moves, task=name, outcome=outcome)


def test_baselines_of_the_shop() -> None:
    env = Shop()
    tasks = env.tasks("train", 50, 0)
    assert oracle_return(env, tasks, turns=8) == pytest.approx(1.0)
    assert 0.05 < random_return(env, tasks, turns=8, seed=0) < 0.4
    one, same, other = (random_return(env, tasks, turns=8, seed=seed) for seed in (1, 1, 2))
    assert one == same != other


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return start(small().replace(name="measured", steps=1), tmp_path_factory.mktemp("runs"), terminal=False)


def test_the_command_measures_a_run_against_itself(done: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "measures.json"
    arguments = ["measure", str(done.path), "--reference", str(done.path), "--out", str(out)]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    assert "trajectory quality (TQ): " in ran.output
    written = json.loads(out.read_text())
    assert written["state_action_coverage"] == 1.0
    assert written["state_action_pairs"] >= written["states"] > 0
    bare = CliRunner().invoke(app, ["measure", str(done.path), "--random", "0", "--best", "0"])
    assert "trajectory quality: needs" in bare.output
    assert "coverage: needs a reference" in bare.output
    for name, value in itertools.product(("random", "best"), ("nan", "inf", "-inf", "1e300")):
        wrong = CliRunner().invoke(app, ["measure", str(done.path), f"--{name}", value])
        assert wrong.exit_code == 2, wrong.output
        assert f"measure: got {name}={float(value)}; need a finite number of at most 1e+15" in wrong.output
    missing = CliRunner().invoke(app, ["measure", str(done.path), "--trees", str(tmp_path / "none")])
    assert missing.exit_code == 1
