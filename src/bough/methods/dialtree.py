"""DialTree-RPO (arXiv 2510.02286)."""

from dataclasses import replace

from bough.context import CallParser, Tagged
from bough.credit import MaskedSpans
from bough.explore import FormatScore, FullTree, OnTopic, Quality
from bough.train import Run, World

TAG_TOKENS = 16
"""Tokens of a pair of tags, at most."""


def dialtree(world: World, *, width: int = 3, depth: int = 4, keep: int = 8, topic: str = "") -> Run:
    """DialTree-RPO (arXiv 2510.02286): a tree that branches at every turn, pruned by the form and topic of the actions.

    Assumes an environment that can step a state twice. `RedTeam` is the paper's: an attacker, a target model, and a
    safety classifier whose rating is the reward. Malformed actions are pruned, with `topic` also actions that a model
    finds off the topic, and of the others all but `keep` a level. Answers have the action between tags, and the tags of
    a well-formed answer get no negative advantages, so that a bad turn does not unlearn the form (the adaptive mask).
    Tools are called in the form of the model's family, without tags and mask. The leaves of a task are one group, as in
    GRPO. Experimental: written from the abstract and a summary. The paper keeps random actions of a level, here those
    of the first branches stay.

    The warm-up of the first command ends at a held-out success of 33 % (4 of 12 attacks), from which it learns.

    Try: `bough train dialtree --on red_team warmup.demonstrations=120 warmup.epochs=8`
    Try: `bough train 'dialtree(topic=judge)' --on red_team env='RedTeam()'
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'
    policies.target='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'
    policies.classifier='OpenAi(model=llama-guard3, base_url=http://localhost:11434/v1)'`

    Args:
        world: The world.
        width: Branches of a state.
        depth: Levels with branches.
        keep: Most actions that are executed on a level.
        topic: The role of the model that judges the topic, such as "judge" or "policy"; "" for none.
    """
    quality: Quality = OnTopic(role=topic) if topic else FormatScore()
    grown = FullTree(width=width, depth=depth, keep=keep, min_quality=2.0, quality=quality)
    if isinstance(world.parser, CallParser):
        return world.run(explorer=grown)
    return world.run(
        explorer=grown,
        credit=MaskedSpans(span="tag", only="negative"),
        parser=Tagged(),
        sampling=replace(world.sampling, max_tokens=world.sampling.max_tokens + TAG_TOKENS),
    )
