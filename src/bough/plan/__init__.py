"""Plans a training on a cluster: memory, rates, the bottleneck and the cost, simulated from a measured run."""

from bough.plan.calibrate import fit_efficiency, fit_exchange_s, fit_loop_s, measured_deployment
from bough.plan.cluster import Cluster, Devices, Efficiency, Environment, GrowthOrder, Layout, read_cluster
from bough.plan.events import Clock, Queue
from bough.plan.forecast import Division, Forecast, divide, forecast
from bough.plan.measured import MeasuredRun, find_directory, measure_stages, model_folder
from bough.plan.memory import DeviceMemory, activation_bytes, engine_memory, learner_memory
from bough.plan.model_size import ModelSize, model_size, read_model
from bough.plan.rates import DeviceRates, MeasuredRates, count_tokens, largest_share
from bough.plan.replica import Cache, EngineRates, Replica, TurnRequest
from bough.plan.simulate import Deployment, Rates, Simulated, simulate
from bough.plan.workload import TreeWork, TurnWork, tree_work

__all__ = [
    "Cache",
    "Clock",
    "Cluster",
    "Deployment",
    "DeviceMemory",
    "DeviceRates",
    "Devices",
    "Division",
    "Efficiency",
    "EngineRates",
    "Environment",
    "Forecast",
    "GrowthOrder",
    "Layout",
    "MeasuredRates",
    "MeasuredRun",
    "ModelSize",
    "Queue",
    "Rates",
    "Replica",
    "Simulated",
    "TreeWork",
    "TurnRequest",
    "TurnWork",
    "activation_bytes",
    "divide",
    "engine_memory",
    "find_directory",
    "fit_efficiency",
    "fit_exchange_s",
    "fit_loop_s",
    "forecast",
    "count_tokens",
    "largest_share",
    "learner_memory",
    "measure_stages",
    "measured_deployment",
    "model_folder",
    "model_size",
    "read_cluster",
    "read_model",
    "simulate",
    "tree_work",
]
