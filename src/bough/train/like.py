"""The defaults of other libraries, as changes of a run."""

import sys
from collections.abc import Mapping, Sequence

from bough.config import ConfigError, override
from bough.nearest import unknown
from bough.train.run import Run

COMMON = ("optimizer.betas=[0.9, 0.999]", "optimizer.clip_norm=1.0", "regularizers=[]", "sampling.temperature=1.0")
DEFAULTS: Mapping[str, tuple[str, Sequence[str]]] = {
    "trl": (
        "TRL 1.16",
        (
            "optimizer.learning_rate=1e-06",
            "optimizer.schedule=LinearSchedule(start=1.0, end=0.0)",
            "optimizer.warmup_steps=0",
            "optimizer.weight_decay=0.0",
            "optimizer.minibatches=1",
            "credit.epsilon=0.0001",
            "objective.dual=none",
            *COMMON,
        ),
    ),
    "verl": (
        "verl",
        (
            "optimizer.learning_rate=1e-06",
            "optimizer.schedule=1.0",
            "optimizer.warmup_steps=0",
            "optimizer.weight_decay=0.01",
            "credit.epsilon=1e-06",
            "objective.dual=3.0",
            *COMMON,
        ),
    ),
}
"""By library: its name and version, and the changes that set its defaults of group-relative optimization."""


def like(run: Run, library: str | None) -> Run:
    """A run with the defaults of another library, which are printed on standard error; the same run for None.

    Raises:
        ConfigError: when there is no such library.
    """
    if library is None:
        return run
    if library not in DEFAULTS:
        raise ConfigError(f"--like: {unknown(library, DEFAULTS)}")
    name, changes = DEFAULTS[library]
    made: list[str] = []
    for change in changes:
        try:
            run = override(run, [change])
        except ConfigError:
            # A method may have a credit rule or a loss without such a field.
            continue
        made.append(change)
    left = [change.partition("=")[0] for change in changes if change not in made]
    others = f"; {', '.join(left)} are not settings of this run" if left else ""
    print(f"as {name}: {' '.join(made)}{others}", file=sys.stderr)
    return run
