"""The model of a server."""

from bough.engine import OpenAi, text_sampling
from bough.train import World


def server(world: World, *, engine: OpenAi) -> World:
    """A world whose agent is the model of a server; for evaluation and search. `OpenAi(...)` alone is short for it.

    The tokens of the chat are bytes of text, and a server's own are longer: `sampling.max_tokens` is at least 4,096.

    Args:
        world: Its environment, context and parser are kept.
        engine: The server and its model.
    """
    return world.replace(engine=engine, sampling=text_sampling(world.sampling, engine.renderer))
