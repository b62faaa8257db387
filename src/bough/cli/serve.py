"""`bough serve`: the policy of a run, or a model, over OpenAI's protocol."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bough.cli.find import is_run_directory
from bough.config.config import ConfigError
from bough.engine import Local, Sampling
from bough.store import Checkpoints, RunDirectory, StoreError
from bough.train import EngineRecipe, load_run
from bough.train.seats import seat_run
from bough.version import install

if TYPE_CHECKING:
    from bough.policy.policy import Policy

KEY = "BOUGH_SERVE_KEY"
"""The environment variable with the server's key."""

MAX_TOKENS = 1024
"""Most sampled tokens of a request that sets no limit, for a model without a run."""


def serve_policy(
    target: Path,
    *,
    host: str,
    port: int,
    key: str | None,
    step: int | None,
    ready: Callable[[str, str], None],
    seat: str = "",
) -> None:
    """Serve until the process is interrupted.

    Args:
        target: A run directory, or a folder or GGUF file of a model.
        host: The address.
        port: The port; 0 takes a free one.
        key: The server's key; None takes the environment variable, "" needs none.
        step: The run's checkpoint; None for the newest.
        ready: Called with the base URL and the model's name.
        seat: A seat with weights of its own, in a run with several; "" for the run's `policy`.

    Raises:
        ConfigError: when other machines reach the address and there is no key, or `target` is no run and no model.
        StoreError: when the run has no such checkpoint.
        ImportError: when the extra `serve` is not installed.
    """
    try:
        from bough.serve.server import check_address
    except ImportError as error:
        raise ImportError(f"bough serve can't import {error.name}; do: {install('serve')}") from error
    key = os.environ.get(KEY, "") if key is None else key
    try:
        check_address(host, key)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    policy, recipe, sampling, name = _of_run(target, step, seat) if is_run_directory(target) else _of_model(target)
    asyncio.run(_serve(policy, recipe, sampling, name, host=host, port=port, key=key, ready=ready))


async def _serve(
    policy: "Policy",
    recipe: EngineRecipe,
    sampling: Sampling,
    name: str,
    *,
    host: str,
    port: int,
    key: str,
    ready: Callable[[str, str], None],
) -> None:
    from bough.serve import Conversations, EngineSession
    from bough.serve.server import serve

    engine = recipe.build(policy)
    sessions = EngineSession(engine, Conversations(policy.renderer), models=(name,), sampling=sampling, key=key)
    try:
        async with serve(sessions, host=host, port=port, key=key) as url:
            ready(url, name)
            await asyncio.get_running_loop().create_future()
    finally:
        await engine.close()


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
    return policy, run.world.execution.engine, run.world.sampling, name


def _of_model(path: Path) -> "tuple[Policy, EngineRecipe, Sampling, str]":
    """The policy of a model, an engine, sampling settings, and the name of its folder or file."""
    from bough.policy import Pretrained

    if not path.is_dir() and path.suffix != ".gguf":
        raise ConfigError(f"{path}: got no folder; need a run directory, or a folder or GGUF file of a model")
    policy = Pretrained(path=str(path)).build(())
    return policy, Local(), Sampling(max_tokens=MAX_TOKENS, entropies=False), path.resolve().stem
