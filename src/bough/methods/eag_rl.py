"""EAG-RL (arXiv 2508.13579)."""

from bough.hooks import AttentionReward
from bough.objective import PpoClip
from bough.train import Run, World


def eag_rl(world: World, *, key: str = "salient", weight: float = 0.5, feature: str = r"[^\n]+") -> Run:
    """EAG-RL (arXiv 2508.13579): GRPO with a reward for attention to the features that an expert finds salient.

    Assumes tasks with a list of the salient texts in their data, under `key`, such as those of a file (`tasks.file`);
    the others are paid by the world's rewards alone. The evidence of `search` is such a list: a path is paid for
    attention to the lines of its results that state the facts of the question. The second of two stages: the first,
    `eag_search`, imitates the paths of a search that an expert guides. The paper's expert is a model of medical
    records, which also lists the salient features; it widens the upper clip where the policy is certain, here it is
    0.28 throughout.

    Try: `bough train 'eag_rl(key=evidence)' --on search`

    Args:
        world: With salient texts in its tasks' data.
        key: The name of the list.
        weight: Reward of a full overlap.
        feature: Regular expression of a feature of the prompt: a line by default.
    """
    return world.run(hooks=(AttentionReward(key=key, weight=weight, feature=feature),), objective=PpoClip(high=0.28))
