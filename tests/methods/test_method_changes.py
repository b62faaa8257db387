"""A method is GRPO, or PPO with GAE, of the same world but for what its paper changes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bough.appraise import StepPotential
from bough.cli.find import find_run, find_world
from bough.context import PlanAct, Planned, Window
from bough.credit import (
    Archer,
    BestCandidate,
    Empg,
    Filtered,
    Hae,
    Hgpo,
    PerplexityBand,
    Poad,
    Salt,
    Searched,
    SlateCredit,
    Spae,
    Srgpo,
    StepGrpo,
    StratifiedGrpo,
    TreePo,
    TreePs,
    TreeRpo,
    TurnPpo,
    WithTargets,
    lite_ppo,
    ntpo,
)
from bough.explore import (
    Correct,
    CriticQuality,
    EqualScore,
    FirstInvalid,
    FirstOracleMistake,
    FirstPoorAction,
    FullTree,
    LlmJudge,
    OracleMatch,
    Segments,
    Slate,
)
from bough.hooks import ExIt, Snapshots
from bough.objective import (
    ClippingBias,
    Dpo,
    Epo,
    Imitation,
    Kl,
    Normalizer,
    OffPolicyClip,
    Orpo,
    Pairs,
    PpoClip,
    Reinforce,
    Sum,
    ValueClip,
)
from bough.policy import FrozenCritic, UtteranceCritic, ValueHead
from bough.reward import EnvReward, InvalidAction
from bough.search import bfs_prover, cosmos, spar
from bough.train import Demonstrations, Refined

WORLD = find_world("sokoban")
KL = Kl(coefficient=0.04)
ROUNDS: Mapping[str, object] = {
    "regularizers": (),
    "optimizer": replace(WORLD.optimizer, warmup_steps=0, epochs=4),
    "evaluation": replace(WORLD.evaluation, every=1),
    "steps": 3,
    "batch_tasks": 64,
}
SUBGOALS: Mapping[str, object] = {
    "parser": PlanAct(every=3),
    "context": Planned(context=Window(turns=1)),
    "sampling": replace(WORLD.sampling, max_tokens=32),
}
CORRECTED: Mapping[str, object] = {
    "regularizers": (),
    "objective": OffPolicyClip(objective=Sum(terms=(PpoClip(), KL)), mu=0.1, denominator="old", shape=0.0),
    "demonstrations": Demonstrations(from_trees=True),
}
IGT = replace(WORLD.optimizer, momentum="igt", learning_rate=0.01, igt_weight=0.3)
POOR = FirstPoorAction(quality=CriticQuality(), below=0.5)

OVER_GRPO: Mapping[str, Mapping[str, object]] = {
    "archer": {
        "hooks": (UtteranceCritic(layers=2, steps=8, batch_turns=128, capacity_turns=20_000),),
        "credit": Archer(),
        "objective": Reinforce(),
        "steps": 120,
    },
    "bfs_prover_v2": {
        **ROUNDS,
        "explorer": replace(bfs_prover(width=4, alpha=2.0), rounds=100),
        "credit": PerplexityBand(credit=Filtered()),
        "objective": Imitation(),
    },
    "cosmos": {
        **ROUNDS,
        "explorer": cosmos(simulations=40),
        "credit": Searched(relative=False),
        "objective": Orpo(pairs=Pairs(unit="turn", choice="best_worst")),
    },
    "digi_q": {
        "explorer": Slate(quality=EqualScore(), candidates=8),
        "hooks": (FrozenCritic(warmup_steps=30),),
        "credit": BestCandidate(threshold=0.05),
        "objective": Imitation(),
        "normalizer": Normalizer(by="unique_tokens"),
        "steps": 130,
    },
    "dynamic_tree_rpo": {
        "explorer": FullTree(width=2, depth=3, heat=0.5, trunk=2),
        "credit": TreeRpo(),
        "objective": Sum(terms=(PpoClip(), Imitation(coefficient=0.1))),
    },
    "empg": {"credit": Empg()},
    "epo": {"objective": Sum(terms=(PpoClip(), Epo()))},
    "exit": {"hooks": (ExIt(),)},
    "hgpo": {"context": Window(turns=3), "credit": Hgpo(history=2)},
    "lite_ppo": {"credit": lite_ppo(), "regularizers": ()},
    "n_harpg": {"optimizer": replace(IGT, momentum="harpg")},
    "npg_igt": {"optimizer": IGT},
    "s3rl": {"hooks": (Snapshots(episodes=50),)},
    "salt": {"credit": Salt()},
    "scope": {**CORRECTED, "explorer": Correct(blame=FirstOracleMistake(invalid=False))},
    "scope(teacher=t)": {**CORRECTED, "explorer": Correct(blame=FirstInvalid(), teacher="t")},
    "scope(judge=j)": {**CORRECTED, "explorer": Correct(blame=FirstPoorAction(quality=LlmJudge(role="j")))},
    "scope(critic=true)": {
        **CORRECTED,
        "explorer": Correct(blame=POOR),
        "critic": ValueHead(detach=True),
        "credit": WithTargets(),
        "objective": Sum(terms=(CORRECTED["objective"], ValueClip(clip=None))),
    },
    "slate": {
        "explorer": Slate(quality=OracleMatch(), candidates=5, temperature=0.7),
        "credit": SlateCredit(),
        "normalizer": Normalizer(by="unique_tokens"),
    },
    "spae": {"appraisers": (StepPotential(field="", n=5),), "credit": Spae()},
    "spar": {
        **ROUNDS,
        "explorer": spar(first=1, depth=4),
        "credit": Searched(),
        "objective": Sum(
            terms=(Dpo(pairs=Pairs(unit="turn")), Imitation(coefficient=0.1, of="demonstrations")),
        ),
        "demonstrations": Demonstrations(revise=Refined()),
        "optimizer": replace(WORLD.optimizer, warmup_steps=0),
        "reference": "step",
    },
    "srgpo": {
        "rewards": (EnvReward(), InvalidAction(penalty=0.1)),
        "credit": Srgpo(step="invalid_action", weight=0.5, size=16),
    },
    "step_grpo": {"credit": StepGrpo(discount=0.95)},
    "stratified_grpo": {"credit": StratifiedGrpo(blend=0.8)},
    "tree_ps": {"explorer": FullTree(width=3, depth=6, keep=12, merge=True), "credit": TreePs()},
    "treepo": {
        **SUBGOALS,
        "explorer": Segments(width=8, tokens=8),
        "credit": TreePo(),
        "objective": PpoClip(high=0.28),
    },
    "turn_ratio": {"objective": PpoClip(ratio="turn")},
}
OVER_PPO: Mapping[str, Mapping[str, object]] = {
    "hiper": {**SUBGOALS, "credit": Hae(), "critic": ValueHead(heads=("low", "high", "switch"))},
    "ntpo": {"credit": ntpo()},
    "poad": {"credit": Poad()},
    "st_ppo": {
        "credit": TurnPpo(discount=1.0, lam=1.0),
        "objective": Sum(terms=(ClippingBias(objective=PpoClip(ratio="turn")), ValueClip())),
        "optimizer": replace(WORLD.optimizer, minibatches=4),
    },
    "st_ppo(unit=token)": {
        "objective": Sum(terms=(ClippingBias(objective=PpoClip(ratio="token")), ValueClip())),
        "optimizer": replace(WORLD.optimizer, minibatches=4),
    },
}


@pytest.mark.parametrize("method", [*OVER_GRPO, *OVER_PPO])
def test_a_method_changes_what_its_paper_changes(method: str) -> None:
    base, fields = ("grpo", OVER_GRPO[method]) if method in OVER_GRPO else ("ppo", OVER_PPO[method])
    run = find_run(method, WORLD)
    assert run == find_run(base, WORLD).replace(name=run.name, **fields)
