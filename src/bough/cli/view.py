"""`bough view`: the runs of some folders in a browser."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from bough.config.config import ConfigError
from bough.version import install

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
        from bough.viewer.runs import Runs
        from bough.viewer.server import viewer_app
    except ImportError as error:
        raise ImportError(f"bough view can't import {error.name}; do: {install('serve')}") from error
    if missing := [str(place) for place in places if not place.is_dir()]:
        raise ConfigError(f"got {', '.join(missing)}, which is no folder; need run directories, or a folder of them")
    local = is_loopback(host)
    token = (("" if local else secrets.token_urlsafe(16)) if token is None else token).strip()
    try:
        listener = listen(host, port, token)
    except ValueError as error:
        raise ConfigError(str(error).replace("serve:", "view:").replace("--key KEY", "--token TOKEN")) from error
    player = BranchPlayer()
    runs = Runs([place.absolute() for place in places])
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
