"""Refined answers at the first prompt, and what judge and refiner learn from."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from tests.explore.stage import Letters, runner
from tests.search.talk import judgements, search, talk
from tests.search.test_questions import FAR
from tests.small import world as small

from bough.batch import pack
from bough.cli.find import find_run
from bough.config import override
from bough.context import Full, Plain
from bough.credit import Searched
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.learner.loss_inputs import NO_CONTEXT, before_forward, by_path, loss_weights
from bough.methods.spar import spar as method
from bough.objective import Dpo, Normalizer, Pairs
from bough.rewrite import Refined
from bough.rollout import PolicyFormat, RoleModel
from bough.search import Search, SearchNode, SearchTree
from bough.searches.spar import spar
from bough.store import read_metrics
from bough.train import Health, Warmup, start
from bough.tree import Rewarded, Source, Tree

FORMAT = PolicyFormat(renderer=Letters(), context=Full(), parser=Plain())


def talks(values: dict[str, float], *, first: str = "b") -> Scripted:
    """Answers `first`, then any letter; `values` are the shares of positive judgements."""
    say, _ = judgements({past: round(5 * value) for past, value in values.items()})
    return talk(lambda read, luck: luck.choice("abc") if "refine it" in read else first, say)


def refined(
    engine: Scripted, rule: Refined | None = None, policy_format: PolicyFormat = FORMAT
) -> tuple[Tree, list[Tree]]:
    tree = search(engine, spar(width=8, first=1), host=FAR)
    rewarded = Rewarded(tree=tree, channels={})
    return tree, [each.tree for each in (rule or Refined())([rewarded], policy_format)]


def reads(tree: Tree) -> str:
    """All that is read before what is learned, `|`, and what is learned."""
    (learned,) = np.flatnonzero(tree.source == Source.TEACHER)
    before, after = np.split(tree.token, [tree.span[learned]])
    return f"{Letters().text(before.tolist())}|{Letters().text(after.tolist())}"


def test_the_refined_answer_is_moved_to_the_first_prompt() -> None:
    tree, (pair, refiner, yes, no) = refined(talks({"b": 0.4, "ba": 0.6, "bb": 0.2}))
    assert reads(pair) == "{go: }{.}|a"
    assert pair.tokens_of(0).tolist() == tree.tokens_of(0).tolist()
    assert reads(refiner) == "{go: }{.}b{b\nrefine it}|a"
    assert reads(yes).endswith("|yes")
    assert "> b\nb\n> a\n" in reads(yes)
    assert reads(no).endswith("|no")
    assert len({each.task.id for each in (pair, refiner, yes, no)}) == 4, "only the pair is compared"
    assert pair.task == tree.task


def test_an_answer_of_two_refinements_is_compared_with_the_first() -> None:
    engine = talks({"b": 0.2, "ba": 0.4, "bb": 0.0, "bc": 0.0, "bac": 0.8})
    tree, made = refined(engine, Refined(judge=False))
    assert reads(made[0]) == "{go: }{.}|c"
    assert reads(made[1]).startswith("{go: }{.}b{b}a{ba\nrefine it}|c")
    found = Refined(judge=False)([Rewarded(tree=tree, channels={})], FORMAT)
    assert found[0].gap == pytest.approx(0.8 - 0.2), "of the answers' own values, not of the search's means"


def test_an_answer_is_accepted_by_its_own_value() -> None:
    """The search goes on below an accepted answer; worse refinements lower its mean, not its own value."""
    engine = talks({"b": 0.2, "ba": 0.8, "baa": 0.2, "bab": 0.2, "bac": 0.2})
    tree = search(engine, replace(spar(width=8, first=1), stop_value=0.9), host=FAR)
    assert tree.value[tree.parent[tree.answer]] < 0.5
    found = Refined(judge=False)([Rewarded(tree=tree, channels={})], FORMAT)
    assert [reads(each.tree) for each in found] == ["{go: }{.}|a", "{go: }{.}b{b\nrefine it}|a"]
    assert Refined(judge=False, accept=0.8)([Rewarded(tree=tree, channels={})], FORMAT) == []


@pytest.mark.parametrize("values", [{"b": 1.0}, {"b": 0.4}])
def test_without_an_accepted_refinement_there_is_no_pair(values: dict[str, float]) -> None:
    _, made = refined(talks(values), Refined(judge=False))
    assert made == []


@pytest.mark.usefixtures("sandbox")
def test_a_pair_arises_on_the_world_of_the_printed_command() -> None:
    """A wrong first answer stays open, so that a refinement that the judge accepts replaces it."""
    run = override(find_run("spar(judge=judge)", "code"), ["env.attempts=4", "limits.turns=4"])
    (task,) = run.world.env.tasks("train", 1, 0)
    (right,) = run.world.env.plan(run.world.env.start(task)) or ()
    policy = talk(lambda read, _: right if "refine it" in read else "7", lambda _: "?")
    judge = talk(
        lambda *_: "?",
        lambda read: "refine it" if "what is wrong" in read else "yes" if f"\n> {right}\n" in read else "no",
    )
    place = runner(policy, InProcessHost(env=run.world.env), limits=run.world.limits, max_tokens=200)
    place = replace(place, agent=replace(place.agent, models={"judge": RoleModel(engine=judge, renderer=Letters())}))
    (tree,) = asyncio.run(place.run(run.method.explorer, [task], seed=0)).trees
    found = Refined(refiner=False, judge=False)([Rewarded(tree=tree, channels={})], FORMAT)
    assert [reads(each.tree).rpartition("|")[2] for each in found] == [right]


def test_a_tie_of_judgements_is_no_example() -> None:
    engine = talk(lambda *_: "b", lambda read: "refine it" if "what is wrong" in read else "maybe")
    assert refined(engine)[1] == []


def test_what_exceeds_the_context_is_left_out() -> None:
    _, made = refined(talks({"b": 0.4, "ba": 0.6}), policy_format=replace(FORMAT, max_tokens=14))
    assert [reads(each) for each in made] == ["{go: }{.}|a"]


def test_the_pair_of_dpo_is_the_refined_answer_over_the_first() -> None:
    tree, made = refined(talks({"b": 0.4, "ba": 0.6}))
    (credited,) = Searched()([Rewarded(tree=tree, channels={})])
    batch = pack([credited], paths=True, experts=made)
    weight = loss_weights(batch, Normalizer())
    columns = by_path(before_forward(batch, Dpo().needs, NO_CONTEXT, loss_weight=weight), batch, Normalizer())
    pairs = Pairs(unit="turn")(columns, "test")
    assert len(pairs.won) == 1
    assert batch.path_index is not None
    assert columns.path_ids is not None
    token, turn = batch.target[batch.path_index.trained], columns.path_ids.turn
    won, lost = (Letters().text(token[turn == side.turn[0]].tolist()) for side in (pairs.winner, pairs.loser))
    assert (won, lost) == ("a", "b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLength:
    """A judge that needs no model: an answer is the better, the more it refines, and the second is accepted."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        del tree
        return node.depth / 3


def test_a_run_learns_from_the_pairs_and_the_refinements(tmp_path: Path) -> None:
    run = method(small().replace(warmup=Warmup()), rounds=1, batch_tasks=4)
    assert isinstance(run.method.explorer, Search)
    # No tree has an advantage: the environment pays nothing, and the pairs come from the refinements.
    run = run.replace(explorer=replace(run.method.explorer, evaluate=ByLength()), health=Health(dead_batches=1))
    rows = read_metrics(start(run, tmp_path, terminal=False).metrics)
    (row,) = [each for each in rows if "policy/pairs" in each]
    assert row["policy/pairs"] == 2, "a mean of two optimizer steps, which get four pairs whole"
    assert row["train/revisions"] == 8, "a pair and an example of the refiner a task"
    assert float(row["optimizer/gradient_norm"]) > 0
