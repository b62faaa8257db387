"""The settings of a run, from its directory."""

from bough.config.config import ConfigError, load
from bough.store import RunDirectory
from bough.train.run import Run


def load_run(directory: RunDirectory) -> Run:
    """The run of a directory.

    Raises:
        ConfigError: when config.json is not a run's.
    """
    run = load(directory.read_config())
    if not isinstance(run, Run):
        raise ConfigError(f"{directory.config}: got {type(run).__name__}; need the configuration of a Run")
    return run
