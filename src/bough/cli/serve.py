"""`bough serve`: the policy of a run, or a model, over OpenAI's and Anthropic's APIs."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bough.cli.find import PACKAGED, find_model, is_run_directory
from bough.config.config import ConfigError
from bough.engine import Local, Sampling
from bough.policy.hub_model import model_repo
from bough.roles import EngineRecipe
from bough.serve import Conversations, EngineSession
from bough.store import Checkpoints, RunDirectory, StoreError
from bough.train import load_run
from bough.train.seats import seat_run
from bough.units import MIB
from bough.version import install

if TYPE_CHECKING:
    from bough.policy.policy import Policy

KEY = "BOUGH_SERVE_KEY"
"""The environment variable with the server's key."""

MAX_TOKENS = 1024
"""Most sampled tokens of a request that sets no limit, for a model without a run."""

CLOSE_S = 30.0
"""How long running answers may take to end after SIGTERM or Ctrl-C; a second one ends them."""


def serve_policy(
    target: Path,
    *,
    host: str,
    port: int,
    key: str | None,
    step: int | None,
    ready: Callable[[str, str], None],
    seat: str = "",
    names: Sequence[str] = (),
    max_body_mib: float,
) -> None:
    """Serve until SIGTERM, or until the process is interrupted; running answers end first.

    Args:
        target: A run directory, or a model as of `find_model`.
        host: The address.
        port: The port; 0 takes a free one.
        key: The server's key; None takes the environment variable, "" needs none.
        step: The run's checkpoint; None for the newest.
        ready: Called with the base URL and the model's name.
        seat: A seat with weights of its own, in a run with several; "" for the run's `policy`.
        names: The names of the model in requests, the first is shown; () for that of the run or the model.
        max_body_mib: Largest body of a request, in MiB.

    Raises:
        ConfigError: when other machines reach the address and there is no key, the port is taken or none, or `target`
            is no run and no model.
        StoreError: when the run has no such checkpoint.
        ImportError: when the extra `serve` is not installed.
    """
    try:
        from bough.serve.address import listen
        from bough.serve.server import serve
    except ImportError as error:
        raise ImportError(f"bough serve can't import {error.name}; do: {install('serve')}") from error
    key = os.environ.get(KEY, "") if key is None else key
    try:
        # Before the model is loaded, which may take minutes.
        listener = listen(host, port, key)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    with listener:
        print(f"loading {target}", file=sys.stderr)
        policy, recipe, sampling, name = _of_run(target, step, seat) if is_run_directory(target) else _of_model(target)

        async def run() -> None:
            engine = recipe.build(policy)
            models = (*names,) or (name,)
            sessions = EngineSession(engine, Conversations(policy.renderer), models=models, sampling=sampling, key=key)
            try:
                async with serve(sessions, listener, close_s=CLOSE_S, body_bytes=int(max_body_mib * MIB)) as url:
                    ready(url, models[0])
                    await _terminated()
            finally:
                await engine.close()

        asyncio.run(run())


async def _terminated() -> None:
    """Wait for SIGTERM; the next one ends the process."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    loop.remove_signal_handler(signal.SIGTERM)


def _of_run(path: Path, step: int | None, seat: str) -> "tuple[Policy, EngineRecipe, Sampling, str]":
    """The policy of a run with the weights of a checkpoint, its engine, its sampling settings and its name."""
    with RunDirectory.open(path).in_its_folder() as directory:
        run = seat_run(load_run(directory), seat)
        checkpoints = Checkpoints(directory=directory.checkpoints)
        checkpoint = checkpoints.latest().checkpoint if step is None else checkpoints.at(step)
        if checkpoint is None:
            raise StoreError(f"{path}: got no whole checkpoint; need a run that has saved one")
        policy = run.world.policy.build((), directory.policy_of(seat))
        policy.load_state(checkpoint.tensors(f"policy-{seat}" if seat else "policy"))
    name = f"{run.name}-{seat}" if seat else run.name
    return policy, run.world.execution.engine, run.world.at(1.0).sampling, name


def _of_model(path: Path) -> "tuple[Policy, EngineRecipe, Sampling, str]":
    """The policy of a model, an engine, sampling settings, and the name of its folder, file or hub id."""
    repo = model_repo(str(path))
    policy, name = find_model(path).build(()), path.resolve().name if repo is None else repo.name
    sampling = Sampling(max_tokens=MAX_TOKENS, entropies=False)
    return policy, Local(), sampling, name.removeprefix(PACKAGED).removesuffix(".gguf")
