"""A reward for reading the parts of the prompt that an expert finds salient."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.piece import piece
from bough.tree import Floats, Ints, Kind, Rewarded, RewardRange, Tree, context, counted, path, turn_start
from bough.tree.endings import path_reward_nodes


@piece
class AttentionReward:
    """EAG-RL's attention alignment (arXiv 2508.13579): a path is paid for attention to an expert's salient features.

    The features of a prompt are the matches of `feature` in its text, such as its lines. The salient ones, S, contain a
    text of the list `key` in the task's data: the measurements that a model of the task finds important, the columns of
    the right query. An entry of the list that is a mapping counts by its "text", such as the evidence of `SearchQa`.
    The policy's attention to a feature is the attention of the tokens of the path's last action to the tokens of the
    feature, the mean over layers and heads, divided by the feature's tokens. With T the |S| features of most attention:

        reward = weight * |T and S| / |T or S|

    in the channel "attention", at the last action, or at the leaf where other paths go through that action. Features a
    b c d with attention .4 .3 .2 .1, of which a and c are salient: T is a and b, the reward 1/3 of the weight. A task
    without the list, or whose texts are not in the prompt, has 0. The attention is that of the policy before the
    update.

    The paper averages over the feature's tokens as well, and has models of medical records for experts; which layers
    it reads could not be checked.

    Metrics: `attention/overlap`, the mean overlap over the paths with salient features; `attention/salient`, the share
    of those paths.

    Attributes:
        key: The name of a list in `Task.data`: texts, or mappings with a "text".
        weight: Reward of a full overlap.
        feature: Regular expression of a feature.
    """

    key: str = "salient"
    weight: float = 0.5
    feature: str = r"[^\n]+"

    def __post_init__(self) -> None:
        try:
            re.compile(self.feature)
        except re.error as error:
            raise ValueError(
                f"AttentionReward.feature: got {self.feature!r}; need a regular expression: {error}"
            ) from error
        if not self.key:
            raise ValueError("AttentionReward.key: got ''; need the name of a list in the tasks' data")

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """`weight` for a full overlap."""
        return {"attention": RewardRange.of(0, 1, weight=self.weight, per="path")}

    @property
    def data_field(self) -> str:
        """See `ReadsData`."""
        return self.key

    def build(self, setup: HookSetup) -> "AttentionRewardState":
        """Return a state; it keeps nothing across steps."""
        return AttentionRewardState(self, setup)


class AttentionRewardState(BatchHook[AttentionReward]):
    """Reads the policy's attention on every batch."""

    def __init__(self, settings: AttentionReward, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self._overlaps: list[float] = []
        self._paths = 0

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """The trees with the channel "attention"."""
        return [self._paid(each) for each in rewarded]

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        overlaps, paths = self._overlaps, max(1, self._paths)
        self._overlaps, self._paths = [], 0
        mean = float(np.mean(overlaps)) if overlaps else 0.0
        return {"attention/overlap": mean, "attention/salient": len(overlaps) / paths}

    def _paid(self, rewarded: Rewarded) -> Rewarded:
        tree = rewarded.tree
        paid: Floats = np.zeros(tree.nodes)
        texts, start = self._salient(tree), turn_start(tree)
        ends: Ints = counted(tree)
        for leaf, place in zip(ends.tolist(), path_reward_nodes(tree, ends).tolist(), strict=True):
            walk = path(tree, leaf)
            acts = walk[tree.kind[walk] == Kind.ACTION]
            if len(acts) and not tree.replayed:
                first = int(start[acts[-1]])
                # A turn may have several nodes.
                action = np.concatenate([tree.tokens_of(node) for node in acts[acts >= first].tolist()])
                found = self._overlap(context(tree, first), action, texts)
                self._paths += 1
                if found is not None:
                    paid[place] = self.settings.weight * found
                    self._overlaps.append(found)
        return replace(rewarded, channels={**rewarded.channels, "attention": paid})

    def _salient(self, tree: Tree) -> list[str]:
        """The salient texts of a task; none where its data lack them."""
        listed = tree.task.data.get(self.settings.key)
        entries = cast("Sequence[object]", listed) if isinstance(listed, list | tuple) else ()
        texts = (
            cast("Mapping[str, object]", each).get("text") if isinstance(each, Mapping) else each for each in entries
        )
        return [str(text) for text in texts if text]

    def _overlap(self, prompt: Ints, action: Ints, texts: Sequence[str]) -> float | None:
        """The overlap of an action's attention to its prompt; None without a salient feature."""
        access = self.setup.policy
        assert access is not None
        features = find_features(prompt.tolist(), access.text, self.settings.feature) if texts else []
        salient = {at for at, (text, _) in enumerate(features) if any(each in text for each in texts)}
        if not salient or not len(action):
            return None
        (attention,) = access.attention([np.concatenate([prompt, action]).astype(np.int32)])
        # The state that predicts a token is that of the token before it.
        read = attention[len(prompt) - 1 : len(prompt) + len(action) - 1].mean(0)
        return overlap([float(read[places].mean()) for _, places in features], salient)


def find_features(
    prompt: Sequence[int], text_of: Callable[[Sequence[int]], str], pattern: str
) -> list[tuple[str, list[int]]]:
    """The features of a prompt: the text of each, and the tokens that overlap it."""
    # A token's text may depend on those before it.
    ends = [0, *(len(text_of(prompt[: at + 1])) for at in range(len(prompt)))]
    found: list[tuple[str, list[int]]] = []
    for match in re.finditer(pattern, text_of(prompt)):
        begin, end = match.span()
        places = [at for at in range(len(prompt)) if ends[at + 1] > begin and ends[at] < end]
        if places:
            found.append((match[0], places))
    return found


def overlap(attention: Sequence[float], salient: set[int]) -> float:
    """Jaccard overlap of the salient features with as many of most attention, ties to the first.

    Examples:
        >>> round(overlap([0.4, 0.3, 0.2, 0.1], {0, 2}), 4)
        0.3333
    """
    order = sorted(range(len(attention)), key=lambda at: (-attention[at], at))
    top = {*order[: len(salient)]}
    return len(top & salient) / len(top | salient)
