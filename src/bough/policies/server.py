"""The model of a server."""

from dataclasses import replace

from bough.engine import OpenAi
from bough.train import World

TEXT_TOKENS = 4096
"""Least `sampling.max_tokens` of an agent whose tokens are bytes of text: a short text and several calls."""


def server(world: World, *, engine: OpenAi) -> World:
    """A world whose agent is the model of a server; for evaluation and search. `OpenAi(...)` alone is short for it.

    The tokens of the chat are bytes of text, and a server's own are longer: `sampling.max_tokens` is at least 4,096.

    Args:
        world: Its environment, context and parser are kept.
        engine: The server and its model.
    """
    if engine.renderer is None:
        return world.replace(engine=engine)
    sampling = replace(world.sampling, max_tokens=max(TEXT_TOKENS, world.sampling.max_tokens))
    return world.replace(engine=engine, sampling=sampling)
