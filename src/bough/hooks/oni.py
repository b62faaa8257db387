"""Rewards from labels that a model gives to observations during the run."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias

import numpy as np

from bough.ask import QuerySettings
from bough.hooks.caption_model import CaptionModel, RunningScale
from bough.hooks.captions import CaptionLabels, captions_of, occurrences, read_label
from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskRewriter, Teacher
from bough.needs import ON_POLICY, Need, roles
from bough.piece import Above, AtLeast, piece
from bough.tree import (
    Floats,
    Rewarded,
    RewardRange,
    Task,
    Tree,
    counted,
    sigmoid,
    sum_to_root,
)

Variant: TypeAlias = Literal["retrieval", "classifier", "ranking"]

LABEL = (
    "An agent works on a task. {goal}\nIt reads this:\n{caption}\n\n"
    "Is this a sign of progress? Answer with 1 for yes or 0 for no."
)
COMPARE = (
    "An agent works on a task. {goal}\nOne observation is this:\n{first}\n\nAnother is this:\n{second}\n\n"
    "Which one is the better sign of progress? Answer with 1 for the first, 2 for the second, 0 if neither is."
)


@piece
class Oni(QuerySettings):
    """ONI (arXiv 2410.23022): a model labels what the agent reads, while the run goes on, and labels become rewards.

    The caption of an observation is its text, or what `caption` finds in it. A new caption goes into a queue; before
    each step up to `batch` of the newest are sent to the model of `role`, if no earlier batch is in flight. With n the
    number of times that the path has had the caption so far, this time included, an observation after an action is paid

        coef * value(caption) / n^power

    in the channel "oni"; the other channels are multiplied by `extrinsic`. With labels 1 and 0, coef .4 and power 3 a
    good caption that occurs three times on a path is paid .4, .05, .0148. The value of a caption is

        retrieval    its label, 0 without one
        classifier   1 if a linear model of words, trained on all labels so far, gives a probability above `threshold`
        ranking      (s - mean) / std of its score s, where this is above `threshold`, else 0

    The scores of "ranking" are those of a Bradley-Terry model, trained on comparisons of each new caption with a random
    other one; mean and std are over all captions so far. Thresholds are .5 and -.5.

    A batch sent before a step is used from `delay_steps` steps later on: a logical clock, so that a run does not depend
    on the speed of the model. Only a model that needs longer makes the run wait. With `delay_steps=None` the run never
    waits, labels count from the step at which they arrive, and two runs differ. The step of arrival of each label is
    part of the state. An answer in flight when a run stops is asked again, so the role should be a model whose
    weights do not change, such as `models.judge`; the policy itself can answer, too. An unreadable answer gives no
    label, and is counted.

    The paper plays NetHack, whose messages are captions; its classifier and ranking models read characters.

    Metrics: `oni/labels` used so far, `oni/queue`, `oni/unread`, `oni/dropped` captions without room in the queue;
    `oni/paid`, the mean reward of a path in this channel.

    Attributes:
        variant: How labels become values.
        goal: What the agent should achieve, for the question.
        caption: Regular expression of a caption; its first group, if it has one. "" is the whole text.
        coef: Weight of the reward.
        extrinsic: Factor of the other channels: .1 in the paper, 0 without their rewards.
        power: beta of the paper: how fast a repeated caption is paid less.
        batch: Most captions sent at once.
        queue: Most captions that wait; more are dropped until there is room.
        delay_steps: Steps between sending and use; None as soon as they arrive.
        threshold: Of "classifier" and "ranking"; None for the paper's.
        steps: Gradient steps of the linear model after each batch of labels.
        width: Number of weights of the linear model.
        learning_rate: Learning rate of the linear model.
    """

    variant: Variant = "retrieval"
    goal: str = ""
    caption: str = ""
    coef: float = 0.4
    extrinsic: Annotated[float, AtLeast(0, "a finite number, 0 or more")] = 0.1
    power: Annotated[float, AtLeast(0, "a finite number, 0 or more")] = 3.0
    batch: Annotated[int, AtLeast(1)] = 100
    queue: Annotated[int, AtLeast(1)] = 1000
    delay_steps: Annotated[int | None, AtLeast(1)] = 1
    threshold: float | None = None
    steps: Annotated[int, AtLeast(1)] = 50
    width: Annotated[int, AtLeast(1)] = 1024
    learning_rate: Annotated[float, Above(0)] = 1.0
    max_tokens: int = 8
    temperature: float = 1.0
    deadline_s: float = 600.0

    def __post_init__(self) -> None:
        try:
            re.compile(self.caption)
        except re.error as error:
            raise ValueError(f"Oni.caption: got {self.caption!r}; need a regular expression: {error}") from error

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role; with a clock, steps that follow each other."""
        clock = {ON_POLICY.or_else("delay_steps=None")} if self.delay_steps is not None else set[Need]()
        return roles(self.role) | clock

    @property
    def limit(self) -> float:
        """`threshold`, or the paper's."""
        default = 0.5 if self.variant == "classifier" else -0.5
        return default if self.threshold is None else self.threshold

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Between the labels 0 and 1, times `coef`; scores of "ranking" have no bound, and the least is `threshold`."""
        if self.variant == "ranking":
            return {"oni": RewardRange()}
        return {"oni": RewardRange.of(0, 1, weight=self.coef)}

    def build(self, setup: HookSetup) -> "OniState":
        """Return a state without labels."""
        return OniState(self, setup)


@dataclass(slots=True, kw_only=True)
class OniData:
    """The state of the hook.

    Attributes:
        captions: The queue, the batch in flight, and the labels.
        words: The linear model.
        scale: Of the scores of "ranking".
        labels: By caption, its newest label.
    """

    captions: CaptionLabels = field(default_factory=CaptionLabels)
    words: CaptionModel
    scale: RunningScale = field(default_factory=RunningScale)
    labels: dict[str, int] = field(default_factory=dict[str, int])


class OniState(BatchHook[Oni], TaskRewriter):
    """Asks for labels, and pays observations by them."""

    def __init__(self, settings: Oni, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: OniData = OniData(words=CaptionModel.of(settings.width))
        self._task: asyncio.Task[list[int | None]] | None = None

    async def rewrite(self, tasks: Sequence[Task], _teacher: Teacher, seed: int) -> list[Task]:
        """Take the labels that are due, and send the next captions; the tasks stay as they are."""
        if self.data.captions.sent and self._task is None:
            # The batch was in flight when a resumed run stopped.
            self._send()
        if self._task is not None and self._is_due(self._task):
            self._use(await self._task)
        if self._task is None and self.data.captions.queue:
            self._choose(np.random.default_rng(seed))
            self._send()
        return list(tasks)

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """The trees with the channel "oni"; new captions join the queue."""
        found = [captions_of(each.tree, self.settings.caption) for each in rewarded]
        paid = [self._paid(each.tree, captions) for each, captions in zip(rewarded, found, strict=True)]
        for each, captions in zip(rewarded, found, strict=True):
            if not each.tree.replayed:
                self._queue(captions.values())
        ends = [sum_to_root(each.tree, own)[counted(each.tree)] for each, own in zip(rewarded, paid, strict=True)]
        returns = np.concatenate([np.zeros(0), *ends])
        self.metrics["oni/paid"] = float(returns.mean()) if len(returns) else 0.0
        factor = self.settings.extrinsic
        return [
            replace(each, channels={**{name: factor * value for name, value in each.channels.items()}, "oni": own})
            for each, own in zip(rewarded, paid, strict=True)
        ]

    def observe(self) -> Mapping[str, float]:
        """Advance the clock and return the metrics of the step."""
        self.data.captions.clock += 1
        counts = {
            "labels": len(self.data.captions.labels),
            "queue": len(self.data.captions.queue),
            "unread": self.data.captions.unread,
        }
        return {
            "oni/dropped": 0.0,
            **super().observe(),
            **{f"oni/{name}": float(count) for name, count in counts.items()},
        }

    def _is_due(self, task: "asyncio.Task[list[int | None]]") -> bool:
        delay = self.settings.delay_steps
        return task.done() if delay is None else self.data.captions.clock >= self.data.captions.sent_at + delay

    def _choose(self, generator: np.random.Generator) -> None:
        """Move the newest captions from the queue to the batch in flight."""
        held, count = self.data.captions, self.settings.batch
        newest, held.queue = held.queue[-count:][::-1], held.queue[:-count]
        if self.settings.variant == "ranking":
            others = [[each for each in held.known if each != caption] for caption in newest]
            pairs = zip(newest, others, strict=True)
            held.sent = [[one, rest[int(generator.integers(len(rest)))]] for one, rest in pairs if rest]
        else:
            held.sent = [[caption] for caption in newest]
        held.sent_at = held.clock

    def _send(self) -> None:
        if self.data.captions.sent:
            self._task = asyncio.create_task(self._labels(self.data.captions.sent))

    async def _labels(self, sent: Sequence[Sequence[str]]) -> list[int | None]:
        return await asyncio.gather(*map(self._label, sent))

    async def _label(self, captions: Sequence[str]) -> int | None:
        """The label of a caption, or of two; None where the answer cannot be read, is late or refused."""
        settings, goal = self.settings, self.settings.goal
        if settings.variant == "ranking":
            prompt, most = COMPARE.format(goal=goal, first=captions[0], second=captions[1]), 2
        else:
            prompt, most = LABEL.format(goal=goal, caption=captions[0]), 1
        return (await self.setup.ask(settings.query(prompt, lambda text: read_label(text, most)))).value

    def _use(self, labels: Sequence[int | None]) -> None:
        """Read the answers to the batch in flight, and train the model of words."""
        held, ranks = self.data.captions, self.settings.variant == "ranking"
        for captions, label in zip(held.sent, labels, strict=True):
            if label is None:
                held.unread += 1
            else:
                held.labels.append((list(captions), label, held.clock))
                self.data.labels[captions[0]] = label
        held.sent, self._task = [], None
        if ranks:
            ordered = [(one, other) if label == 1 else (other, one) for (one, other), label, _ in held.labels if label]
            better, worse = [one for one, _ in ordered], [other for _, other in ordered]
            self.data.words.learn_pairs(better, worse, self.settings)
        elif self.settings.variant == "classifier":
            known = np.asarray([label for _, label, _ in held.labels], dtype=np.float64)
            self.data.words.learn_labels([names[0] for names, _, _ in held.labels], known, self.settings)

    def _queue(self, captions: Iterable[str]) -> None:
        """Add captions that have never been queued, while there is room."""
        known = set(self.data.captions.known)
        for caption in dict.fromkeys(captions):
            if caption in known:
                continue
            if len(self.data.captions.queue) >= self.settings.queue:
                self.metrics["oni/dropped"] = self.metrics.get("oni/dropped", 0.0) + 1
                continue
            self.data.captions.queue.append(caption)
            self.data.captions.known.append(caption)

    def _paid(self, tree: Tree, captions: Mapping[int, str]) -> Floats:
        """[N]: the reward of each observation of a tree."""
        paid = np.zeros(tree.nodes)
        nodes = list(captions)
        values = self._values([captions[node] for node in nodes])
        counts = [occurrences(tree, node, captions) for node in nodes]
        paid[nodes] = self.settings.coef * values / np.asarray(counts, dtype=np.float64) ** self.settings.power
        return paid

    def _values(self, captions: Sequence[str]) -> Floats:
        """[n]: the values of captions; 0 before the first label."""
        if self.settings.variant == "retrieval":
            return np.asarray([self.data.labels.get(caption, 0) for caption in captions], dtype=np.float64)
        if not self.data.captions.labels or not captions:
            return np.zeros(len(captions))
        scores = self.data.words.scores(captions)
        if self.settings.variant == "classifier":
            return (sigmoid(scores) > self.settings.limit).astype(np.float64)
        self.data.scale.add(scores)
        distance = self.data.scale(scores)
        return np.where(distance > self.settings.limit, distance, 0.0)
