"""Hindsight: what is relabelled, that only the critic learns from it, and what the critic learns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.methods.small import small
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.cli.find import find_run
from bough.credit import Archer
from bough.critics import UtteranceCritic
from bough.hooks import Hindsight
from bough.hooks.hindsight import HindsightState
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.store import read_metrics
from bough.train import Tasks, Warmup, start
from bough.tree import Kind, Outcome, Rewarded, Source, Ternary, counted, path_view


def talk(goal: str, reached: str, *, prompt: int, move: int, paid: float) -> Rewarded:
    """One turn: a prompt, a move, and an end that tells which goal was wanted and which was reached."""
    end = {"goal": goal, "hindsight": {"goal": reached, "reward": 0.75}}
    prompted = N(parent=-1, kind=PROMPT, tokens=(prompt, 1))
    moved = N(parent=0, kind=ACTION, tokens=(move, 2), env_reward=paid)
    ended = N(
        parent=1, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED, success=goal == reached, info={"env": end}
    )
    return rewarded(build(prompted, moved, ended))


def hook(keep: int = 8) -> HindsightState:
    return Hindsight(keep=keep).build(HookSetup(vocab_tokens=16))


def test_a_failed_path_becomes_a_success_for_the_goal_that_it_reached() -> None:
    one = hook()
    rome = talk("rome", "rome", prompt=7, move=3, paid=0.75)
    lost = talk("oslo", "rome", prompt=8, move=3, paid=-0.25)
    trees = one.transform([rome, lost], 0)
    assert trees[:2] == [rome, lost]
    (made,) = trees[2:]
    assert made.tree.token.tolist() == [7, 1, 3, 2]
    assert made.returns().tolist() == [0.75]
    assert made.tree.env_reward[made.tree.kind == Kind.ACTION].tolist() == [0.75]
    assert made.tree.task.id == f"{lost.tree.task.id} for rome", "a group of its own"
    assert made.tree.success[counted(made.tree)] == Ternary.YES
    assert (made.tree.source[made.tree.kind == Kind.ACTION] == Source.FORCED).all()
    assert not path_view([made]).sampled.any()
    assert one.observe() == {"hindsight/relabelled": 1.0}


def test_goals_without_a_prompt_and_successes_are_left_alone() -> None:
    one = hook()
    assert len(one.transform([talk("oslo", "rome", prompt=8, move=3, paid=-0.25)], 0)) == 1
    assert len(one.transform([talk("rome", "rome", prompt=7, move=3, paid=0.75)], 1)) == 1
    assert len(one.transform([talk("oslo", "rome", prompt=8, move=3, paid=-0.25)], 2)) == 2


def test_the_newest_prompts_are_kept_and_the_state_is_restored() -> None:
    one, other = hook(keep=2), hook(keep=2)
    for prompt in (5, 6, 7, 7):
        one.transform([talk("rome", "rome", prompt=prompt, move=3, paid=0.75)], 0)
    assert [each.tolist() for each in one.data.prompts["rome"]] == [[6, 1], [7, 1]]
    restore(other.data, save(one.data))
    assert {goal: [each.tolist() for each in some] for goal, some in other.data.prompts.items()} == {
        "rome": [[6, 1], [7, 1]]
    }
    empty = hook()
    restore(empty.data, save(hook().data))
    assert empty.data.prompts == {}


def test_the_critic_learns_from_paths_that_failed() -> None:
    """Nobody who wanted rome went there, but someone else did: the critic prefers that move for rome."""
    critic = UtteranceCritic(width=16, heads=2, steps=30, batch_turns=8, learning_rate=2e-2)

    def values(*, relabel: bool) -> tuple[float, float]:
        judge = critic.build(HookSetup(vocab_tokens=16))
        went = [talk("oslo", "rome", prompt=8, move=3, paid=-0.25) for _ in range(4)]
        stayed = [talk("rome", "bern", prompt=7, move=4, paid=-0.25) for _ in range(4)]
        batch = [*went, *stayed]
        judge.transform(hook().transform(batch, 0) if relabel else batch, 1)
        asked = [talk("rome", "rome", prompt=7, move=move, paid=0.0) for move in (3, 4)]
        asked = [replace(each, tree=replace(each.tree, replayed=True)) for each in asked]
        found = judge.transform(asked, 2)
        first, second = (float(each.estimates["q1"][2]) for each in found)
        return first, second

    with_it, without = values(relabel=True), values(relabel=False)
    assert with_it[0] > with_it[1] + 0.3
    assert without[0] < without[1] + 0.2


def test_relabelled_turns_are_in_no_loss_of_the_policy() -> None:
    made = hook()
    trees = made.transform(
        [talk("rome", "rome", prompt=7, move=3, paid=0.75), talk("oslo", "rome", prompt=8, move=3, paid=-0.25)], 0
    )
    named = {name: np.ones(4, dtype=np.float32) for name in ("q1", "q2", "v1", "v2")}
    credited = Archer()([replace(each, estimates={**named, "q1": named["q1"] * 2}) for each in trees])
    assert not any(each.any() for each in (credited[2].positive, credited[2].negative))


def test_a_run_relabels_on_the_real_environment(tmp_path: Path) -> None:
    run = small(find_run("cts", "dialogue_graph(branching_factor=2, depth=1)"))
    warmup = Warmup(demonstrations=20, epochs=6, learning_rate=1e-2, batch_tokens=256)
    folder = start(run.replace(steps=2, tasks=Tasks(split="train", count=20), warmup=warmup), tmp_path, terminal=False)
    rows = [row for row in read_metrics(folder.metrics) if "hindsight/relabelled" in row]
    assert sum(float(row["hindsight/relabelled"]) for row in rows) > 0
