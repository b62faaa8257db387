"""Loggers: the metrics of a run in TensorBoard, Weights & Biases, MLflow, trackio, or a place of the user's."""

from bough.loggers.logger import EndState, LoggedRun, Logger, LogWriter, NeedsPackages
from bough.loggers.mlflow import Mlflow
from bough.loggers.run_loggers import RunLoggers
from bough.loggers.tensorboard import TensorBoard
from bough.loggers.trackio import Trackio
from bough.loggers.wandb import Wandb

__all__ = [
    "EndState",
    "LogWriter",
    "LoggedRun",
    "Logger",
    "Mlflow",
    "NeedsPackages",
    "RunLoggers",
    "TensorBoard",
    "Trackio",
    "Wandb",
]
