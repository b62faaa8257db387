"""What the viewer answers about a run as a whole, as JSON data, by the end of the address."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TypeAlias

from bough.store import RunDirectory, StoreError
from bough.view import headline
from bough.view.results import results
from bough.viewer.evaluations import evaluations
from bough.viewer.health import alarms, health
from bough.viewer.run_results import panels
from bough.viewer.run_settings import notes, settings_rows
from bough.viewer.runs import Row, Runs

RunAnswer: TypeAlias = Callable[[Runs, str], Row]
"""The runs and the name of one to the answer; raises StoreError for a damaged file."""


def _run(runs: Runs, name: str) -> Row:
    """The row of the run, its result in a sentence and in tables, its settings, and what it was made with."""
    directory = RunDirectory.open(runs.directory(name))
    settings = runs.settings(name)
    try:
        found, remarks = panels(directory), notes(settings)
    except (LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"{directory.config}: got settings of no run ({error}); need the file as the run wrote it"
        ) from error
    return {
        **runs.row(name, directory.path),
        "headline": headline(found),
        "results": [asdict(table) for table in results(found)],
        "notes": remarks,
        "alarms": [alarm["found"] for alarm in alarms(directory)],
        "settings": settings_rows(settings),
        "made_with": settings_rows(directory.read_manifest()),
    }


def _metrics(runs: Runs, name: str) -> Row:
    return {"rows": runs.metrics(name)}


def _health(runs: Runs, name: str) -> Row:
    row = runs.row(name, runs.directory(name))
    found = health(RunDirectory.open(runs.directory(name)), runs.metrics(name))
    return {"state": row["state"], "why": row["why"], **found}


RUN_ANSWERS: Mapping[str, RunAnswer] = {
    "": _run,
    "/metrics": _metrics,
    "/health": _health,
    "/evaluations": lambda runs, name: evaluations(runs.directory(name)),
}
"""The answers; the server has an address for each, and exported pages have each as data."""
