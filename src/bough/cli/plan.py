"""`bough plan`: reads a run, a cluster and a model, and prints the forecasts as tables or JSON."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from bough.config.config import ConfigError
from bough.plan import (
    Cluster,
    DeviceMemory,
    Efficiency,
    Forecast,
    MeasuredRun,
    find_directory,
    fit_efficiency,
    fit_exchange_s,
    forecast,
    measure_stages,
    model_folder,
    read_cluster,
    read_model,
)
from bough.store import RunDirectory, check_output, write_json
from bough.units import GIB
from bough.view.numbers import percent, short

STAGES = ("engine", "environment", "loop", "learner", "publication")

RATES = (
    "new tokens/s",
    "sampled tokens/s",
    "learned tokens/s",
    *(f"{stage} busy" for stage in STAGES),
    "bottleneck",
    "seconds a batch",
    "episodes/hour",
    "cost of 1,000 episodes",
)
"""Rows of the table, from `_rates`."""


def print_plan(
    run: str,
    cluster: Path,
    model: Path | None,
    *,
    devices: Sequence[int],
    batches: int,
    seed: int,
    out: Path | None = None,
    calibrate: str | None = None,
) -> None:
    """Forecast and print.

    Args:
        run: A run directory, or the name of one.
        cluster: The TOML file.
        model: The model's configuration; None for the run's model.
        devices: Numbers of devices; () for the defaults.
        batches: Simulated batches.
        seed: Seed of the simulation.
        out: The JSON file for the forecasts; None for none.
        calibrate: A run on the cluster's kind of device, whose efficiencies are taken; None for those of the file.

    Raises:
        ConfigError: when an argument or a file is wrong.
        StoreError: when there is no such run, or it has no metrics or trees.
    """
    if batches < 1:
        raise ConfigError(f"--batches: got {batches}; need 1 or more; leave it out for 4")
    if out is not None:
        check_output(out)
    machines = read_cluster(cluster)
    directory = find_directory(run)
    size = read_model(model or model_folder(directory))
    measured = measure_stages(directory)
    if calibrate is not None:
        other = find_directory(calibrate)
        machines = machines.model_copy(update={"efficiency": _calibrated(measured, machines, other)})
    found = forecast(measured, machines, size, devices, batches=batches, seed=seed)
    model_name = size.name if model else f"the model of {measured.name}"
    title = f"SIMULATED: {model_name}, {size.parameters / 1e6:,.1f}M parameters, on {machines.devices.kind}"
    Console().print(tables(found, title))
    if calibrate is not None:
        print(f"Efficiencies of {calibrate}, for the table [efficiency] of {cluster}:")
        names = ("exchange_s",) if machines.devices.measured else ("learner", "engine", "pass_s")
        print("\n".join(f"{name} = {getattr(machines.efficiency, name):.3g}" for name in names))
    if out is not None:
        write_json(out, [record(each) for each in found])


def _calibrated(run: MeasuredRun, machines: Cluster, other: RunDirectory) -> Efficiency:
    """The efficiencies of a cluster, fitted to the run `other`; `run` is the planned one."""
    found = measure_stages(other)
    if machines.devices.measured:
        return machines.efficiency.model_copy(update={"exchange_s": fit_exchange_s(run, found)})
    return fit_efficiency(found, machines, read_model(model_folder(other)))


def record(found: Forecast) -> dict[str, object]:
    """A forecast as values that JSON can write; a number that does not exist is null."""
    values = dataclasses.asdict(found)
    plain = {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}
    return {"simulated": not found.problem, "fits": not found.problem, **plain}


def tables(found: Sequence[Forecast], title: str) -> Group:
    """A column for each number of devices: memory, rates, cost. Problems of clusters that do not fit are below."""
    table = Table("", title=title, title_style="bold")
    for each in found:
        table.add_column(str(each.devices), justify="right")
    table.add_row("engine replicas", *(str(each.division.replicas) for each in found))
    table.add_row("learner ranks", *(_ranks(each) for each in found), end_section=True)
    for part in (field.name for field in dataclasses.fields(DeviceMemory)):
        sizes = ((getattr(each.engine, part), getattr(each.learner, part)) for each in found)
        name = "KV cache" if part == "cache" else part
        table.add_row(f"{name}, GiB", *(f"{_gib(engine)} / {_gib(learner)}" for engine, learner in sizes))
    table.add_row("usable, GiB", *(_gib(each.usable) for each in found))
    table.add_row("fits", *map(_fits, found), end_section=True)
    for name, cells in zip(RATES, zip(*map(_rates, found), strict=True), strict=True):
        table.add_row(name, *cells)
    notes = [
        Text("Memory is of an engine's device / of a learner's device; rates and cost are SIMULATED."),
        Text("New tokens: of prompts and observations, computed by engines. Sampled tokens: of completions."),
        Text("Learned tokens: of packed trees in updates, where a shared prefix counts once."),
    ]
    notes += [Text(f"{each.devices} devices do not fit: {each.problem}") for each in found if each.problem]
    return Group(table, *notes)


def _ranks(each: Forecast) -> str:
    return f"{each.division.ranks}, in turn" if each.division.in_turn else str(each.division.ranks)


def _fits(each: Forecast) -> Text:
    return Text("no", style="bold red") if each.problem else Text("yes", style="green")


def _gib(size: float) -> str:
    return short(size / GIB) if size else "-"


def _rates(each: Forecast) -> list[str]:
    """The cells of `RATES`."""
    if each.busy is None:
        return ["-"] * len(RATES)
    tokens = (each.new_tokens_per_s, each.sampled_tokens_per_s, each.learned_tokens_per_s)
    busy = [percent(each.busy[stage]) for stage in STAGES]
    return [*map(short, tokens), *busy, each.bottleneck, *map(short, (each.step_s, each.episodes_per_hour, each.cost))]
