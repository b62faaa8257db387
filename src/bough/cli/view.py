"""`bough view`: the runs of some folders in a browser, or as files."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bough.config.config import ConfigError
from bough.store import check_output
from bough.version import install

if TYPE_CHECKING:
    from bough.viewer.runs import Runs

CLOSE_S = 2
"""Seconds that open connections get when the viewer ends."""


def view_runs(
    places: Sequence[Path], *, host: str, port: int, token: str | None, branches: Path, ready: Callable[[str], None]
) -> None:
    """Serve the viewer until it is interrupted.

    Args:
        places: Run directories, and folders of them.
        host: The address.
        port: The port; 0 takes a free one.
        token: What a visitor has to know; None for a new one where other machines reach the address, else for none.
        branches: The folder of new branches.
        ready: Called with the address to open.

    Raises:
        ConfigError: when a place does not exist, or the port is taken or none.
        ImportError: when the extra `serve` is not installed.
    """
    try:
        import uvicorn

        from bough.cli.branch_player import BranchPlayer
        from bough.serve.address import is_loopback, listen
        from bough.train.run_parts import RunParts
        from bough.viewer.server import viewer_app
    except ImportError as error:
        raise ImportError(f"bough view can't import {error.name}; do: {install('serve')}") from error
    runs = _runs_in(places)
    local = is_loopback(host)
    token = (("" if local else secrets.token_urlsafe(16)) if token is None else token).strip()
    try:
        listener = listen(host, port, token)
    except ValueError as error:
        raise ConfigError(str(error).replace("serve:", "view:").replace("--key KEY", "--token TOKEN")) from error
    player = BranchPlayer()
    app = viewer_app(runs, branches.absolute(), player, token, local, RunParts())
    with listener:
        at, port = listener.getsockname()[:2]
        url = f"http://{f'[{at}]' if ':' in at else at}:{port}/"
        ready(f"{url}?token={token}" if token else url)
        config = uvicorn.Config(app, ws="none", lifespan="off", log_level="error", timeout_graceful_shutdown=CLOSE_S)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            player.close()


def export_runs(places: Sequence[Path], folder: Path, *, trees: int | None, tell: Callable[[str], None]) -> None:
    """Write the pages of runs to a folder, as files that need no server.

    Args:
        places: Run directories, and folders of them.
        folder: The folder.
        trees: Most trees of a step; None for all trees of a small run, and a few a step of a larger one.
        tell: Called with a line for each run.

    Raises:
        ConfigError: when a place does not exist, or has no run that can be read.
        StoreError: when the folder has other files, is in a run's own folders, or can't be written.
    """
    from bough.train.run_parts import RunParts
    from bough.viewer.stored_pages import write_folder

    check_output(folder / "index.html")
    if not write_folder(folder.absolute(), _runs_in(places), RunParts(), trees=trees, said=tell):
        raise ConfigError(f"got no run that can be read in {', '.join(map(str, places))}; need one or more")


def _runs_in(places: Sequence[Path]) -> "Runs":
    from bough.viewer.runs import Runs

    if missing := [str(place) for place in places if not place.is_dir()]:
        raise ConfigError(f"got {', '.join(missing)}, which is no folder; need run directories, or a folder of them")
    return Runs([place.absolute() for place in places])
