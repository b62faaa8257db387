"""Fixes the models and data sets of the hub that a run names at the commits with which it began."""

import json
import re
from collections.abc import Iterator

from bough.config.config import ConfigError
from bough.config.override import override
from bough.hub import HubRepo, HubSource
from bough.train.resolve import run_pieces
from bough.train.run import Run

ELEMENT = re.compile(r"\[(\d+)\]")
"""An element in the place of a piece, which a change of the run writes as a name."""


def pinned(run: Run) -> Run:
    """The run with commits as revisions. What the hub's cache lacks is downloaded.

    Raises:
        ConfigError: when a model or data set can't be had; names the field.
    """
    changes = list[str]()
    for piece in run_pieces(run):
        if isinstance(piece.value, HubSource):
            try:
                settings = piece.value.pinned_settings()
            except OSError as error:
                raise ConfigError(f"{piece.place}: {error}") from error
            place = ELEMENT.sub(r".\1", piece.place)
            changes.extend(f"{place}.{name}={json.dumps(text)}" for name, text in settings.items())
    return override(run, changes) if changes else run


def hub_repos(run: Run) -> Iterator[HubRepo]:
    """The models and data sets of the hub that a run names with their commits."""
    for piece in run_pieces(run):
        if isinstance(piece.value, HubSource) and (repo := piece.value.hub_repo()) is not None and repo.pinned:
            yield repo
