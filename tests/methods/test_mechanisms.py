"""What makes a method more than its base: its own mechanism changes an advantage in a world where it is shipped."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.explore.stage import runner

from bough.cli.find import find_run, find_world
from bough.config import override
from bough.credit import dr_grpo
from bough.engine import Scripted
from bough.engine.messages import Messages
from bough.env import InProcessHost, call
from bough.explore import Chains
from bough.hooks import AttentionReward
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.reward import reward_trees
from bough.train import Run, World
from bough.train.check import check
from bough.tree import Action, AgentAction, Rewarded, Task, ToolCall, Tree, path_view
from bough.worlds.ledger.preset import get, pay
from bough.worlds.screens import Screens
from bough.worlds.search.question import read_question


def played(world: World, task: Task, *paths: Sequence[AgentAction]) -> list[Rewarded]:
    """Rewarded trees of one task, a chain each, of an agent that samples these actions in the world."""
    found = [asyncio.run(_played(world, task, actions)) for actions in paths]
    return reward_trees(found, world.rewards)


async def _played(world: World, task: Task, actions: Sequence[AgentAction]) -> Tree:
    left = iter(actions)
    engine = Scripted(script=lambda _: Messages().write(next(left)), context_tokens=100_000)
    place = runner(engine, InProcessHost(env=world.env), limits=world.limits, max_tokens=4000)
    place = replace(place, agent=replace(place.agent, renderer=Messages(), parser=world.parser))
    (tree,) = (await place.run(Chains(n=1), [task], seed=0)).trees
    return tree


def of_paths(run: Run, rewarded: Sequence[Rewarded]) -> list[float]:
    """The advantage of the first token of each path."""
    return [float(each.path_advantage[0]) for each in run.method.credit(rewarded)]


def test_aspo_pays_an_earlier_call_more() -> None:
    """Two right paths look up one account or two before they pay, the third pays another account."""
    world = find_world("ledger")
    task = next(each for each in world.env.tasks("train", 20, 0) if len(each.data["accounts"]) == 2)
    name, n = task.data["pay"]
    (other,) = {*task.data["accounts"]} - {name}
    look, wide, right, wrong = (
        call(get, name=name),
        call(get, name=other),
        *(call(pay, name=who, n=n) for who in (name, other)),
    )
    trees = played(world, task, [look, right, "done"], [wide, look, right, "done"], [look, wrong, "done"])
    assert [float(each.returns()[0]) for each in trees] == [1, 1, 0]
    plain = of_paths(find_run("grpo", world), trees)
    assert plain[0] == plain[1]
    run = find_run("aspo(mark=call:pay)", world)
    check(run)
    early, late, failed = of_paths(run, trees)
    assert early > plain[0] > late > 0
    assert failed == plain[2]
    assert of_paths(find_run("aspo", world), trees) == plain, "every path begins with a lookup"


def test_a_call_is_earlier_the_less_is_written_before_it() -> None:
    """In one turn too: two right paths that call first or think first."""
    world = find_world("ledger")
    task = world.env.tasks("train", 1, 0)[0]
    name, n = task.data["pay"]
    right = call(pay, name=name, n=n)
    slow = replace(right, text="it is short")
    trees = played(world, task, [right, "done"], [slow, "done"], ["done"])
    early, late, _ = of_paths(find_run("aspo", world), trees)
    assert early > late


def test_strata_are_the_numbers_of_search_calls() -> None:
    """All paths have three turns; two of them searched twice, two once."""
    world = find_world("search")
    (task,) = world.env.tasks("train", 1, 0)
    answer = read_question(task).answers[0][0]
    search, read = (
        Action(calls=(ToolCall(name=name, arguments=given),))
        for name, given in (("search", {"query": "x"}), ("read", {"doc": 1}))
    )
    twice, once = [search, search], [search, read]
    trees = played(world, task, [*twice, answer], [*twice, "?"], [*once, answer], [*once, answer])
    run = find_run("stratified_grpo(mark=call:search,blend=1)", world)
    check(run)
    assert of_paths(run, trees) == pytest.approx([0.5**0.5, -(0.5**0.5), 0, 0], abs=1e-5)
    by_turns = of_paths(find_run("stratified_grpo(blend=1)", world), trees)
    assert by_turns == pytest.approx(of_paths(find_run("grpo", world), trees)), "all have three turns"
    assert np.asarray(by_turns)[[2, 3]].all()


def test_gui_g1_gives_small_elements_more_weight() -> None:
    """The plan clicks an icon and then rows; the other path misses the icon."""
    settings = ("env.links=false", "env.boxes=true", "env.points=true", "env.click=box")
    run = override(find_run("gui_g1", "screens"), settings)
    check(run)
    env = run.world.env
    assert isinstance(env, Screens)
    (task,) = env.tasks("train", 1, 0)
    start = env.start(task)
    plan, targets = env.plan(start), env.pointings(start)
    assert plan
    assert targets
    trees = played(run.world, task, plan, ["box 1 1 2 2", "done"])
    weighted, plain = (rule(trees)[0] for rule in (run.method.credit, dr_grpo()))
    (turn,) = np.nonzero(np.diff(path_view([weighted.rewarded]).path_tokens.step, prepend=-1))
    boxes = [each.target_box for each in targets if each.target_box is not None]
    sizes = [((b[2] - b[0]) * (b[3] - b[1]) / (env.width * env.height)) ** 0.5 for b in boxes]
    ratios = (weighted.path_advantage / plain.path_advantage)[turn]
    assert ratios == pytest.approx([0.2 / size for size in sizes] + [1.0])
    assert ratios[0] > 1.3 > 0.8 > ratios[1], "an icon, and a row"


@pytest.mark.parametrize("salient", [True, False])
def test_eag_rl_pays_for_attention_to_the_evidence(salient: bool) -> None:
    """The results of a search are lines; the answer's attention is on the line with the fact, or on the task's."""
    run = find_run("eag_rl(key=evidence)", "search")
    check(run)
    (task,) = run.world.env.tasks("train", 1, 0)
    fact = read_question(task).evidence[0]
    search = Action(calls=(ToolCall(name="search", arguments={"query": fact.query}),))
    (tree,) = played(run.world, task, [search, "?"])

    def text(tokens: Sequence[int]) -> str:
        return "".join(chr(token) if token < 256 else "\n" for token in tokens)

    def attention(texts: Sequence[np.ndarray]) -> list[np.ndarray]:
        (read,) = texts
        found = np.zeros((len(read), len(read)))
        begin = text(read.tolist()).index(fact.text if salient else str(task.data["question"]))
        found[:, begin : begin + 5] = 1
        return [found]

    (hook,) = run.method.hooks
    assert isinstance(hook, AttentionReward)
    state = hook.build(HookSetup(policy=PolicyAccess(attention=attention, text=text)))
    (paid,) = state.transform([tree], 0)
    assert state.observe()["attention/salient"] == 1
    assert paid.channels["attention"].sum() == (0.5 if salient else 0)


@pytest.mark.parametrize("method", ["dapo", "grpo_tcr"])
def test_a_soft_limit_acts_where_paths_come_near_it(method: str) -> None:
    world = find_world("sokoban")
    task = world.env.tasks("train", 1, 0)[0]
    (tree,) = (each.tree for each in played(world, task, ["up", "down"] * world.limits.turns))
    tokens = int(np.isfinite(tree.logprob).sum())
    for limit, penalty in ((tokens, -1.0), (4 * tokens, 0.0)):
        run = find_run(f"{method}(limit_tokens={limit})", world)
        (paid,) = reward_trees([tree], run.world.rewards)
        assert paid.channels["overlong"].sum() == penalty
