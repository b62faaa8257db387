"""The warm-up: imitates oracle demonstrations before reinforcement learning."""

import asyncio
from dataclasses import replace

from bough.batch import pack_demonstrations
from bough.learner.learner import Learner
from bough.objective import Imitation, Normalizer
from bough.train.recorder import RunRecorder
from bough.train.runtime import Runtime
from bough.train.stopwatch import Stopwatch
from bough.tree import derive


async def warm_up(runtime: Runtime, recorder: RunRecorder) -> None:
    """Behaviour cloning on the run's first training tasks.

    The warm-up has its own optimizer, and reinforcement starts with fresh moments. The first evaluation completes the
    row of the last epoch.

    Raises:
        NoLearningSignal: when the environment fails in every demonstration.
        ValueError: when the environment has no oracle, or the oracle does not solve a task.
    """
    run, watch = runtime.run, Stopwatch()
    settings = run.world.warmup
    with watch("grow"):
        trees = await runtime.demonstrate(settings.demonstrations, "warmup.demonstrations")
    batch = pack_demonstrations(trees).to(runtime.policy.device)
    minibatches = max(1, round(batch.tokens.numel() / settings.batch_tokens))
    optimizer = replace(
        run.world.optimizer,
        learning_rate=settings.learning_rate,
        momentum="adam",
        schedule="linear",
        epochs=1,
        minibatches=minibatches,
        warmup_steps=0,
    )
    learner = Learner(runtime.policy, optimizer, total_updates=settings.epochs * minibatches, temperature=1.0)
    for epoch in range(1, settings.epochs + 1):
        # Ctrl-C is handled in the thread of the event loop.
        await asyncio.sleep(0)
        with watch("learn"):
            seed = derive(run.seed, "warm-up", epoch)
            metrics = learner.learn(batch, Imitation(), Normalizer(), seed=seed)
        metrics.pop("policy/gap")
        recorder.log(metrics | watch.metrics() | {"phase": "warmup"})
        if epoch < settings.epochs:
            recorder.write_step(epoch)
        watch = Stopwatch()
