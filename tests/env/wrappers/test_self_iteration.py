"""The instruction after a history: where it stands, that the policy reads it, and which tasks have it."""

import asyncio
from collections import Counter

import pytest
from tests.explore.stage import STOP, World, runner, scripted
from tests.rollout.test_starts import grown

from bough.cli.find import find_run
from bough.env import InProcessHost, Replay, SelfIteration
from bough.env.env import Env
from bough.env.wrappers.self_iteration import ITERATION
from bough.explore import Chains
from bough.hooks import ExIt
from bough.hooks.hook import HookSetup
from bough.reward import EnvReward
from bough.rollout import Limits
from bough.tree import Kind, Rewarded, Source, Task, Tree

TASK = Task(id="t", data={"x": 1})


def played(task: Task, inner: Env | None = None, *, letters: str = "a", turns: int = 16) -> tuple[Tree, list[str]]:
    """A tree of two chains after a task's history, and what the policy read before its own actions."""
    engine = scripted(lambda chance: chance.choice(letters))
    env = SelfIteration(env=inner or World(length=4), improve="better", diverge="other")
    (tree,) = grown(runner(engine, InProcessHost(env=env), limits=Limits(turns=turns)), Chains(n=4), task).trees
    return tree, ["".join(chr(t) for t in each.prompt_tokens if t != STOP) for each in engine.requests]


@pytest.mark.parametrize(("step", "line"), [("improve", "better"), ("diverge", "other")])
@pytest.mark.parametrize("inner", [None, Replay(env=World(length=4))])
def test_the_policy_reads_the_instruction_once_after_the_history(step: str, line: str, inner: Env | None) -> None:
    task = ITERATION.add(TASK.after(["a", "a"]), step)
    tree, read = played(task, inner)
    assert set(read) == {f"{{go: }}{{.}}a{{a}}a{{aa\n{line}}}", f"{{go: }}{{.}}a{{a}}a{{aa\n{line}}}a{{aaa}}"}
    assert (tree.success == 1).any()
    own = (tree.kind == Kind.ACTION) & (tree.source != Source.REPLAYED)
    assert (tree.source[own] == Source.SAMPLED).all(), "so that it can be reinforced"


def test_without_a_step_the_environment_is_the_inner_one() -> None:
    assert set(played(TASK.after(["a", "a"]), turns=1)[1]) == {"{go: }{.}a{a}a{aa}"}
    assert set(played(TASK, turns=1)[1]) == {"{go: }{.}"}
    with pytest.raises(ValueError, match="got a task with iteration='repeat'; need one of"):
        SelfIteration(env=World()).start(Task(id="t", data={"iteration": "repeat"}))


def test_a_step_has_a_group_of_its_own_and_can_be_taken_off() -> None:
    history = TASK.after(["a"])
    one, two = ITERATION.add(history, "improve"), ITERATION.add(history, "diverge")
    assert len({history.id, one.id, two.id}) == 3
    assert ITERATION.remove(one) == ITERATION.remove(two) == history == ITERATION.remove(history)
    assert ITERATION.add(one, "diverge") == two


def test_histories_are_improved_on_or_diverged_from_and_grow_by_an_answer() -> None:
    state = ExIt(chance=1.0, diverge=0.25).build(HookSetup(vocab_tokens=10))
    tree, _ = played(TASK, World(length=2), letters="ab", turns=1)

    def rewarded(each: Tree) -> Rewarded:
        paid = EnvReward()([each])[0]["env"] + (each.kind == Kind.ACTION) * (each.token[each.span[:-1]] == ord("a"))
        return Rewarded(tree=each, channels={"paid": paid})

    state.transform([rewarded(tree)], 0)
    ((history, _),) = state.data.kept.values()
    assert len(history.start) == 1, "a path that the limit of turns ended is a history as a whole"

    async def nobody(_: Task) -> tuple[str, ...]:
        raise AssertionError

    steps = Counter(str(asyncio.run(state.rewrite([TASK], nobody, seed))[0].data["iteration"]) for seed in range(400))
    assert steps["diverge"] / 400 == pytest.approx(0.25, abs=0.07)
    assert steps["improve"] + steps["diverge"] == 400
    (begun,) = asyncio.run(state.rewrite([TASK], nobody, 0))
    after, _ = played(begun, World(length=9), letters="ab", turns=1)
    state.transform([rewarded(after)], 0)
    assert sorted(len(task.start) for task, _ in state.data.kept.values()) == [1, 2]
    assert all("iteration" not in task.data for task, _ in state.data.kept.values())


def test_the_method_is_of_single_answers_with_a_bonus() -> None:
    run = find_run("exit(answers=true,diverge=0.3)", "frozenlake")
    assert run.method.hooks == (ExIt(diverge=0.3),)
    assert run.world.limits.turns == 1
    assert [type(each).__name__ for each in run.world.rewards][-1] == "Diversity"
    with pytest.raises(ValueError, match=r"ExIt.diverge: got 2; need a number from 0 to 1"):
        ExIt(diverge=2)
