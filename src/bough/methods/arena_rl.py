"""ArenaRL (arXiv 2601.06487)."""

from bough.appraise import Tournament
from bough.appraise.topologies import Topology
from bough.needs import POLICY
from bough.reward import Judged
from bough.train import Run, World


def arena_rl(
    world: World, *, judge: str = POLICY, topology: Topology = "single_elimination", n: int = 1, rank: float = 1.0
) -> Run:
    """ArenaRL (arXiv 2601.06487): a tournament of pairwise comparisons ranks the paths of a task; the rank is paid.

    Assumes a model that can compare two paths: set `judge` and `models`, else the policy compares its own. The best
    path of a task is paid `rank`, the worst 0; GRPO's advantage is of that. The world's rewards stay: for a task
    without them, as in the paper, add `rewards='[Judged(column=rank)]'`. A bracket needs about four questions for each
    path.

    Try: `bough train 'arena_rl(judge=judge)' --on frozenlake
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`
    """
    return world.run(
        appraisers=(Tournament(role=judge, topology=topology, n=n),),
        rewards=(*world.rewards, Judged(column="rank", weight=rank)),
    )
