"""The warm-up: imitate a few demonstrations of an oracle, so that reinforcement has something to find."""

import asyncio
from dataclasses import replace

from bough.batch import pack_demonstrations
from bough.explore import derive
from bough.objective import Imitation, Normalizer
from bough.train.journal import Journal
from bough.train.learner import Learner
from bough.train.stopwatch import Stopwatch
from bough.train.workshop import Workshop


async def warm_up(shop: Workshop, journal: Journal) -> None:
    """Behaviour cloning on the run's first training tasks.

    The warm-up has its own optimizer, and reinforcement starts with fresh moments. The first evaluation completes the
    row of the last epoch.

    Raises:
        DeadRun: when the environment fails in every demonstration.
        ValueError: when the environment has no oracle, or the oracle does not solve a task.
    """
    run, watch = shop.run, Stopwatch()
    settings = run.warmup
    with watch("grow"):
        trees = await shop.demonstrate(settings.demonstrations, "warmup.demonstrations")
    batch = pack_demonstrations(trees).to(shop.policy.device)
    minibatches = max(1, round(batch.tokens.numel() / settings.batch_tokens))
    optimizer = replace(
        run.optimizer,
        learning_rate=settings.learning_rate,
        momentum="adam",
        schedule="linear",
        epochs=1,
        minibatches=minibatches,
        warmup_steps=0,
    )
    learner = Learner(shop.policy, optimizer, total_updates=settings.epochs * minibatches, temperature=1.0)
    for epoch in range(1, settings.epochs + 1):
        # Ctrl-C is noticed where the event loop runs.
        await asyncio.sleep(0)
        with watch("learn"):
            seed = derive(run.seed, "warm-up", epoch)
            metrics = learner.learn(batch, Imitation(), Normalizer(), seed=seed)
        metrics.pop("policy/gap")
        journal.note(metrics | watch.metrics() | {"phase": "warmup"})
        if epoch < settings.epochs:
            journal.write_step(epoch)
        watch = Stopwatch()
