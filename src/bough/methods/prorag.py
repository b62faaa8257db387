"""ProRAG (arXiv 2601.21912)."""

from bough.credit import ProRag
from bough.critics import FrozenRewardModel, RewardModel
from bough.explore import BeforeUpdates, Chains
from bough.searches.prorag import prorag as search
from bough.train import Run, World


def prorag(
    world: World,
    *,
    beta: float = 0.5,
    paths: int = 8,
    collect: int = 4,
    simulations: int = 50,
    reward_model: str = "",
) -> Run:
    """ProRAG (arXiv 2601.21912): a reward model of steps, learned from searches, beside the outcome in GRPO.

    Assumes an environment that can step a state twice, with turns as steps. After the world's warm-up the first
    `collect` steps grow trees by PUCT, the search `prorag`; the policy is not updated. Siblings whose values differ by
    .1 or more train a reward model by pairs. From then on the advantage of a turn is the z-score of the path's return
    plus `beta` times that of the turn's score; `paths` chains a task. The step of the first update still has trees of
    the search. The reward model does not change after that.

    With `reward_model`, a folder that `bough train-reward` wrote, all steps are reinforcement. Its data may then be
    larger: the paper has 200 simulations of a task. The third of the paper's four stages, imitation of paths that the
    reward model scores highly, is a run of its own with `ScoredPaths`. The paper's policy and reward model are copies
    of one model of 8B parameters, here the reward model is a small transformer; `RewardModel.path` sets another. The
    paper pays the F1 of the answer and the format; here the world's rewards are paid.

    Try: `bough train prorag --on search`
    """
    model = RewardModel(labels="pairs", estimate="value", gap=0.1)
    steps = FrozenRewardModel(model=model, warmup_steps=0 if reward_model else collect, folder=reward_model)
    chains = Chains(n=paths)
    return world.run(
        explorer=chains if reward_model else BeforeUpdates(first=search(simulations=simulations), then=chains),
        hooks=(steps,),
        credit=ProRag(beta=beta),
        steps=world.schedule.steps + steps.warmup_steps,
    )
