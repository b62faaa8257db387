"""The first held-out result of a run and the last, from its folder."""

from collections.abc import Mapping
from typing import Any

from bough.store import RunDirectory
from bough.store.atomic import read_stored
from bough.store.heldout import StoredHeldout, read_heldout_results
from bough.view import Panel
from bough.view.named_step import named_step
from bough.viewer.run_settings import warmup_epochs


def panels(directory: RunDirectory) -> tuple[Panel, ...]:
    """The first held-out result and the last.

    Raises:
        StoreError: when a file is damaged; names it.
    """
    results = read_heldout_results(directory)
    if not results:
        return ()
    settings = read_stored(directory.config)
    epochs, steps = warmup_epochs(settings), _steps(settings)
    first, last = min(results), max(results)
    named = {first: "after warm-up" if epochs else "before training"}
    if last != first:
        ended = last == epochs + steps
        named[last] = "after training" if ended else f"after {named_step(last, epochs=epochs, steps=steps)}"
    return tuple(_panel(label, results[step]) for step, label in named.items())


def _steps(settings: Mapping[str, Any]) -> int:
    return int(settings["world"]["schedule"]["steps"])


def _panel(label: str, result: StoredHeldout) -> Panel:
    return Panel(
        label=label,
        task_ids=tuple(result.successes),
        successes=tuple(result.successes.values()),
        rewards=result.rewards,
        graded=result.graded,
    )
