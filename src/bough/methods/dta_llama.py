"""DTA-Llama (arXiv 2501.12432)."""

from dataclasses import replace

from bough.context import CallParser, Tagged
from bough.credit import Filtered
from bough.env import ParallelCalls
from bough.objective import SftMix
from bough.rewrite import ParallelPaths
from bough.searches.dfsdt import dfsdt
from bough.train import Demonstrations, Run, World


def dta_llama(world: World, *, width: int = 2, rounds: int = 3, batch_tasks: int = 64, tokens: int = 96) -> Run:
    """DTA-Llama (arXiv 2501.12432): rewrites a depth-first search's paths to parallel calls, and imitates them.

    Assumes an environment that can step a state twice. A step of the run is a round: a depth-first search on each of
    `batch_tasks` tasks, then four passes over the best path of each solved one, whose independent calls are joined to
    actions of several calls (`ParallelPaths`). Nothing else is trained. An action has up to `tokens` tokens, as several
    calls are longer than one. Without tools the environment is wrapped in `ParallelCalls`, and the parser is `Tagged`,
    as an action then has several lines. The paper's graphs are a large model's; its runtime joins threads, here the
    environment executes the calls of an action.

    Try: `bough train dta_llama --on pantry`
    """
    calls = isinstance(world.parser, CallParser)
    sampling = replace(world.sampling, max_tokens=max(world.sampling.max_tokens, tokens))
    run = world.run(
        sampling=sampling,
        explorer=dfsdt(width=width),
        credit=Filtered(max_paths=1),
        objective=SftMix(mu=1.0),
        demonstrations=Demonstrations(revise=ParallelPaths()),
        regularizers=(),
        filters=(),
        optimizer=replace(world.optimizer, epochs=4, warmup_steps=0),
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
    return run if calls else run.replace(env=ParallelCalls(env=world.env), parser=Tagged())
