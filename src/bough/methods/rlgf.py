"""RLGF (arXiv 2306.11816)."""

from typing import Literal

from bough.credit import TreeRpo
from bough.explore import RollIns
from bough.train import Run, World


def rlgf(
    world: World,
    *,
    kind: Literal["lols", "aggrevated", "ppo_pp"] = "lols",
    guide: str = "",
    n: int = 2,
    width: int = 4,
    alpha: float = 0.5,
    mix: float = 1.0,
) -> Run:
    """RLGF (arXiv 2306.11816): a guide model's roll-ins start the policy's paths, and its roll-outs value its actions.

    Assumes an environment that can step a state twice, and a guide: an oracle or a model of a role, which need not be
    optimal. The kinds are those of the paper: "ppo_pp" (PPO++) starts the policy at states of the guide, "aggrevated"
    (AggreVaTeD) lets the guide complete each of the policy's actions, and "lols" (LOLS) draws one of them for each
    roll-in, PPO++ with probability `alpha`. The actions in one state are compared by the returns of their roll-outs;
    the paper has a critic.

    Try: `bough train 'rlgf(guide=guide)' --on sokoban models='{guide: FrozenCheckpoint(run=runs/grpo_sokoban)}'`

    Args:
        world: The world.
        kind: Which of the paper's algorithms.
        guide: The role whose model is the guide; "" for the oracle.
        n: Roll-ins of a task.
        width: Actions of the policy after a roll-in.
        alpha: Probability of PPO++ in "lols", in [0, 1].
        mix: Probability that the guide, not the policy, rolls in for PPO++, in [0, 1].
    """
    kinds = {"ppo_pp": 1.0, "aggrevated": 0.0, "lols": alpha}
    if kind not in kinds:
        raise ValueError(f"rlgf.kind: got {kind!r}; need one of {', '.join(kinds)}")
    return world.run(
        explorer=RollIns(guide=guide, n=n, width=width, ppo=kinds[kind], mix=mix),
        credit=TreeRpo(within_chains=True),
    )
