"""A stored path is played again up to each of its open turns, and nowhere else."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from tests.explore.stage import World, grow, runner, scripted

from bough.env import InProcessHost, Step
from bough.env import State as EnvState
from bough.explore import Chains, Forks
from bough.rollout import Cursor, Limits, Rollout, replay_path
from bough.rollout.runner import RolloutRunner
from bough.tree import Kind, Outcome, Task, Tree, leaves, path, text_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(World):
    """Shows other states than `World` from the second turn on."""

    def step(self, state: EnvState, action: str) -> Step:
        return World.step(self, state, "b" if state.value else action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyless(World):
    """Has no keys: states are compared by their texts."""

    def step(self, state: EnvState, action: str) -> Step:
        done = World.step(self, state, action)
        shown = EnvState(observation=f"saw {done.state.value}", key="", value=done.state.value)
        return Step(state=shown, outcome=done.outcome, success=done.success, reward=done.reward, valid=done.valid)


def forked(env: World | None = None) -> Tree:
    host = InProcessHost(env=env or World(length=4))
    (tree,) = grow(runner(scripted(lambda chance: chance.choice("ab")), host), Forks(chains=2, rounds=2), "task").trees
    return tree


def actions(tree: Tree, node: int) -> list[int]:
    walk = path(tree, node)
    return walk[tree.kind[walk] == Kind.ACTION].tolist()


def played(place: RolloutRunner, tree: Tree, node: int) -> tuple[Sequence[Cursor], Rollout]:
    async def main() -> tuple[Sequence[Cursor], Rollout]:
        rollout = place.rollout(tree.task, 7)
        try:
            return await replay_path(rollout, tree, node), rollout
        finally:
            await place.host.close()

    return asyncio.run(main())


@pytest.mark.parametrize("env", [World(length=4), Keyless(length=4)], ids=["keys", "texts"])
def test_every_open_node_is_reached_with_the_same_tokens(env: World) -> None:
    tree = forked(env)
    assert len(leaves(tree)) > 2
    engine = scripted(lambda _: "b")
    # Inside of the tree and before its last turns, an episode is open.
    inside = [node for node in range(tree.nodes) if len(actions(tree, node)) < env.length]
    assert len(inside) > 8
    for node in inside:
        said = [str(text_in(tree.info[each])) for each in actions(tree, node)]
        cursors, rollout = played(runner(engine, InProcessHost(env=env)), tree, node)
        assert [each.state.value for each in cursors] == ["".join(said[:at]) for at in range(len(said) + 1)]
        rollout.finish()
        again = rollout.builder.done()
        tokens = [again.tokens_of(int(each)).tolist() for each in np.flatnonzero(again.kind == Kind.ACTION)]
        assert tokens == [tree.tokens_of(each).tolist() for each in actions(tree, node)]
        assert not again.sampled.any(), "nothing is sampled"
    assert not engine.requests


def test_the_start_of_a_task_is_executed_once() -> None:
    place = runner(scripted(lambda _: "a"), InProcessHost(env=World(length=4)))
    (tree,) = asyncio.run(place.run(Chains(n=1), [Task(id="t").after(["a", "b"])], seed=0)).trees
    last = actions(tree, int(leaves(tree)[0]))[-1]
    cursors, _ = played(
        runner(scripted(lambda _: "a"), InProcessHost(env=World(length=4))), tree, int(tree.parent[last])
    )
    assert [each.state.value for each in cursors] == ["ab", "aba"]


def test_an_ended_episode_is_refused_with_its_turn() -> None:
    tree = forked()
    leaf = int(leaves(tree)[0])
    with pytest.raises(ValueError, match=rf"got node {leaf} of task task, .* \(terminated at turn 4\); need a turn"):
        played(runner(scripted(lambda _: "a"), InProcessHost(env=World(length=4))), tree, leaf)


@pytest.mark.parametrize(("stored", "now"), [(World, Changed), (Keyless, World)], ids=["keys", "texts"])
def test_another_state_is_refused(stored: type[World], now: type[World]) -> None:
    (tree,) = grow(runner(scripted(lambda _: "a"), InProcessHost(env=stored(length=4))), Chains(n=1)).trees
    third = actions(tree, int(leaves(tree)[0]))[2]
    turn = 2 if now is Changed else 1
    with pytest.raises(ValueError, match=rf"turn {turn} of task task: got another state .* need an environment in"):
        played(runner(scripted(lambda _: "a"), InProcessHost(env=now(length=4))), tree, int(tree.parent[third]))


def test_a_path_that_was_cut_goes_on() -> None:
    place = runner(scripted(lambda _: "a"), InProcessHost(env=World(length=4)), limits=Limits(turns=2))
    (tree,) = grow(place, Chains(n=1)).trees
    leaf = int(leaves(tree)[0])
    assert tree.outcome[leaf] == Outcome.TRUNCATED
    cursors, _ = played(runner(scripted(lambda _: "a"), InProcessHost(env=World(length=4))), tree, leaf)
    assert cursors[-1].state.value == "aa"
