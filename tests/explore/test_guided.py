"""Attempts with guidance: when, what is told, and that nothing of it stays."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.engines import Late
from tests.explore.stage import World, grow, runner, scripted
from tests.rollout.test_builder import columns

from bough.batch import pack
from bough.context import Context, Full, Window
from bough.credit import Grpo
from bough.engine import Engine, InjectedFault, Request, Scripted
from bough.env import InProcessHost, Split, State, Step
from bough.explore import Guided
from bough.reward import Success
from bough.rewrite.teacher_paths import teacher_paths
from bough.rollout import Limits
from bough.train.summary import summarize
from bough.tree import Kind, Outcome, Rewarded, Source, Task, Ternary, Tree, counted, leaves, path


def obeys(request: Request) -> tuple[int, ...]:
    """Writes `b`, or what it is told."""
    read = "".join(map(chr, request.prompt_tokens))
    return (ord(read.rpartition("Do this: ")[2][0]) if "Do this" in read else ord("b"),)


def grown(
    explorer: Guided,
    engine: Engine,
    *,
    env: object = None,
    seed: int = 0,
    limits: Limits | None = None,
    context: Context | None = None,
) -> Tree:
    world = InProcessHost(env=env or World())  # type: ignore[arg-type]
    place = runner(engine, world, limits=limits or Limits(), context=context or Full())
    (tree,) = grow(place, explorer, seed=seed).trees
    return tree


def paid(tree: Tree) -> Rewarded:
    return Rewarded(tree=tree, channels=Success()([tree])[0])


def sources(tree: Tree, leaf: int) -> list[int]:
    return [int(tree.source[node]) for node in path(tree, leaf) if tree.kind[node] == Kind.ACTION]


@pytest.mark.parametrize("context", [Full(), Window(turns=1)], ids=str)
def test_when_all_fail_the_way_is_told(context: Context) -> None:
    tree = grown(Guided(n=3, again=2), Scripted(script=obeys), context=context)
    ends = counted(tree).tolist()
    assert [bool(tree.success[leaf] == Ternary.YES) for leaf in ends] == [False] * 3 + [True] * 2
    assert [sources(tree, leaf) for leaf in ends] == [[Source.SAMPLED] * 3] * 3 + [[Source.TEACHER] * 3] * 2
    assert "Do this" not in "".join(map(chr, tree.token.tolist())), "the hint is no part of the tree"


def test_so_many_actions() -> None:
    """Failing chains and as many again; only the first ones where one of them succeeds."""
    for again in (0, 1, 5):
        tree = grown(Guided(n=3, again=again), Scripted(script=obeys))
        assert (tree.kind == Kind.ACTION).sum() == (3 + again) * 3
    tree = grown(Guided(n=3, again=5), scripted(lambda _: "a"))
    assert (tree.kind == Kind.ACTION).sum() == 3 * 3


def test_one_success_is_enough() -> None:
    for seed in range(30):
        tree = grown(Guided(n=4), scripted(lambda chance: chance.choice("aaab")), seed=seed)
        helped = [leaf for leaf in counted(tree).tolist() if Source.TEACHER in sources(tree, leaf)]
        alone = [bool(tree.success[leaf] == Ternary.YES) for leaf in counted(tree).tolist() if leaf not in helped]
        assert len(alone) == 4
        assert bool(helped) == (not any(alone))


class Silent:
    """A world without an oracle."""

    branching, instructions = World().branching, World().instructions

    def tasks(self, split: Split, count: int, seed: int) -> Sequence[Task]:
        return World().tasks(split, count, seed)

    def start(self, task: Task) -> State:
        return World().start(task)

    def step(self, state: State, action: str) -> Step:
        return World().step(state, action)


def test_without_an_oracle_it_is_told_how_it_failed() -> None:
    engine = scripted(lambda _: "b")
    grown(Guided(n=1, again=1), engine, env=Silent())
    told = ["".join(map(chr, request.prompt_tokens)) for request in engine.requests][3:]
    assert len(told) == 3
    assert all(text.endswith("\nThis failed: b, b, b. It ended so: bbb}") for text in told)


def test_what_was_told_is_not_learned_from_unless_it_is_asked_for() -> None:
    tree = grown(Guided(n=3, again=2), Scripted(script=obeys))
    (credited,) = Grpo()([paid(tree)])
    assert credited.negative.any(), "those that failed are compared with those that were told"
    batch = pack([credited])
    assert len(batch.at) == 3 * 3 * 2
    (shown,) = teacher_paths([credited])
    assert len(counted(shown)) == 2
    both = pack([credited], paths=True, experts=[shown])
    assert int(both.expert.sum()) == 2 * 3 * 2
    (row,) = {tuple(map(chr, text)) for text in _rows(both, expert=True)}
    assert "".join(row).replace("\0", "") == "{go: }{.}a{a}a{aa}a", "as if it had found the way by itself"


def _rows(batch: object, *, expert: bool) -> list[list[int]]:
    """The texts that train demonstrations."""
    row, tokens = batch.row.tolist(), batch.tokens.tolist()  # type: ignore[attr-defined]
    which = batch.at[batch.expert == expert].tolist()  # type: ignore[attr-defined]
    spans = [(row[i], row[i + 1]) for i in range(len(row) - 1)]
    return [tokens[a:b] for a, b in spans if any(a <= at < b for at in which)]


def test_only_what_led_to_success_is_shown() -> None:
    failed = grown(Guided(n=2, again=2), scripted(lambda _: "b"))
    alone = grown(Guided(n=2, again=2), scripted(lambda _: "a"))
    assert teacher_paths(Grpo()([paid(failed), paid(alone)])) == []


def test_success_is_that_of_the_policy_alone() -> None:
    tree = grown(Guided(n=3, again=2), Scripted(script=obeys))
    assert summarize([paid(tree)], unstarted=0, dropped={})["train/success"] == 0.0
    assert summarize([paid(tree)], unstarted=0, dropped={})["reward/mean"] == pytest.approx(2 / 5)


@pytest.mark.parametrize("limits", [Limits(), Limits(tree_turns=11), Limits(tree_tokens=32), Limits(tree_calls=10)])
def test_the_order_of_arrival_does_not_show_and_budgets_hold(limits: Limits) -> None:
    plain = Scripted(script=lambda request: obeys(request) if request.seed % 3 else (ord("c"),))
    expected = grown(Guided(n=3, again=3), plain, limits=limits)
    acts = int((expected.kind == Kind.ACTION).sum())
    assert acts <= min(limits.tree_turns or 18, limits.tree_calls or 18, (limits.tree_tokens or 36) // 2)
    assert acts > 8

    @settings(max_examples=8)
    @given(chance=strategies.integers(0, 2**32 - 1).map(random.Random))
    def late(chance: random.Random) -> None:
        assert columns(grown(Guided(n=3, again=3), Late(plain, chance), limits=limits)) == columns(expected)

    late()


def test_faults_are_tried_again() -> None:
    def reply(request: Request) -> object:
        return InjectedFault.FAULT if random.Random(request.seed).random() < 0.2 else obeys(request)

    for seed in range(5):
        tree = grown(Guided(n=3, again=2, retries=50), Scripted(script=reply), seed=seed)  # type: ignore[arg-type]
        assert len(counted(tree)) == 5
    nothing = grown(Guided(n=2, again=2, retries=1), Scripted(script=lambda _: InjectedFault.FAULT))
    assert nothing.outcome[leaves(nothing)].tolist() == [Outcome.FAILED] * 4
    assert not np.isnan(Grpo()([paid(nothing)])[0].advantage).any()


@pytest.mark.parametrize("fields", [{"n": 0}, {"again": -1}, {"ahead": 0}, {"retries": -1}])
def test_ranges(fields: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=rf"Guided.{next(iter(fields))}: got .*; need at least"):
        Guided(**fields)
