"""The cluster of a plan: devices, their division, efficiencies; read from a TOML file.

    [devices]
    kind = "H100 SXM"        # a label; "measured" takes all throughputs from the run
    count = 512
    memory_gib = 80
    peak_tflops = 989
    bandwidth_gbs = 3350
    link_gbs = 50
    price_per_hour = 2.5

    [layout]                 # with in_turn = true all devices generate, then all learn
    generation = 0.75        # share of the devices that generate
    devices_per_replica = 1

    [environment]
    workers = 256

Peak rates are those of the data sheet. `Efficiency` has the shares of them that are reached.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bough.config.config import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1)]

EXAMPLE = """[devices]
kind = "H100 SXM"
count = 512
memory_gib = 80
peak_tflops = 989
bandwidth_gbs = 3350
link_gbs = 50"""

MEASURED = "measured"
"""The kind of a device whose throughputs are those of the run."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Devices(_Table):
    """The devices of a cluster, all of one kind.

    Attributes:
        kind: A label, or "measured".
        count: Number of devices that exist.
        memory_gib: Memory of a device.
        peak_tflops: Peak rate of dense matrix products in the model's data type.
        learner_tflops: Peak rate in `Layout.learner_dtype`; `peak_tflops` if not given.
        bandwidth_gbs: Bandwidth of the memory.
        link_gbs: Bandwidth between devices, one direction, for gradients and weights.
        price_per_hour: Price of one device.
    """

    kind: str
    count: Count
    memory_gib: Positive
    peak_tflops: Positive | None = None
    learner_tflops: Positive | None = None
    bandwidth_gbs: Positive | None = None
    link_gbs: Positive | None = None
    price_per_hour: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    @property
    def measured(self) -> bool:
        """Whether all throughputs are those of the run."""
        return self.kind == MEASURED

    @model_validator(mode="after")
    def _rates(self) -> "Devices":
        missing = [name for name in ("peak_tflops", "bandwidth_gbs", "link_gbs") if getattr(self, name) is None]
        if missing and not self.measured:
            raise ValueError(
                f"got no {', '.join(missing)}; need the rates of the data sheet; add them, or set kind = 'measured'"
            )
        return self


class Layout(_Table):
    """The division of the devices between generation and learner.

    Attributes:
        in_turn: Whether all devices generate, then all learn. A single device always does.
        generation: Share of the devices that generate, without `in_turn`.
        devices_per_replica: Devices over which one copy of the engine's weights is split.
        slots: Turns that a replica decodes at a time.
        sharded: Whether weights, gradients and moments are divided over the learner's devices, as with
            `Execution.shard`.
        learner_dtype: Data type of the learner's weights, gradients and moments. Engines have the model's own.
    """

    in_turn: bool = False
    generation: Annotated[float, Field(gt=0, lt=1)] = 0.5
    devices_per_replica: Count = 1
    slots: Count = 256
    sharded: bool = False
    learner_dtype: Literal["float64", "float32", "bfloat16", "float16"] = "float32"


class Environment(_Table):
    """The processes that execute environments.

    Attributes:
        workers: Number of processes, each with one step at a time; 0 executes steps in the rollout loop.
        workers_per_device: Further processes for each device.
        step_s: Mean seconds of a step; the run's if not given.
        variation: Standard deviation of the seconds of a step over their mean. Steps are log-normal; 0 is constant.
    """

    workers: Annotated[int, Field(ge=0)] = 0
    workers_per_device: Annotated[int, Field(ge=0)] = 0
    step_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    variation: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class GrowthOrder(_Table):
    """The order of growth and updates.

    Attributes:
        staleness: Batch k may start to grow once version k - 1 - staleness of the weights is published.
        growing_batches: Maximum number of batches that grow at a time.
        batch_tasks: Trees of a batch; the run's if not given.
        batch_tasks_per_device: Further trees for each device.
        loop_s: Seconds of the rollout loop for each turn; the run's if not given.
        loops: Processes of the rollout loop; Bough has one.
    """

    staleness: Annotated[int, Field(ge=0)] = 0
    growing_batches: Count = 1
    batch_tasks: Count | None = None
    batch_tasks_per_device: Annotated[int, Field(ge=0)] = 0
    loop_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    loops: Count = 1


class Efficiency(_Table):
    """Shares of the peak rates that are reached.

    The learner's default is computed from a benchmark that prime-rl publishes: Qwen3-4B on 8 H200, 16k tokens, 27,437
    tokens/s; with the operations of `Arithmetic` and half of 16k tokens as the mean depth that is 0.14 of 989 TFLOP/s.
    The other defaults are assumptions, not measurements; replace them by yours.

    Attributes:
        learner: Share of the peak rate in an update.
        engine: Share of the peak rate in a pass of an engine.
        bandwidth: Share of the memory bandwidth in a pass of an engine.
        link: Share of the link's bandwidth.
        pass_s: Seconds of each pass of an engine besides these: scheduling, sampling.
        exchange_s: Further seconds of an optimizer step with several ranks: sending batches, waiting for other ranks.
        memory: Share of the memory that may be used.
    """

    learner: Share = 0.14
    engine: Share = 0.4
    bandwidth: Share = 0.6
    link: Share = 0.7
    pass_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.002
    exchange_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    memory: Share = 0.9


class Cluster(_Table):
    """A cluster, as in the TOML file.

    Attributes:
        execution: How `bough train --cluster` executes a run on it; no part of a plan.
    """

    devices: Devices
    layout: Layout = Layout()
    environment: Environment = Environment()
    schedule: GrowthOrder = GrowthOrder()
    efficiency: Efficiency = Efficiency()
    execution: Mapping[str, object] = Field(default_factory=dict[str, object])

    @model_validator(mode="after")
    def _order(self) -> "Cluster":
        if self.layout.in_turn and self.schedule.staleness:
            raise ValueError(
                f"got layout.in_turn = true with schedule.staleness = {self.schedule.staleness}; need staleness 0, as "
                "devices that learn do not generate; set one of the two"
            )
        return self


def read_cluster(path: Path) -> Cluster:
    """The cluster of a TOML file.

    Raises:
        ConfigError: when the file is missing, is no TOML, or has a wrong field; names all of them.
    """
    try:
        with path.open("rb") as file:
            return Cluster.model_validate(tomllib.load(file))
    except OSError as error:
        raise ConfigError(f"--cluster: got {path}, which cannot be read; need a TOML file; see docs/plan.md") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: got no TOML ({error}); need a TOML file; correct that place") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: " + "\n".join(_problem(each) for each in error.errors())) from error


def _problem(error: "ErrorDetails") -> str:
    """A line of the form: field: got X; need Y; do Z."""
    place = ".".join(str(part) for part in error["loc"]) or "the file"
    if error["type"] == "value_error":
        return f"{place}: {str(error['msg']).removeprefix('Value error, ')}"
    if error["type"] == "extra_forbidden":
        return f"{place}: got an unknown field; need one of docs/plan.md; remove it or correct its name"
    if error["type"] == "missing" and error["loc"] == ("devices",):
        return f"got no table [devices]; need the devices that a plan is for; add them, such as\n{EXAMPLE}"
    if error["type"] == "missing":
        return f"{place}: got nothing; need a value; add it to the file"
    need = str(error["msg"]).removeprefix("Input should be ")
    return f"{place}: got {error['input']!r}; need {need}; correct the file"
