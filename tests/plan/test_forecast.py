"""Forecasts: rates of devices, fits, properties over numbers of devices, and the command."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.works import chain, measured
from tests.small import run as small_run
from tests.talk import Bough

from bough.config.config import ConfigError
from bough.plan import (
    Cluster,
    DeviceRates,
    Devices,
    Efficiency,
    Forecast,
    MeasuredRates,
    MeasuredRun,
    TreeWork,
    TurnWork,
    count_tokens,
    fit_efficiency,
    fit_exchange_s,
    fit_loop_s,
    forecast,
    largest_share,
    measure_stages,
    measured_deployment,
    model_size,
    simulate,
)
from bough.store import RunDirectory, read_metrics
from bough.train import Checkpointing, start

CONFIG: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
}
SIZE = model_size(CONFIG, name="0.6B")
TREES = [chain(4, episodes=8, sampled=60, seen=80, prompt=300), chain(6, episodes=8, sampled=30, seen=200, prompt=300)]
H100: dict[str, Any] = {
    "kind": "H100 SXM",
    "count": 512,
    "memory_gib": 80.0,
    "peak_tflops": 989.0,
    "bandwidth_gbs": 3350.0,
    "link_gbs": 50.0,
    "price_per_hour": 2.0,
}


def cluster(**tables: dict[str, Any]) -> Cluster:
    return Cluster.model_validate({"devices": H100} | {"environment": {"workers": 4096}} | tables)


def rates(**changes: Any) -> DeviceRates:
    given: dict[str, Any] = {
        "devices": Devices(**H100),
        "efficiency": Efficiency(learner=0.5, engine=0.5, bandwidth=0.5, link=0.5, pass_s=0.0),
        "model": SIZE,
        "learner_model": SIZE.in_dtype("float32"),
        "run": measured(TREES),
        "devices_per_replica": 1,
        "ranks": 1,
        "sharded": False,
        "in_turn": False,
    }
    return DeviceRates(**(given | changes))


def decode_s(rates: DeviceRates, turns: int, context_tokens: float) -> float:
    return rates.pass_s(new_tokens=0, joined=0, decoding=turns, pairs=context_tokens, context_tokens=context_tokens)


def test_a_decode_step_takes_the_longer_of_its_traffic_and_its_arithmetic() -> None:
    one = rates()
    assert decode_s(one, 1, 0) == pytest.approx(SIZE.weight_bytes / (3350e9 / 2))
    full = decode_s(one, 64, 1e6)
    assert full == pytest.approx((SIZE.weight_bytes + 1e6 * SIZE.kv_bytes) / (3350e9 / 2))
    slow = rates(devices=Devices(**(H100 | {"peak_tflops": 1.0})))
    operations = SIZE.forward_operations(tokens=64, heads=64, pairs=10**6)
    assert decode_s(slow, 64, 1e6) == pytest.approx(operations / 0.5e12)
    assert decode_s(rates(efficiency=Efficiency(pass_s=1.0)), 1, 0) > 1


def test_new_tokens_and_running_turns_share_a_pass() -> None:
    operations = SIZE.forward_operations(tokens=8006, heads=10, pairs=16_000_000)
    found = rates().pass_s(new_tokens=8000, joined=4, decoding=6, pairs=16e6, context_tokens=12e3)
    assert found == pytest.approx(operations / (989e12 / 2))


def test_a_replica_on_two_devices_is_faster_by_less_than_two() -> None:
    one, two = decode_s(rates(), 64, 1e6), decode_s(rates(devices_per_replica=2), 64, 1e6)
    assert 1.5 < one / two < 2


def test_an_update_takes_the_operations_of_the_largest_rank_and_the_exchange() -> None:
    tree = TREES[0]
    own = SIZE.arithmetic.operations(tokens=tree.unique_tokens, trained=tree.trained_tokens, pairs=tree.pairs)
    alone = own / (989e12 / 2)
    assert rates().update_s([tree] * 4) == pytest.approx(4 * alone)
    exchange = 2 * 4 * SIZE.parameters * 3 / 4 / 25e9
    assert rates(ranks=4).update_s([tree] * 4) == pytest.approx(alone + exchange)
    # The fifth tree is divided among the ranks.
    assert 1.25 * alone <= rates(ranks=4).update_s([tree] * 5) - exchange < 1.75 * alone
    assert rates(ranks=4, sharded=True).update_s([tree] * 4) == pytest.approx(alone + 1.5 * exchange)
    again = rates(run=measured(TREES, passes=3, optimizer_steps=6), ranks=4)
    assert again.update_s([tree] * 4) == pytest.approx(3 * alone + 6 * exchange)
    assert rates(run=measured(TREES, reference=True)).update_s([tree]) > 1.2 * alone


@pytest.mark.parametrize(
    ("changes", "ranks", "tokens_per_s"),
    [
        (
            {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32},
            8,
            27_437,
        ),
        ({}, 1, 11_896),
    ],
)
def test_the_default_efficiency_gives_the_published_throughputs(
    changes: dict[str, Any], ranks: int, tokens_per_s: float
) -> None:
    """prime-rl's benchmarks of its trainer: Qwen3-4B on 8 H200 and Qwen3-0.6B on one H100, texts of 16k tokens."""
    size = model_size(CONFIG | changes, name="published")
    text = TreeWork(
        prompt_tokens=0, turns=(), episodes=1, unique_tokens=2**14, trained_tokens=2**14, pairs=2**14 * (2**14 + 1) // 2
    )
    found = rates(model=size, efficiency=Efficiency(), ranks=ranks).update_s([text] * 64)
    assert 64 * 2**14 / found == pytest.approx(tokens_per_s, rel=0.15)


def test_the_weights_are_published_over_the_link() -> None:
    run = measured(TREES, other_s=0.8)
    assert rates(run=run).publish_s([TREES[0]] * 16) == pytest.approx(SIZE.weight_bytes / 25e9 + 2 * 0.8)
    assert rates(in_turn=True).publish_s([]) == pytest.approx(SIZE.weight_bytes / (3350e9 / 2))


def test_the_largest_share_of_ranks() -> None:
    assert largest_share([], 2, count_tokens) == 1.0
    # Three episodes of 10 + 20 tokens after a prompt of 30: two ranks have 30 + 60 and 30 + 30 of 120 tokens.
    turn = TurnWork(parent=-1, new_tokens=10, context_tokens=40, sampled_tokens=20)
    tree = TreeWork(prompt_tokens=30, turns=(turn,) * 3, episodes=3, unique_tokens=120, trained_tokens=60, pairs=0)
    assert [largest_share([tree], ranks, count_tokens) for ranks in (1, 2, 3, 8)] == [1, 90 / 120, 0.5, 0.5]
    assert largest_share([tree] * 8, 4, count_tokens) == 0.25


@settings(max_examples=12)
@given(
    count=st.integers(2, 12),
    share=st.sampled_from([0.5, 0.75]),
    env_s=st.sampled_from([0.0, 0.05, 0.5]),
    staleness=st.integers(0, 1),
)
def test_twice_the_devices_give_no_fewer_episodes(count: int, share: float, env_s: float, staleness: int) -> None:
    """For a batch that is large for both numbers; routing may cost a few percent."""
    plan = cluster(
        layout={"generation": share},
        environment={"workers": 4096, "step_s": env_s},
        schedule={"staleness": staleness, "batch_tasks": 96, "loop_s": 0.0},
    )
    few, many = forecast(measured(TREES), plan, SIZE, [count, 2 * count], batches=1)
    assert many.episodes_per_hour >= 0.97 * few.episodes_per_hour


@settings(max_examples=10)
@given(gib=st.floats(9.0, 40.0), more=st.floats(1.0, 3.0))
def test_more_memory_never_gives_fewer_episodes(gib: float, more: float) -> None:
    found: list[Forecast] = []
    for memory in (gib, gib * more):
        plan = cluster(devices=H100 | {"memory_gib": memory}, schedule={"batch_tasks": 64, "loop_s": 0.0})
        found += forecast(measured(TREES, micro_tokens=64), plan, SIZE, [2], batches=1)
    if found[1].problem:
        assert found[0].problem
    elif not found[0].problem:
        assert found[1].episodes_per_hour >= 0.99 * found[0].episodes_per_hour


def test_a_small_cache_costs_episodes() -> None:
    """The weights take 1.1 GiB of an engine's device."""
    found = []
    for memory in (8.5, 60.0):
        devices = H100 | {"memory_gib": memory}
        layout = {"generation": 0.5, "sharded": True, "learner_dtype": "bfloat16"}
        plan = cluster(devices=devices, layout=layout, schedule={"batch_tasks": 256, "loop_s": 0.0})
        found += forecast(measured(TREES, micro_tokens=64), plan, SIZE, [2], batches=1)
    assert not any(each.problem for each in found)
    assert (
        found[0].new_tokens_per_s / found[0].episodes_per_hour >= found[1].new_tokens_per_s / found[1].episodes_per_hour
    )
    assert found[0].episodes_per_hour < found[1].episodes_per_hour


def test_what_does_not_fit_is_not_simulated() -> None:
    (found,) = forecast(measured(TREES), cluster(devices=H100 | {"memory_gib": 2.0}), SIZE, [8])
    assert "got 1.8 GiB; need" in found.problem
    assert found.busy is None
    longest = measured([chain(2, seen=900_000)])
    (found,) = forecast(longest, cluster(devices=H100 | {"memory_gib": 40.0}), SIZE, [8])
    assert "the longest context" in found.problem
    (found,) = forecast(measured(TREES), cluster(layout={"devices_per_replica": 8}), SIZE, [4])
    assert "got 4 devices; need 8 for a replica" in found.problem


def test_the_cost_is_the_price_of_all_devices() -> None:
    (found,) = forecast(measured(TREES), cluster(), SIZE, [16])
    assert found.cost == pytest.approx(1000 * 16 * 2.0 / found.episodes_per_hour)


@pytest.mark.parametrize(
    ("tables", "stage"),
    [
        ({"schedule": {"loop_s": 0.5, "batch_tasks": 64}}, "loop"),
        ({"schedule": {"loop_s": 0.0, "batch_tasks": 64}, "environment": {"workers": 2, "step_s": 1.0}}, "environment"),
        ({"schedule": {"loop_s": 0.0, "batch_tasks": 64}, "environment": {"workers": 4096, "step_s": 9.0}}, "latency"),
        ({"schedule": {"loop_s": 0.0, "batch_tasks": 64}, "efficiency": {"learner": 0.0001}}, "learner"),
        ({"schedule": {"loop_s": 0.0, "batch_tasks": 512}, "efficiency": {"bandwidth": 0.001}}, "engine"),
    ],
)
def test_the_bottleneck_is_the_stage_made_slow(tables: dict[str, Any], stage: str) -> None:
    (found,) = forecast(measured(TREES, env_step_s=0.0), cluster(**tables), SIZE, [8], batches=1)
    assert found.bottleneck == stage


@pytest.mark.parametrize("counts", [[0], [513], [8, -1]])
def test_numbers_of_devices_out_of_range(counts: list[int]) -> None:
    with pytest.raises(ConfigError, match=r"--devices: got .*; need 1 to 512"):
        forecast(measured(TREES), cluster(), SIZE, counts)


@pytest.mark.parametrize(("engines", "workers"), [(0, 0), (0, 2), (1, 4)])
def test_growth_is_fitted_to_the_measured_seconds(engines: int, workers: int) -> None:
    run = measured([chain(5, sampled=9)], engines=engines, workers=workers, env_step_s=0.02, pass_s=0.004)
    rates = MeasuredRates(run=run, ranks=1)

    def grow_s(loop_s: float) -> float:
        plan = measured_deployment(run, workers=workers, staleness=0, loop_s=loop_s)
        return simulate(plan, rates, run.trees, batches=1).grow_s

    seen = replace(run, grow_s=grow_s(0.03))
    assert grow_s(fit_loop_s(seen)) == pytest.approx(seen.grow_s, rel=0.02)
    assert seen.grow_s > 1.2 * grow_s(0.0)
    assert fit_loop_s(replace(run, grow_s=grow_s(0.0) / 2)) == 0.0


def test_efficiencies_are_fitted_to_a_measured_run() -> None:
    """A run as slow as given efficiencies has these; one that is faster than the peak rates is refused."""
    real = Efficiency(learner=0.2, engine=0.3, pass_s=0.004)
    known, many = rates(efficiency=real), 10**6
    arithmetic_s = SIZE.forward_operations(tokens=many, heads=0, pairs=0) / many / (989e12 * real.engine)
    weights_s = SIZE.weight_bytes / (3350e9 * real.bandwidth)
    run = measured(TREES)
    run = replace(
        run,
        learn_s=known.update_s(run.trees) / sum(tree.unique_tokens for tree in run.trees),
        token_s=arithmetic_s,
        pass_s=weights_s + real.pass_s,
    )
    assert fit_efficiency(run, cluster(), SIZE).model_dump() == pytest.approx(real.model_dump(), rel=1e-3)
    twice = cluster(devices=H100 | {"learner_tflops": 2 * 989.0})
    assert fit_efficiency(run, twice, SIZE).learner == pytest.approx(0.1, rel=1e-3)
    with pytest.raises(ConfigError, match=r"reaches 200% of the learner's peak rate and 30% of the engine's"):
        fit_efficiency(replace(run, learn_s=run.learn_s / 10), cluster(), SIZE)


def test_the_exchange_of_ranks_is_fitted_to_a_measured_run() -> None:
    run = measured(TREES)
    known, tokens = MeasuredRates(run=run, ranks=2, exchange_s=0.25), sum(tree.unique_tokens for tree in TREES)
    batches = [TREES[first : first + run.batch_tasks] for first in range(0, len(TREES), run.batch_tasks)]
    pair = replace(run, ranks=2, learn_s=2 * sum(map(known.update_s, batches)) / tokens)
    steps = len(batches) * run.batch_tasks / len(TREES)
    assert fit_exchange_s(run, pair) == pytest.approx(0.25 * steps)
    assert fit_exchange_s(run, replace(pair, learn_s=0.0)) == 0.0
    assert MeasuredRates(run=run, ranks=1, exchange_s=0.25).update_s(TREES) == MeasuredRates(run=run, ranks=1).update_s(
        TREES
    )
    with pytest.raises(ConfigError, match="got runs with 1 and 1 ranks"):
        fit_exchange_s(run, run)
    own = {"devices": {"kind": "measured", "count": 2, "memory_gib": 80.0}, "layout": {"in_turn": True}}
    found = [
        forecast(run, cluster(**own, efficiency=given), SIZE, [2])[0].step_s for given in ({}, {"exchange_s": 0.5})
    ]
    assert found[1] - found[0] == pytest.approx(0.5 * run.optimizer_steps, rel=0.1)


def test_the_learner_has_a_data_type_and_a_peak_rate_of_its_own() -> None:
    """Float32, as training of all weights needs, beside engines in the type of the model."""
    (found,) = forecast(measured(TREES), cluster(), SIZE, [8], batches=1)
    half = cluster(layout={"learner_dtype": "bfloat16"})
    (smaller,) = forecast(measured(TREES), half, SIZE, [8], batches=1)
    assert found.learner.weights == 4 * SIZE.parameters == 2 * smaller.learner.weights
    assert found.learner.optimizer == 2 * smaller.learner.optimizer
    assert found.engine == smaller.engine
    slower = rates(devices=Devices(**H100 | {"learner_tflops": 989.0 / 4}))
    assert slower.update_s(TREES) == pytest.approx(4 * rates().update_s(TREES))
    exchanged = rates(ranks=2).update_s(TREES) - rates(ranks=2, learner_model=SIZE).update_s(TREES)
    assert exchanged == pytest.approx(measured(TREES).optimizer_steps * SIZE.weight_bytes / (50e9 * 0.5))


def test_threads_that_share_updates_do_not_make_passes_faster(tmp_path: Path) -> None:
    """Seconds of a token in a pass are a part of those on one thread."""
    directory = start(small_run().replace(steps=2, name="one"), tmp_path, terminal=False)
    rows = read_metrics(directory.metrics)

    def measured_with(**metrics: float) -> MeasuredRun:
        changed = [row | (metrics if row.get("phase") == "rl" else {}) for row in rows]
        directory.metrics.write_text("".join(f"{json.dumps(row)}\n" for row in changed))
        return measure_stages(directory)

    # A slow engine, whose seconds do not limit those of a token.
    slow = {"time/grow/engine_s": 1e6}
    before = measured_with(**slow)
    after = measured_with(**slow, **{"time/learn/0_s": 1.0, "time/learn/1_s": 1.0})
    assert after.learn_s == before.learn_s
    assert after.token_s == pytest.approx(2 * before.token_s)


def test_a_run_is_forecast_from_its_own_measurements(tmp_path: Path) -> None:
    run = small_run().replace(steps=6, checkpointing=Checkpointing(every=1, keep=2, trees_every=1))
    directory = start(run, tmp_path, terminal=False)
    found = measure_stages(directory)
    rows = [row for row in read_metrics(directory.metrics) if row.get("phase") == "rl"]
    assert len(found.trees) == 6 * 3
    assert sum(tree.trained_tokens for tree in found.trees) == sum(row["speed/sampled_tokens"] for row in rows)
    assert sum(tree.steps for tree in found.trees) == sum(row["speed/actions"] for row in rows)
    assert (found.batch_tasks, found.engines, found.workers, found.optimizer_steps) == (3, 0, 0, 2)
    assert 0.5 < found.update_share <= 1
    assert 0 < found.env_step_s < found.pass_s < found.grow_s < found.step_s
    passes = sum(row["time/grow/engine_passes"] for row in rows[1:])
    assert found.pass_s < sum(row["time/grow/engine_s"] for row in rows[1:]) / passes * 2
    plan = measured_deployment(found, workers=0, staleness=0, loop_s=fit_loop_s(found))
    simulated = simulate(plan, MeasuredRates(run=found, ranks=1), found.trees, batches=12)
    assert simulated.seconds / 12 == pytest.approx(found.step_s, rel=0.35)


def test_the_command(bough: Bough, tmp_path: Path) -> None:
    start(small_run().replace(name="one", steps=2), tmp_path / "runs", terminal=False)
    lines = ["[devices]", *(f"{name} = {json.dumps(value)}" for name, value in H100.items())]
    (tmp_path / "h100.toml").write_text("\n".join(lines))
    out = bough("plan", "one", "--cluster", "h100.toml", "--devices", "1", "--devices", "8", folder=tmp_path).fine()
    for words in ("the model of one", "H100 SXM", "KV cache, GiB", "bottleneck", "cost of 1,000 episodes", "SIMULATED"):
        assert words in out
    out = bough("plan", "one", "--cluster", "h100.toml", "--devices", "1", "--calibrate", "one", folder=tmp_path).fine()
    assert re.search(r"Efficiencies of one.*\[efficiency\].*\nlearner = \S+\nengine = \S+\npass_s = ", out, re.DOTALL)
    bough("plan", "runs/one", "--cluster", "h100.toml", "--out", "plan.json", folder=tmp_path).fine()
    found = json.loads((tmp_path / "plan.json").read_text())
    own = ("plan", "one", "--cluster", "h100.toml", "--out", "runs/one/config.json")
    assert "runs/one itself (config.json)" in bough(*own, folder=tmp_path).error(1)
    assert [each["devices"] for each in found] == [1, 8, 64, 512]
    assert all(each["simulated"] and each["episodes_per_hour"] > 0 for each in found)
    (tmp_path / "own.toml").write_text('[devices]\nkind = "measured"\ncount = 2\nmemory_gib = 4\n')
    assert "measured" in bough("plan", "one", "--cluster", "own.toml", folder=tmp_path).fine()
    alone = ("plan", "one", "--cluster", "own.toml", "--calibrate", "one")
    assert "got runs with 1 and 1 ranks" in bough(*alone, folder=tmp_path).error(2)
    wrong = ("plan", "one", "--cluster", "h100.toml", "--devices", "0")
    assert "--devices: got 0; need 1 to" in bough(*wrong, folder=tmp_path).error(2)
    assert "need a TOML file" in bough("plan", "one", "--cluster", "none.toml", folder=tmp_path).error(2)
    assert "a folder that does not exist" in bough("plan", "two", "--cluster", "h100.toml", folder=tmp_path).error(1)


def test_a_run_without_steps_is_refused(bough: Bough, tmp_path: Path) -> None:
    start(small_run().replace(name="none", steps=0), tmp_path / "runs", terminal=False)
    (tmp_path / "own.toml").write_text('[devices]\nkind = "measured"\ncount = 2\nmemory_gib = 4\n')
    error = bough("plan", "none", "--cluster", "own.toml", folder=tmp_path).error(1)
    assert "got metrics without a step that samples and learns; need at least one" in error
    assert RunDirectory.open(tmp_path / "runs" / "none").metrics.is_file()
