"""Settings as flat JSON, for snapshots: `pytest FILE --snapshot-update` writes those of new and changed pieces."""

from syrupy.extensions.json import JSONSnapshotExtension

from bough.config.flat import flat_settings as settings
from bough.train import Run


class Settings(JSONSnapshotExtension):
    """One file a case, so that a new piece adds a file and edits none."""


def changes(run: Run, base: Run) -> dict[str, object]:
    """The settings of a run that differ from those of another; None for the pieces that it lacks."""
    mine, theirs = settings(run), settings(base)
    gone = {key: None for key in theirs.keys() - mine.keys() if key.endswith(".piece")}
    return dict(sorted((dict(mine.items() - theirs.items()) | gone).items()))
