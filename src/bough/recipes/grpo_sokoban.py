"""GRPO on Sokoban in text: push the box onto its target in rooms never seen before.

Paper: DeepSeekMath (arXiv 2402.03300) for GRPO, DAPO (2503.14476) for the wider upper clip; the environment in the
manner of RAGEN (2504.20073). Assumes an oracle for the warm-up, and that an observation tells all there is to know. A
box pushed into a corner cannot be pulled out, so the agent has to look ahead; steps that undo each other are punished
by nothing but the horizon, which is five moves: as many as the rooms need at most.
"""

from bough.context import Window
from bough.credit import Grpo
from bough.engine import Sampling
from bough.env import Sokoban
from bough.explore import Chains, Limits
from bough.objective import Kl, PpoClip, Sum
from bough.policy import Tiny
from bough.reward import EnvReward
from bough.train import Heldout, Optimizer, Run, Tasks, Warmup


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return Run(
        name="grpo_sokoban",
        env=Sokoban(size=6, max_steps=5, show_border=False),
        policy=Tiny(layers=2, width=64, heads=4),
        context=Window(turns=1),
        explorer=Chains(n=8),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=4),
        rewards=(EnvReward(),),
        credit=Grpo(),
        admit=(),
        objective=Sum(terms=(PpoClip(high=0.28), Kl(coefficient=0.04))),
        # Small steps along the gradient of a whole batch: a net this small loses the warm-up to noise in larger ones.
        optimizer=Optimizer(learning_rate=2e-4, minibatches=1, warmup_steps=20),
        warmup=Warmup(demonstrations=150, epochs=10, learning_rate=1e-3, batch_tokens=1024),
        steps=100,
        batch_tasks=16,
        tasks=Tasks(split="train", count=800),
        heldout=Heldout(tasks=Tasks(split="test", count=300), every=20),
        threads=1,
    )
