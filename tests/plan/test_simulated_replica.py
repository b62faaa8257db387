"""A simulated replica: batches, prefix reuse, the limits of slots and cache."""

from collections.abc import Callable

import pytest
from tests.plan.works import Constant, chain

from bough.plan import Clock, Deployment, Replica, TurnRequest, TurnWork, simulate


def request(
    done: Callable[[], None],
    *,
    tree: str = "a",
    turn: int = 0,
    parent: int = -1,
    new: int = 0,
    context: int = 10,
    sampled: int = 1,
    branches: int = 0,
) -> TurnRequest:
    work = TurnWork(parent=parent, new_tokens=new, context_tokens=context, sampled_tokens=sampled)
    return TurnRequest(tree=tree, turn=turn, work=work, prompt_tokens=10, branches=branches, extra_s=0.0, done=done)


def test_steps_between_two_changes_of_the_batch_take_the_time_of_their_batch() -> None:
    clock, ends = Clock(), list[float]()
    replica = Replica(clock, Constant(prefill=1.0, decode=0.1, per_turn=0.02), slots=8, cache_tokens=1000)
    replica.submit(request(lambda: ends.append(clock.now), sampled=5))
    clock.after(0.5, replica.submit, request(lambda: ends.append(clock.now), tree="b", sampled=11))
    clock.run()
    # The second turn waits for the pass of the first, which then decodes one step alone.
    shared = 1.0 + 0.12 + 1.0 + 3 * 0.14
    assert ends == pytest.approx([shared, shared + 7 * 0.12])
    assert replica.busy_s == pytest.approx(clock.now)
    assert replica.sampled_tokens == 16


def test_a_turn_that_arrives_during_decode_joins_at_the_end_of_a_step() -> None:
    clock, ends = Clock(), list[float]()
    replica = Replica(clock, Constant(prefill=1.0, decode=0.1), slots=8, cache_tokens=1000)
    replica.submit(request(lambda: ends.append(clock.now), sampled=11))
    clock.after(1.25, replica.submit, request(lambda: ends.append(clock.now), tree="b", sampled=2))
    clock.run()
    # It joins at 1.3, in a pass that decodes the other turn too.
    assert ends == pytest.approx([1.3 + 1.1 + 0.1, 1.0 + 10 * 0.1 + 1.0])


def test_a_prompt_is_computed_once_by_the_episodes_of_a_tree() -> None:
    clock = Clock()
    replica = Replica(clock, Constant(prefill=1.0), slots=8, cache_tokens=1000)
    for _ in range(3):
        replica.submit(request(lambda: None))
    replica.submit(request(lambda: None, tree="b"))
    clock.run()
    assert replica.computed_tokens == 20


def test_slots_bound_the_batch() -> None:
    plan = Deployment(slots=2, batch_tasks=6, workers=6)
    found = simulate(plan, Constant(decode=0.1), [chain(1, sampled=11)], batches=1)
    # Three turns after each other in each slot. A turn joins in a pass of the other slot's turn, which takes a step.
    assert found.grow_s == pytest.approx(3.3)
    wide = Deployment(slots=6, batch_tasks=6, workers=6)
    # The first turn is alone in its pass, the second one joins the next, and all others the third.
    assert simulate(wide, Constant(decode=0.1), [chain(1, sampled=11)], batches=1).grow_s == pytest.approx(1.2)


@pytest.mark.parametrize(("tokens", "computed"), [(1000, 6), (60, 6), (45, 35)])
def test_a_dropped_context_is_computed_again(tokens: int, computed: int) -> None:
    """After the first turn 10 + 25 tokens wait; another tree takes 10 + 6, and the next turn needs 6 or 35."""
    clock, seen = Clock(), list[int]()
    replica = Replica(clock, Constant(prefill=1.0), slots=8, cache_tokens=tokens)

    def then() -> None:
        before = replica.computed_tokens
        replica.submit(
            request(
                lambda: seen.append(replica.computed_tokens - before), turn=1, parent=0, new=6, context=45, sampled=0
            )
        )

    replica.submit(request(lambda: None, sampled=5, context=30, branches=1))
    clock.after(10.0, replica.submit, request(lambda: None, tree="b", sampled=6))
    clock.after(20.0, then)
    clock.run()
    assert seen == [computed]


def test_a_turn_waits_until_the_cache_has_room() -> None:
    clock, ends = Clock(), list[float]()
    replica = Replica(clock, Constant(prefill=0.0, decode=1.0), slots=8, cache_tokens=40)
    for tree in "ab":
        replica.submit(request(lambda: ends.append(clock.now), tree=tree, sampled=11))
    replica.submit(request(lambda: ends.append(clock.now), tree="c", context=20, sampled=11))
    clock.run()
    assert ends[0] == pytest.approx(10.0)
    assert ends[-1] >= 20.0


def test_more_cache_and_more_replicas_are_not_slower() -> None:
    rates = Constant(prefill=0.05, decode=0.01, per_turn=0.002)
    trees = [chain(6, episodes=4, sampled=9, seen=20)]
    by_cache = [
        simulate(Deployment(cache_tokens=tokens, workers=9, env_step_s=0.05, batch_tasks=8), rates, trees)
        for tokens in (300, 600, 1200, 10_000)
    ]
    assert [found.computed_tokens for found in by_cache] == sorted((f.computed_tokens for f in by_cache), reverse=True)
    assert by_cache[0].computed_tokens > 1.2 * by_cache[-1].computed_tokens
    by_replicas = [
        simulate(Deployment(replicas=count, workers=99, env_step_s=0.05, batch_tasks=16), rates, trees).seconds
        for count in (1, 2, 4, 8)
    ]
    assert by_replicas == sorted(by_replicas, reverse=True)
    assert by_replicas[0] > 1.5 * by_replicas[-1]
