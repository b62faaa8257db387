"""DialTree-RPO (arXiv 2510.02286)."""

from dataclasses import replace

from bough.context import CallParser, Tagged
from bough.credit import MaskedSpans
from bough.explore import FormatScore, FullTree
from bough.train import Run, World

TAG_TOKENS = 16
"""Tokens of a pair of tags, at most."""


def dialtree(world: World, *, width: int = 3, depth: int = 4, keep: int = 8) -> Run:
    """DialTree-RPO (arXiv 2510.02286): a tree that branches at every turn, pruned by the form of the actions.

    Assumes an environment that can step a state twice. Experimental: written from the abstract and a summary. Answers
    have the action between tags, and the tags of a well-formed answer get no negative advantages, so that a bad turn
    does not unlearn the form (the adaptive mask). Tools are called in the form of the model's family, without tags and
    mask. The leaves of a task are one group, as in GRPO. The paper's agent attacks a target model and is rewarded by a
    safety classifier; here the environment and its reward are the world's.
    """
    grown = FullTree(width=width, depth=depth, keep=keep, quality=FormatScore())
    if isinstance(world.parser, CallParser):
        return world.run(explorer=grown)
    return world.run(
        explorer=grown,
        credit=MaskedSpans(span="tag", only="negative"),
        parser=Tagged(),
        sampling=replace(world.sampling, max_tokens=world.sampling.max_tokens + TAG_TOKENS),
    )
