"""Turns taken in two, actions in pieces, and what they cost."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.explore.stage import STOP, World, runner, scripted

from bough.ask import Query, Text
from bough.context import Window
from bough.engine import InjectedFault, Sampling, Scripted
from bough.env import InProcessHost, Replay
from bough.rollout import Budget, BudgetExceeded, Cursor, Limits, PendingAction, Rollout, TreeBuilder, Usage
from bough.rollout.runner import RolloutRunner
from bough.tree import (
    UNKNOWN_VALUES,
    Kind,
    Outcome,
    Source,
    Task,
    Ternary,
    Tree,
    TruncatedBy,
    counted,
    leaves,
    path,
    turns,
)

TASK = Task(id="t")


def play(place: RolloutRunner, script: Callable[[Rollout], Awaitable[None]], task: Task = TASK) -> Tree:
    """The tree that a script grows."""

    async def main() -> Tree:
        builder = TreeBuilder(task)
        rollout = Rollout(
            builder, place.agent, place.host, instructions="go", limits=place.limits, seed=0, deadlines=place.deadlines
        )
        await script(rollout)
        rollout.finish()
        return builder.done()

    return asyncio.run(main())


async def written(rollout: Rollout, at: Cursor | PendingAction, **how: object) -> PendingAction:
    draft = await rollout.sample(at, **how)  # type: ignore[arg-type]
    assert isinstance(draft, PendingAction)
    return draft


def test_what_is_written_is_done_later_or_never() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        one, two = await written(rollout, root), await written(rollout, root, branch=1)
        assert (one.parsed.action, one.complete, one.sampled_tokens) == ("a", True, 2)
        assert one.logprob < 0
        assert rollout.budget.spent == Usage(turns=0, tokens=4, calls=2)
        after = await rollout.execute(two)
        assert isinstance(after, Cursor)
        assert (after.state.observation, after.sampled_tokens, after.branches) == ("a", 2, (1,))
        assert rollout.budget.spent == Usage(turns=1, tokens=4, calls=2)

    tree = play(runner(scripted(lambda _: "a")), script)
    assert tree.kind.tolist() == [Kind.PROMPT, Kind.ACTION, Kind.ACTION, Kind.OBSERVATION]
    assert tree.outcome.tolist() == [Outcome.OPEN] * 3 + [Outcome.TRUNCATED]
    assert tree.truncated_by[3] == TruncatedBy.EXPLORER
    assert tree.span.tolist()[-2:] == [13, 16], "the state in which it ends is known"


def test_both_ways_make_the_same_tree() -> None:
    async def whole(rollout: Rollout) -> None:
        await rollout.roll_out(await rollout.root())

    async def halves(rollout: Rollout) -> None:
        at: Cursor | Outcome = await rollout.root()
        while isinstance(at, Cursor):
            at = await rollout.execute(await written(rollout, at))

    for context in (Window(turns=1), Window(turns=9)):
        place = runner(scripted(lambda chance: chance.choice("ab")), context=context)
        assert play(place, whole).equals(play(place, halves))


def test_an_action_in_pieces() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        first = await written(rollout, root, most=2)
        assert (first.tokens, first.complete) == ((ord("a"), ord("b")), False)
        rest = await written(rollout, first)
        assert (rest.parsed.action, rest.complete) == ("abab", True)
        other = await written(rollout, first, branch=1, most=1)
        forced = rollout.force_tokens(other, [ord("c")], branch=2)
        assert (forced.tokens, forced.sampled_tokens) == ((ord("a"), ord("b"), ord("a"), ord("c")), 3)
        assert forced.logprob == pytest.approx(other.logprob)
        after = await rollout.execute(forced)
        assert after is Outcome.TERMINATED
        with pytest.raises(ValueError, match=r"Rollout\.sample: got at\.complete=True and hint='';"):
            await rollout.sample(rest)

    def spell(request: object) -> tuple[int, ...]:
        begun = [chr(token) for token in request.prompt_tokens][9:]  # type: ignore[attr-defined]
        return tuple(map(ord, "abab"[len(begun) :]))

    tree = play(runner(Scripted(script=spell)), script)
    assert tree.kind.tolist() == [Kind.PROMPT, *[Kind.ACTION] * 4, Kind.OBSERVATION]
    assert tree.parent.tolist() == [-1, 0, 1, 1, 3, 4]
    assert tree.source[1:5].tolist() == [Source.SAMPLED, Source.SAMPLED, Source.SAMPLED, Source.FORCED]
    assert turns(tree).tolist() == [0, 1, 1, 1, 1, 1]
    assert [tree.info[node].get("text") for node in range(1, 5)] == [None, "abab", None, "abac"]


def test_a_piece_that_uses_up_the_tokens_of_a_path_ends_the_action() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        assert not (await written(rollout, root, most=2)).complete
        assert (await written(rollout, root, branch=1, most=3)).complete

    play(runner(scripted(lambda _: "abab"), limits=Limits(tokens=3)), script)


def test_a_piece_that_is_put_may_end_the_action() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        stopped = rollout.force_tokens(rollout.force_tokens(root, [ord("a")]), [STOP])
        assert (stopped.complete, stopped.parsed.action, stopped.parsed.well_formed) == (True, "a", True)
        assert isinstance(await rollout.execute(stopped), Cursor)
        full = rollout.force_tokens(rollout.force_tokens(root, [ord("b")] * 7, branch=1), [ord("b")])
        assert (full.complete, full.parsed.well_formed) == (True, False)
        assert not rollout.force_tokens(root, [ord("b")] * 7, branch=2).complete

    tree = play(runner(scripted(lambda _: "a")), script)
    assert [info.get("text") for info in tree.info] == [".", None, "a", "a", None, "b" * 8, None]


def test_a_stopped_draft_is_a_path_and_a_forgotten_one_is_not() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        forgotten, stopped, gone_on = [await written(rollout, root, most=1, branch=branch) for branch in range(3)]
        for draft in (stopped, gone_on):
            rollout.stop(draft, TruncatedBy.REPETITION)
        assert isinstance(await rollout.execute(await written(rollout, gone_on)), Cursor)
        assert forgotten.tokens

    tree = play(runner(scripted(lambda _: "a")), script)
    ends = {int(leaf): Outcome(int(tree.outcome[leaf])) for leaf in leaves(tree)}
    assert list(ends.values()) == [Outcome.OPEN, Outcome.TRUNCATED, Outcome.TRUNCATED]
    stopped = list(ends)[1]
    assert tree.info[stopped] == {"text": "a"}
    assert (tree.well_formed[stopped], tree.success[stopped]) == (Ternary.NO, Ternary.NO)
    assert tree.truncated_by[stopped] == TruncatedBy.REPETITION
    assert len(tree.tokens_of(list(ends)[1])) == 1, "what was written was written"
    assert tree.truncated_by[list(ends)[2]] == TruncatedBy.EXPLORER


@settings(max_examples=25)
@given(cuts=strategies.lists(strategies.integers(1, 5), min_size=1, max_size=4))
def test_cutting_changes_nothing_about_what_was_there(cuts: list[int]) -> None:
    """Five letters and a stop, cut anywhere, in any order: the path reads, costs and ends as if it never had been."""

    async def script(rollout: Rollout) -> None:
        draft = await written(rollout, await rollout.root())
        end = await rollout.execute(draft)
        assert end is Outcome.TERMINATED
        for number, at in enumerate(cuts, start=1):
            part = rollout.cut(draft, at)
            assert part.tokens == draft.tokens[:at]
            assert part.sampled_tokens == at
            again = await written(rollout, part, branch=number)
            assert again.tokens[:at] == draft.tokens[:at]

    place = runner(scripted(lambda _: "babab"))

    async def plain(rollout: Rollout) -> None:
        await rollout.execute(await written(rollout, await rollout.root()))

    tree, whole = play(place, script), play(place, plain)
    (leaf,) = [leaf for leaf in leaves(tree) if tree.outcome[leaf] == Outcome.TERMINATED]
    walk = path(tree, int(leaf))
    for column in ("token", "logprob", "entropy"):
        values = np.concatenate([getattr(tree, column)[tree.span[node] : tree.span[node + 1]] for node in walk])
        np.testing.assert_array_equal(values, getattr(whole, column))
    acts = [int(node) for node in walk if tree.kind[node] == Kind.ACTION]
    assert len(acts) == 1 + len(set(cuts))
    assert [tree.env_reward[node] for node in acts] == [0.0] * (len(acts) - 1) + [whole.env_reward[1]]
    assert [dict(tree.info[node]) for node in acts] == [{}] * (len(acts) - 1) + [dict(whole.info[1])]
    for column, unknown in UNKNOWN_VALUES.items():
        known = [*[unknown] * (len(acts) - 1), getattr(whole, column)[1]]
        np.testing.assert_array_equal(getattr(tree, column)[acts], known)
    assert all(tree.parent[1:] < np.arange(1, tree.nodes))


def test_cuts_need_something_on_either_side() -> None:
    async def script(rollout: Rollout) -> None:
        draft = await written(rollout, await rollout.root())
        for at in (0, 2):
            with pytest.raises(ValueError, match=f"cut: got token {at} of 2; need at least one on either side"):
                rollout.cut(draft, at)

    play(runner(scripted(lambda _: "a")), script)


@pytest.mark.parametrize("context", [Window(turns=1), Window(turns=9)], ids=str)
def test_a_hint_is_read_once_and_is_no_part_of_the_tree(context: Window) -> None:
    engine = scripted(lambda _: "a")

    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        at = await rollout.execute(await written(rollout, root, hint="try a"))
        assert isinstance(at, Cursor)
        again = await rollout.execute(await written(rollout, at, hint="go on"))
        assert isinstance(again, Cursor)
        assert await rollout.advance(again) is Outcome.TERMINATED

    tree = play(runner(engine, context=context), script)
    read = ["".join(map(chr, request.prompt_tokens)).replace(chr(STOP), "$") for request in engine.requests]
    assert read[0] == "{go: }{.\ntry a}"
    assert read[1] == ("{go: }{a\ngo on}" if context.turns == 1 else "{go: }{.}a${a\ngo on}")
    assert read[2] == ("{go: }{aa}" if context.turns == 1 else "{go: }{.}a${a}a${aa}")
    assert "hint" not in "".join(map(chr, tree.token.tolist()))
    actions = np.flatnonzero(tree.kind == Kind.ACTION)
    assert tree.source[actions].tolist() == [Source.TEACHER, Source.TEACHER, Source.SAMPLED]
    assert [tree.info[node].get("hint") for node in actions] == ["try a", "go on", None]


def test_greedy_tokens_are_not_samples() -> None:
    async def script(rollout: Rollout) -> None:
        await written(rollout, await rollout.root(), sampling=Sampling(temperature=0.0, max_tokens=3))

    tree = play(runner(scripted(lambda _: "a")), script)
    assert tree.source[tree.kind == Kind.ACTION].tolist() == [Source.GREEDY]
    assert not tree.sampled.any()


def test_a_place_in_which_nothing_was_done_ends_a_path_and_what_was_written_there_is_on_none() -> None:
    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        after = await rollout.execute(await written(rollout, root, branch=0))
        assert isinstance(after, Cursor)
        for branch in range(2):
            await written(rollout, after, branch=branch)
        await written(rollout, root, branch=1)

    tree = play(runner(scripted(lambda _: "a")), script)
    (leaf,) = counted(tree).tolist()
    assert tree.outcome[leaf] == Outcome.TRUNCATED
    assert (tree.success[leaf], tree.truncated_by[leaf]) == (Ternary.NO, TruncatedBy.EXPLORER)
    assert tree.kind[path(tree, leaf)].tolist() == [Kind.PROMPT, Kind.ACTION, Kind.OBSERVATION, Kind.OBSERVATION]
    assert len(leaves(tree)) == 4


def test_questions_are_paid_for_and_leave_no_trace() -> None:
    engine = scripted(lambda _: "yes")

    async def script(rollout: Rollout) -> None:
        root = await rollout.root()
        answer = await rollout.ask(Query(prompt="is it good?", read=Text(), system="judge", name=("judge", 1)))
        assert answer.value == "yes"
        assert rollout.budget.spent == Usage(tokens=4, calls=1)
        with pytest.raises(BudgetExceeded, match=r"got an operation that exceeds Limits\.tree_calls"):
            await rollout.ask(Query(prompt="again?", read=Text(), name=("judge", 2)))
        with pytest.raises(ValueError, match="got an agent without a critic"):
            await rollout.value(root)

    assert play(runner(engine, limits=Limits(tree_calls=1)), script).nodes == 1
    assert ["".join(map(chr, request.prompt_tokens)) for request in engine.requests] == ["{judge: }{is it good?}"]


def test_the_seed_of_a_question_is_that_of_its_name() -> None:
    engine = scripted(lambda _: "yes")

    async def script(rollout: Rollout) -> None:
        await rollout.root()
        for name in (("judge", 1), ("judge", 2), ("judge", 1)):
            await rollout.ask(Query(prompt="is it good?", read=Text(), name=name))

    play(runner(engine), script)
    first, second, again = (request.seed for request in engine.requests)
    assert first == again != second


def test_a_fault_costs_the_call() -> None:
    async def script(rollout: Rollout) -> None:
        assert await rollout.sample(await rollout.root()) is Outcome.FAILED
        assert rollout.budget.spent == Usage(calls=1)

    tree = play(runner(Scripted(script=lambda _: InjectedFault.FAULT)), script)
    assert tree.outcome.tolist() == [Outcome.OPEN, Outcome.FAILED]


def test_what_may_have_to_be_replayed_is_set_aside() -> None:
    """Going on costs one step; going on from elsewhere costs every step up to there again."""

    async def script(rollout: Rollout) -> None:
        places = [await rollout.root()]
        for _ in range(3):
            at = await rollout.advance(places[-1], action="b")
            assert isinstance(at, Cursor)
            places.append(at)
        assert rollout.budget.spent.turns == 3
        # From the second place it takes 1 + 1 more, which leaves 1; from the third it may take 3.
        assert isinstance(await rollout.advance(places[1], branch=1, action="b"), Cursor)
        assert (rollout.budget.spent.turns, rollout.budget.replayed) == (5, 1)
        assert await rollout.advance(places[2], branch=1, action="b") is Outcome.TRUNCATED
        assert rollout.budget.spent.turns == 5

    host = InProcessHost(env=Replay(env=World(length=9), keep=1))
    play(runner(scripted(lambda _: "b"), host, limits=Limits(tree_turns=6)), script)


@settings(max_examples=50)
@given(
    limit=strategies.integers(1, 40),
    jobs=strategies.lists(strategies.tuples(strategies.integers(1, 8), strategies.integers(0, 8)), max_size=20),
)
def test_a_ledger_is_never_overdrawn_and_leaves_nothing_unused(limit: int, jobs: list[tuple[int, int]]) -> None:
    async def main() -> None:
        budget = Budget(Limits(tree_tokens=limit))
        refused: list[int] = []

        async def job(most: int, real: int) -> None:
            try:
                async with budget.reserve(Usage(tokens=most)) as cost:
                    await asyncio.sleep(0)
                    cost.tokens = min(most, real)
            except BudgetExceeded:
                refused.append(most)

        running = [asyncio.create_task(job(*each)) for each in jobs]
        for _ in range(10 * len(jobs) + 10):
            await asyncio.sleep(0)
        assert all(each.done() for each in running), "what waits for budget is woken"
        assert budget.spent.tokens <= limit
        assert all(budget.spent.tokens + most > limit for most in refused)
        done = sum(min(job) for job in jobs) if not refused else budget.spent.tokens
        assert budget.spent.tokens == done

    asyncio.run(main())
