"""The simulation against results of queueing theory that are known exactly."""

import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.works import Constant, chain

from bough.plan import Clock, Deployment, Queue, simulate


def test_the_mean_wait_of_an_m_d_1_queue() -> None:
    """Pollaczek-Khinchine: rho s / (2 (1 - rho))."""
    clock, rng, rho, count = Clock(), random.Random(0), 0.7, 60_000
    queue, waits = Queue(clock, 1), list[float]()

    def served(arrived: float) -> None:
        waits.append(clock.now - arrived - 1.0)

    def arrive(left: int) -> None:
        queue.put(1.0, served, clock.now)
        if left:
            clock.after(rng.expovariate(rho), arrive, left - 1)

    arrive(count)
    clock.run()
    assert len(waits) == count + 1
    assert sum(waits) / len(waits) == pytest.approx(rho / (2 * (1 - rho)), rel=0.05)
    assert queue.busy_s / clock.now == pytest.approx(rho, rel=0.02)


def test_two_servers_halve_the_time_of_equal_work() -> None:
    ends = []
    for servers in (1, 2, 3):
        clock = Clock()
        queue, done = Queue(clock, servers), list[int]()
        for number in range(6):
            queue.put(1.0, partial(done.append, number))
        clock.run()
        assert done == list(range(6))
        ends.append(clock.now)
    assert ends == [6.0, 3.0, 2.0]


@pytest.mark.parametrize(("loop_s", "env_s"), [(0.2, 0.5), (0.5, 0.2)])
def test_a_tandem_queue_takes_a_fill_and_then_its_slower_stage(loop_s: float, env_s: float) -> None:
    plan = Deployment(loop_s=loop_s, env_step_s=env_s, workers=1, batch_tasks=7)
    found = simulate(plan, Constant(), [chain(1)], batches=1)
    assert found.grow_s == pytest.approx(loop_s + env_s + 6 * max(loop_s, env_s))


@pytest.mark.parametrize("episodes", [1, 2, 3, 6, 20])
def test_a_closed_network_reaches_the_smaller_of_its_two_bounds(episodes: int) -> None:
    """N episodes between one server of s and a delay of e: N / (s + e) turns a second, at most 1 / s."""
    turns, engine_s, env_s = 200, 1.0, 4.0
    plan = Deployment(slots=1, workers=episodes, env_step_s=env_s, batch_tasks=episodes)
    found = simulate(plan, Constant(prefill=engine_s), [chain(turns)], batches=1)
    rate = episodes * turns / found.grow_s
    assert rate == pytest.approx(min(episodes / (engine_s + env_s), 1 / engine_s), rel=0.03)
    assert found.busy["engine"] == pytest.approx(rate * engine_s)
    assert found.busy["environment"] == pytest.approx(rate * env_s / episodes)


def test_a_step_without_staleness_is_the_sum_of_its_stages() -> None:
    plan = Deployment(loop_s=0.1, env_step_s=0.5, batch_tasks=1)
    rates = Constant(prefill=0.3, decode=0.01, update=2.0, publish=0.7)
    found = simulate(plan, rates, [chain(3, sampled=11)], batches=3)
    assert found.seconds / 3 == pytest.approx(3 * (0.1 + 0.3 + 10 * 0.01 + 0.5) + 2.0 + 0.7)
    assert found.busy["learner"] == pytest.approx(2.0 * 3 / found.seconds)
    assert (found.episodes, found.sampled_tokens) == (3, 99)


@pytest.mark.parametrize("update", [1.0, 5.0])
def test_with_staleness_1_a_step_is_the_longer_of_growth_and_update(update: float) -> None:
    plan = Deployment(env_step_s=0.5, batch_tasks=1, staleness=1)
    found = simulate(plan, Constant(update=update, publish=0.25), [chain(6)], batches=4)
    assert found.seconds / 4 == pytest.approx(max(3.0, update) + 0.25)


def test_no_batch_starts_before_its_version() -> None:
    """Staleness 2 lets a third batch grow during a slow update, and no further one."""
    plan = Deployment(env_step_s=1.0, batch_tasks=1, staleness=2, growing_batches=4, workers=9)
    found = simulate(plan, Constant(update=10.0), [chain(2)], batches=5)
    assert found.seconds / 5 == pytest.approx(10.0)
    fast = simulate(plan, Constant(update=0.5), [chain(2)], batches=30)
    # Three batches of 2 s grow at a time, and each update takes 0.5 s: a cycle of 2.5 s has three batches.
    assert fast.seconds / 30 == pytest.approx(2.5 / 3, rel=0.1)
    one = simulate(
        Deployment(env_step_s=1.0, batch_tasks=1, staleness=2, workers=9), Constant(update=0.5), [chain(2)], batches=30
    )
    assert one.seconds / 30 == pytest.approx(2.0, rel=0.1)


def test_work_in_the_rollout_loop_delays_an_engine_in_it() -> None:
    plan = Deployment(inline=True, workers=0, loop_s=0.1, env_step_s=0.5, batch_tasks=4)
    found = simulate(plan, Constant(prefill=0.0), [chain(3)], batches=1)
    assert found.grow_s == pytest.approx(4 * 3 * 0.6)
    apart = Deployment(inline=True, workers=4, loop_s=0.1, env_step_s=0.5, batch_tasks=4)
    assert simulate(apart, Constant(), [chain(3)], batches=1).grow_s < found.grow_s / 2


def test_a_worker_waits_for_the_pass_of_an_engine_in_the_rollout_loop() -> None:
    """Five turns execute steps of 0.3 s while a sixth decodes in two passes of 1 s."""
    many = [chain(1, sampled=1)] * 5 + [chain(1, sampled=3)]
    inline, apart = (Deployment(inline=each, workers=1, env_step_s=0.3, batch_tasks=6) for each in (True, False))
    # The first two steps end during the passes, and their worker is idle until the end of the pass.
    found = simulate(inline, Constant(decode=1.0), many, batches=1)
    assert found.grow_s == pytest.approx(2 + 4 * 0.3)
    assert simulate(apart, Constant(decode=1.0), many, batches=1).grow_s < found.grow_s - 0.2


def test_the_rollout_loop_is_between_two_steps_of_a_worker() -> None:
    """The loop's 0.1 s for each turn: all five before the second step, and one after each step."""
    plan = Deployment(inline=True, workers=1, env_step_s=0.3, loop_s=0.1, batch_tasks=5)
    found = simulate(plan, Constant(), [chain(1, sampled=1)], batches=1)
    assert found.grow_s == pytest.approx(0.5 + 0.1 + 4 * 0.4)


def test_log_normal_steps_have_the_mean_and_the_variation() -> None:
    plan = Deployment(env_step_s=2.0, variation=0.5, batch_tasks=1)
    found = simulate(plan, Constant(), [chain(4000)], batches=1)
    assert found.grow_s / 4000 == pytest.approx(2.0, rel=0.05)
    wide = Deployment(env_step_s=2.0, variation=3.0, batch_tasks=64, workers=64)
    steady = Deployment(env_step_s=2.0, batch_tasks=64, workers=64)
    slowest = [simulate(each, Constant(), [chain(2)], batches=1).grow_s for each in (wide, steady)]
    assert slowest[0] > 2 * slowest[1]


def test_equal_seeds_give_equal_results() -> None:
    plan = Deployment(replicas=3, workers=2, env_step_s=0.1, variation=1.0, batch_tasks=9)
    rates, trees = Constant(prefill=0.01, decode=0.01, update=1.0), [chain(2, episodes=3), chain(5, sampled=7)]
    assert simulate(plan, rates, trees, seed=1) == simulate(plan, rates, trees, seed=1)
    assert simulate(plan, rates, trees, seed=1) != simulate(plan, rates, trees, seed=2)


@settings(max_examples=25)
@given(
    replicas=st.integers(1, 4),
    workers=st.integers(1, 4),
    tasks=st.integers(1, 12),
    env_s=st.floats(0.001, 1.0),
    prefill=st.floats(0.001, 1.0),
    decode=st.floats(0.0, 0.1),
    staleness=st.integers(0, 2),
)
def test_no_stage_is_busier_than_the_time_and_no_token_is_lost(
    replicas: int, workers: int, tasks: int, env_s: float, prefill: float, decode: float, staleness: int
) -> None:
    plan = Deployment(replicas=replicas, workers=workers, env_step_s=env_s, batch_tasks=tasks, staleness=staleness)
    tree = chain(3, episodes=2, sampled=5)
    found = simulate(plan, Constant(prefill=prefill, decode=decode, update=0.1, publish=0.1), [tree], batches=6)
    assert found.episodes == 6 * tasks * 2
    assert found.learned_tokens == 6 * tasks * tree.unique_tokens
    assert all(0 <= share <= 1 + 1e-9 for share in found.busy.values())
    if not staleness:
        assert found.sampled_tokens == 6 * tasks * tree.trained_tokens
        assert found.busy["environment"] * workers * found.seconds == pytest.approx(6 * tasks * tree.steps * env_s)
