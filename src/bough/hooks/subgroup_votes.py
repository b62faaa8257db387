"""Rewards without labels: agreement with a vote of the task's own paths."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.path_votes import PathVotes, best_size, path_votes, winners
from bough.needs import ENTROPIES, Need
from bough.piece import AtLeast, Between, piece
from bough.tree import Rewarded, RewardRange


@piece
class SubgroupVotes:
    """SCOPE's pseudo-labels (arXiv 2512.15146): a path is paid for the answer that a vote of its subgroup finds.

    The answer is the last action of a path that ends by itself, in lower case, or what `pattern` finds in it. The n
    paths of a task are cut into subgroups of s consecutive paths. The label of a subgroup is the answer with the most
    confidence among `share` of all n paths, drawn for it. A path whose answer is its label is paid `weight` in the
    channel "vote", at its leaf; an answer that wins no vote, and a path without an answer, are paid nothing.

    Of the sizes 1, 2, 4, ... and n, the batch takes the one on the Pareto front of r, the share of paid paths, and d,
    the number of different labels of a task, that has the least

        sqrt(reward_weight * (1 - r)^2 + (1 - reward_weight) * (1 - d)^2),        r and d scaled to 0 ... 1 on the front

        size  1    2    4    16    32        r  .30  .45  .50  .60  .62        d  6  4  3  1.5  1
        distance  .837  .496  .454  .496  .548                                   the size is 4

    Confidence is the mean over a path's turns of exp(-H), with H the mean entropy of the turn's tokens. The answers a,
    a, a, b, b with confidences 1, 1.2, 1.1, 2, 1.9 have the label b, by majority a.

    Differences from the paper: its confidence is the negative mean log-probability of the k likeliest tokens, and its
    steps are paragraphs; trees store entropies. In released code an answer that is not parsed shifts the confidences of
    those after it, and labels are drawn again once the size is chosen. Here the measured labels are paid.

    Metrics: `vote/size`, the mean size; `vote/labels`, different labels of a task; `vote/reward`, the share of paid
    paths; `vote/answered`, the share of paths with an answer.

    Attributes:
        confidence: "entropy", "probability" (the geometric mean probability of a turn's tokens), or "none": each path
            has one vote.
        size: Paths of a subgroup; 0 chooses it by the front, -1 is all paths.
        share: Of the task's paths, the fraction that votes on a label, above 0 and up to 1.
        reward_weight: lambda, from 0 to 1.
        weight: Reward of agreement.
        pattern: Regular expression of the answer in the action, with the group that holds it; "" for all of it.
    """

    confidence: Literal["entropy", "probability", "none"] = "entropy"
    size: Annotated[int, AtLeast(-1, "1 or more, 0 for the front, or -1 for all")] = 0
    share: Annotated[float, Between(0, 1, "a number above 0 and up to 1", above=True)] = 0.5
    reward_weight: Annotated[float, Between(0, 1)] = 0.7
    weight: float = 1.0
    pattern: str = ""

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(
                f"SubgroupVotes.pattern: got {self.pattern!r}; need a regular expression: {error}"
            ) from error

    @property
    def needs(self) -> frozenset[Need]:
        """Entropies, for a confidence by them."""
        return frozenset({ENTROPIES}) if self.confidence == "entropy" else frozenset()

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """`weight` for agreement."""
        return {"vote": RewardRange.of(0, 1, weight=self.weight, per="path")}

    def build(self, setup: HookSetup) -> "SubgroupVotesState":
        """Return the voter; it keeps nothing across steps."""
        return SubgroupVotesState(self, setup)


class SubgroupVotesState(BatchHook[SubgroupVotes]):
    """Votes on every batch."""

    def __init__(self, settings: SubgroupVotes, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self._metrics: list[dict[str, float]] = []

    def transform(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The trees with the channel "vote".

        Raises:
            ValueError: when a reward pays this channel.
        """
        for each in rewarded:
            if "vote" in each.channels:
                raise ValueError("SubgroupVotes: got a reward with the channel 'vote'; need a name of its own for each")
        cast, places = self._ballots(rewarded)
        labels, size = self._labels(cast, np.random.default_rng(seed))
        paid = [np.zeros(each.tree.nodes) for each in rewarded]
        agrees = [path.agrees(label) for path, label in zip(cast, labels, strict=True)]
        for owners, leaves, agree in zip(places, (path.leaf for path in cast), agrees, strict=True):
            for tree, leaf, won in zip(owners, leaves.tolist(), agree.tolist(), strict=True):
                paid[tree][leaf] = self.settings.weight * won
        if cast:
            paths, answered = sum(map(len, agrees)), sum(int((path.answer >= 0).sum()) for path in cast)
            self._metrics.append(
                {
                    "vote/size": size,
                    "vote/labels": float(np.mean([_different(label) for label in labels])),
                    "vote/reward": float(sum(agree.sum() for agree in agrees)) / max(1, paths),
                    "vote/answered": answered / max(1, paths),
                }
            )
        return [
            replace(each, channels={**each.channels, "vote": pay}) for each, pay in zip(rewarded, paid, strict=True)
        ]

    def _ballots(self, rewarded: Sequence[Rewarded]) -> tuple[list[PathVotes], list[list[int]]]:
        """By task, the paths with their answers, and the tree of each path."""
        tasks = dict[str, list[int]]()
        for number, each in enumerate(rewarded):
            if not each.tree.replayed:
                tasks.setdefault(each.tree.task.id, []).append(number)
        found, places = list[PathVotes](), list[list[int]]()
        for members in tasks.values():
            trees = [rewarded[number].tree for number in members]
            votes = path_votes(trees, self.settings.confidence, self.settings.pattern)
            if len(votes.leaf):
                found.append(votes)
                places.append([members[tree] for tree in votes.tree.tolist()])
        return found, places

    def _labels(self, cast: Sequence[PathVotes], rng: np.random.Generator) -> tuple[list[NDArray[np.int64]], float]:
        """For each task [paths] the labels of the chosen size, -1 for none; and the mean size."""
        settings = self.settings
        if not cast:
            return [], 0.0
        most = max(len(path.leaf) for path in cast)
        if settings.size:
            sizes = [most if settings.size < 0 else settings.size]
        else:
            sizes = [*(2**power for power in range((most - 1).bit_length())), most]
        drawn = [[winners(path, size, settings.share, rng) for path in cast] for size in sizes]
        rates = [
            float(np.concatenate([path.agrees(label) for path, label in zip(cast, labels, strict=True)]).mean())
            for labels in drawn
        ]
        counts = [float(np.mean([_different(label) for label in labels])) for labels in drawn]
        best = best_size(rates, counts, settings.reward_weight)
        return drawn[best], float(np.mean([min(sizes[best], len(path.leaf)) for path in cast]))

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step, the mean over its rounds."""
        found, self._metrics = self._metrics, []
        return {name: float(np.mean([each[name] for each in found])) for name in (found[0] if found else {})}


def _different(label: NDArray[np.int64]) -> float:
    """The number of different labels of a task."""
    return float(len(np.unique(label[label >= 0])))
