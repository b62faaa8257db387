"""TreePO on FrozenLake in text: paths branch at every segment, and are compared at each place that they came by.

Paper: TreePO (arXiv 2508.17445). Assumes an environment that can step a state twice; FrozenLake's states are values, so
branching is free. Doubling of every path until the tree is as wide as a group, ended paths taken up again, the average
over places and the whitening of the batch are those of the released script. Its segments have 512 tokens of one long
answer. Answers here follow `PlanAct`: a subgoal of up to three moves, then the move, some 20 tokens. Segments have 8
tokens, so paths also branch inside an answer. Its clip of 0.2 and 0.28 is that of grpo_frozenlake, which adds a KL
term that the paper lacks. The learning rate is that of grpo_frozenlake: a model this small learns from scratch,
where papers tune large ones with 1e-6.
"""

from dataclasses import replace

from bough.context import PlanAct, Planned, Window
from bough.credit import TreePo
from bough.engine import Sampling
from bough.explore import Segments
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in under an hour on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="treepo_frozenlake",
        parser=PlanAct(every=3),
        context=Planned(context=Window(turns=1)),
        sampling=Sampling(max_tokens=32),
        explorer=Segments(width=8, tokens=8),
        credit=TreePo(),
    )
