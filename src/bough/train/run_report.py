"""Writes the report of a run: its pages of the viewer, in one file."""

from bough.store import RunDirectory
from bough.store.atomic import explain_full_disk
from bough.train.run_parts import RunParts
from bough.viewer.stored_pages import write_report


def write_run_report(directory: RunDirectory) -> str:
    """Write report.html. All its content comes from disk, so a run that stopped early has a report too.

    Returns:
        The result in one sentence.
    """
    with explain_full_disk(directory.report, None):
        return write_report(directory.report, directory, RunParts())
