"""Simulates training on a deployment: episodes, engine replicas, environment workers, learner, publication.

    batch k --> rollout loop --> replica --> environment worker --> rollout loop ... --> batch k complete
    batch k complete, version k - 1 published --> update --> publication --> version k
    batch k + 1 starts once version k - staleness is published, and at most `growing_batches` batches grow

A turn passes the rollout loop, a FIFO queue, and then the replica that has its prefix. First turns of a tree share a
replica up to its fair share of the turns in flight; others go to the least loaded replica. With one growing batch the
weights are published between batches, else beside them.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Protocol

from bough.piece import AtLeast, piece
from bough.plan.events import Clock, Queue
from bough.plan.replica import EngineRates, Replica, TurnRequest
from bough.plan.workload import TreeWork


class Rates(EngineRates, Protocol):
    """Seconds of the passes of an engine, of an update and of a publication."""

    def update_s(self, trees: Sequence[TreeWork]) -> float:
        """Seconds of the update on a batch, all ranks together at work."""
        ...

    def publish_s(self, trees: Sequence[TreeWork]) -> float:
        """Seconds between an update and the next growth: weights to the engines, credit, metrics."""
        ...


@piece
class Deployment:
    """The processes of a simulated training.

    Attributes:
        replicas: Number of engine replicas.
        slots: Turns that a replica decodes at a time.
        cache_tokens: Tokens in the cache of a replica.
        inline: Whether the one engine runs in the rollout loop: the loop's work delays its passes, and its passes delay
            the results and the next steps of workers.
        workers: Processes of the environment; 0 executes steps in the rollout loop.
        loops: Processes of the rollout loop.
        loop_s: Seconds of the rollout loop for each turn.
        env_step_s: Mean seconds of an environment step.
        variation: Standard deviation of a step's seconds over their mean; log-normal.
        batch_tasks: Trees of a batch.
        staleness: Batch k may start once version k - 1 - staleness is published.
        growing_batches: Maximum number of batches that grow at a time.
    """

    replicas: Annotated[int, AtLeast(1)] = 1
    slots: Annotated[int, AtLeast(1)] = 256
    cache_tokens: Annotated[int, AtLeast(1)] = 2**40
    inline: bool = False
    workers: Annotated[int, AtLeast(0)] = 1
    loops: Annotated[int, AtLeast(1)] = 1
    loop_s: Annotated[float, AtLeast(0)] = 0.0
    env_step_s: Annotated[float, AtLeast(0)] = 0.0
    variation: Annotated[float, AtLeast(0)] = 0.0
    batch_tasks: Annotated[int, AtLeast(1)] = 16
    staleness: Annotated[int, AtLeast(0)] = 0
    growing_batches: Annotated[int, AtLeast(1)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Results over the measured batches: those after the first ones, which fill the pipeline.

    Attributes:
        seconds: Their simulated time.
        batches: Their number.
        episodes: Their episodes.
        grow_s: Mean seconds of the growth of a batch.
        computed_tokens: New tokens that replicas computed.
        sampled_tokens: Tokens that replicas sampled.
        learned_tokens: Unique tokens of the updates.
        busy: Busy share of each stage: engine, environment, loop, learner, publication.
    """

    seconds: float
    batches: int
    episodes: int
    grow_s: float
    computed_tokens: int
    sampled_tokens: int
    learned_tokens: int
    busy: dict[str, float]


@dataclass(slots=True, kw_only=True, eq=False)
class _Batch:
    """A batch in growth: its trees, and how many of them still grow."""

    number: int
    trees: list[TreeWork]
    open: int
    began: float
    grow_s: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Growing:
    """A tree in growth: its work, open turns, children of each turn, and the replicas that have its prompt."""

    work: TreeWork
    batch: _Batch
    follows: list[list[int]]
    open: int
    replicas: dict[int, Replica] = field(default_factory=dict[int, Replica])


def simulate(
    deployment: Deployment,
    rates: Rates,
    trees: Sequence[TreeWork],
    *,
    batches: int = 4,
    seed: int = 0,
) -> Simulated:
    """Simulate some batches; the first `staleness + 1` of them fill the pipeline and are not measured.

    Args:
        deployment: The processes.
        rates: Their speeds.
        trees: The work of recorded trees. A batch draws from them without replacement, in rounds.
        batches: Number of measured batches.
        seed: Seed of the drawn trees and of the environment's seconds; equal seeds give equal results.
    """
    return _Simulation(deployment, rates, trees, batches, random.Random(seed)).run()


class _Simulation:
    def __init__(
        self, deployment: Deployment, rates: Rates, trees: Sequence[TreeWork], batches: int, rng: random.Random
    ) -> None:
        self.deployment, self.rates, self.rng = deployment, rates, rng
        self.trees, self.pile = trees, list[TreeWork]()
        self.clock = Clock()
        self.replicas = [
            Replica(self.clock, rates, slots=deployment.slots, cache_tokens=deployment.cache_tokens)
            for _ in range(deployment.replicas)
        ]
        self.inline_steps = deployment.workers == 0
        self.workers = Queue(self.clock, max(deployment.workers, 1), self.held_s if deployment.inline else float)
        self.loop = Queue(self.clock, deployment.loops)
        self.learner, self.publisher = Queue(self.clock, 1), Queue(self.clock, 1)
        self.first, self.last = deployment.staleness + 1, deployment.staleness + 1 + batches
        self.started = self.version = self.trained = self.load = 0
        self.growing, self.grown = 0, dict[int, _Batch]()
        self.update_ended = False
        self.ended: list[tuple[float, dict[str, float]]] = []
        self.batches: list[_Batch] = []

    def run(self) -> Simulated:
        """All batches; see `simulate`."""
        self.proceed()
        self.clock.run()
        (begin, before), (end, after) = self.ended[self.first - 1], self.ended[-1]
        seconds = max(end - begin, 1e-12)
        counts = {name: after[name] - before[name] for name in after}
        measured = self.batches[self.first : self.last]
        servers = {
            "engine": self.deployment.replicas,
            "environment": self.workers.servers,
            "loop": self.loop.servers,
            "learner": 1,
            "publication": 1,
        }
        return Simulated(
            seconds=seconds,
            batches=len(measured),
            episodes=sum(tree.episodes for batch in measured for tree in batch.trees),
            grow_s=sum(batch.grow_s for batch in measured) / len(measured),
            computed_tokens=int(counts["computed"]),
            sampled_tokens=int(counts["sampled"]),
            learned_tokens=sum(tree.unique_tokens for batch in measured for tree in batch.trees),
            busy={name: counts[name] / (count * seconds) for name, count in servers.items()},
        )

    def held_s(self) -> float:
        """Seconds until a worker that has ended a step gets the next one, from a loop that computes passes itself."""
        return self.replicas[0].pass_left_s() + self.deployment.loop_s

    # --- batches, updates, versions

    def proceed(self) -> None:
        """Start what may start: the publication, the next update, the next batch."""
        if self.update_ended and not (self.growing and self.deployment.growing_batches == 1):
            self.update_ended = False
            trees = self.grown.pop(self.trained).trees
            self.publisher.put(self.rates.publish_s(trees), self.published)
        following = self.grown.get(self.trained + 1)
        if following is not None and self.version == self.trained:
            self.trained += 1
            self.learner.put(self.rates.update_s(following.trees), self.updated)
        while self.may_start():
            self.start_batch()

    def may_start(self) -> bool:
        """Whether the next batch may start; it waits for a publication that waits for it."""
        number, plan = self.started + 1, self.deployment
        publishing = plan.growing_batches == 1 and self.publisher_busy()
        fresh = self.version >= number - 1 - plan.staleness
        # Later batches grow beside the last measured update, so that all measured steps are alike.
        return number <= self.last + plan.staleness and fresh and self.growing < plan.growing_batches and not publishing

    def publisher_busy(self) -> bool:
        """Whether an update has ended whose weights are not published."""
        return self.trained > self.version and self.trained not in self.grown

    def updated(self) -> None:
        """Note the end of an update."""
        self.update_ended = True
        self.proceed()

    def published(self) -> None:
        """Count a version, and the work until now."""
        self.version += 1
        self.ended.append((self.clock.now, self.counts()))
        if self.version == self.last:
            self.clock.stop()
        else:
            self.proceed()

    def counts(self) -> dict[str, float]:
        """Busy seconds and tokens since the start."""
        return {
            "engine": sum(replica.busy_s for replica in self.replicas),
            "environment": self.workers.busy_s,
            "loop": self.loop.busy_s,
            "learner": self.learner.busy_s,
            "publication": self.publisher.busy_s,
            "computed": sum(replica.computed_tokens for replica in self.replicas),
            "sampled": sum(replica.sampled_tokens for replica in self.replicas),
        }

    # --- trees and turns

    def draw(self) -> TreeWork:
        """The next recorded tree, in a random order of each round."""
        if not self.pile:
            self.pile = list(self.trees)
            self.rng.shuffle(self.pile)
        return self.pile.pop()

    def start_batch(self) -> None:
        """Start all trees of a batch."""
        self.started += 1
        self.growing += 1
        count = self.deployment.batch_tasks
        trees = [self.draw() for _ in range(count)]
        batch = _Batch(number=self.started, trees=trees, open=count, began=self.clock.now)
        self.batches.append(batch)
        for work in trees:
            follows: list[list[int]] = [[] for _ in work.turns]
            first = [number for number, turn in enumerate(work.turns) if turn.parent < 0]
            for number, turn in enumerate(work.turns):
                if turn.parent >= 0:
                    follows[turn.parent].append(number)
            tree = _Growing(work=work, batch=batch, follows=follows, open=len(work.turns))
            for number in first:
                self.turn(tree, number, None)

    def turn(self, tree: _Growing, number: int, replica: Replica | None) -> None:
        """Send a turn through the rollout loop to a replica; None chooses one."""
        if self.deployment.inline:
            self.generate(tree, number, replica)
        else:
            step_s = self.step_s() if self.inline_steps and tree.work.turns[number].steps else 0.0
            self.loop.put(self.deployment.loop_s + step_s, self.generate, tree, number, replica)

    def generate(self, tree: _Growing, number: int, replica: Replica | None) -> None:
        """Submit a turn to its replica."""
        place = self.route(tree) if replica is None else replica
        work, plan = tree.work.turns[number], self.deployment
        extra = plan.loop_s if plan.inline else 0.0
        extra += self.step_s() if plan.inline and self.inline_steps and work.steps else 0.0
        self.load += 1
        place.submit(
            TurnRequest(
                tree=id(tree),
                turn=number,
                work=work,
                prompt_tokens=tree.work.prompt_tokens,
                branches=len(tree.follows[number]),
                extra_s=extra,
                done=partial(self.sampled, tree, number, place),
            )
        )

    def route(self, tree: _Growing) -> Replica:
        """A replica with the prompt of the tree that has its fair share of turns or fewer, else the least loaded."""
        fair = math.ceil((self.load + 1) / len(self.replicas))
        place = next((each for each in tree.replicas.values() if each.load < fair), None)
        place = place or min(self.replicas, key=lambda each: each.load)
        tree.replicas[id(place)] = place
        return place

    def sampled(self, tree: _Growing, number: int, replica: Replica) -> None:
        """Execute the action of a sampled turn."""
        self.load -= 1
        if tree.work.turns[number].steps and not self.inline_steps:
            self.workers.put(self.step_s(), self.stepped, tree, number, replica)
        else:
            self.stepped(tree, number, replica)

    def stepped(self, tree: _Growing, number: int, replica: Replica) -> None:
        """Start the turns that follow; end the tree, and the batch, when none is left."""
        tree.open -= 1
        for following in tree.follows[number]:
            self.turn(tree, following, replica)
        if tree.open:
            return
        for place in tree.replicas.values():
            place.cache.drop(id(tree))
        batch = tree.batch
        batch.open -= 1
        if not batch.open:
            batch.grow_s = self.clock.now - batch.began
            self.growing -= 1
            self.grown[batch.number] = batch
            self.proceed()

    def step_s(self) -> float:
        """Seconds of an environment step."""
        mean, variation = self.deployment.env_step_s, self.deployment.variation
        if not (mean and variation):
            return mean
        spread = math.log1p(variation**2)
        return self.rng.lognormvariate(math.log(mean) - spread / 2, math.sqrt(spread))
