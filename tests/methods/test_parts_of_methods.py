"""What makes a method its paper's: the explorer, the credit rule, the loss and the hooks that it brings to a world."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.small import world

from bough import credit, objective
from bough.cli.find import find_run
from bough.credit import (
    Arpo,
    Aspo,
    AsymRe,
    ConservativeBellman,
    ConservativeMixture,
    Filtered,
    KindValues,
    OpmdBaseline,
    Process,
    QLearning,
    RestMcts,
    Searched,
    TreeRpo,
    UsefulTurns,
    dr_grpo,
)
from bough.curate import SmallAdvantage
from bough.explore import Chains, EntropyForks, FormatScore, FullTree, Latr, OnTopic, RollIns
from bough.hooks import FailureSampling, Hindsight, WorstCases
from bough.objective import (
    Aepo,
    Chord,
    Dpo,
    Entropy,
    MixtureKl,
    Normalizer,
    Opmd,
    Pairs,
    PpoClip,
    Rec,
    Reinforce,
    SeeUpo,
    SftMix,
    SimPo,
    TokenQ,
    Tpo,
    add,
    loop_clip,
)
from bough.policy import UtteranceCritic
from bough.search import Descend, MeanBackup, SampleKinds, Uct, dfsdt, implicit_beam, mcts
from bough.search import ats as search_as_text
from bough.search import mps_prover as prover_search
from bough.search import q_star as q_star_search
from bough.train import Demonstrations, EarlierVersion, ParallelPaths, PredictObservations, Refined, SearchTraces

WORLD = world().replace(regularizers=(Entropy(coefficient=0.5),))
OWN = WORLD.optimizer
SPLIT = {"optimizer": replace(OWN, minibatches=4), "regularizers": ()}
CRITIC = UtteranceCritic(layers=2, steps=8, batch_turns=128, capacity_turns=20_000, warmup_steps=10)
ROUND = {"optimizer": replace(OWN, epochs=4, warmup_steps=0), "reference": "step", "regularizers": ()}
WRITTEN = {"credit": Filtered(max_paths=1), "objective": SftMix(mu=1.0), "regularizers": (), "filters": ()}

PARTS: Mapping[str, Mapping[str, object]] = {
    # With a single update of a batch the ratio is 1 throughout, and nothing is clipped.
    "aepo(paths=6,balance=0.2,penalty=0.1,epochs=3)": {
        "explorer": EntropyForks(paths=6, balance=0.2, penalty=0.1),
        "objective": Aepo(),
        "optimizer": replace(OWN, epochs=3),
    },
    "arpo(paths=6,chains=2)": {"explorer": EntropyForks(paths=6, chains=2), "credit": Arpo()},
    "aspo(mark=call:pay)": {"credit": Aspo(mark="call:pay")},
    "asymre(shift=-0.2)": {**SPLIT, "credit": AsymRe(shift=-0.2), "objective": Rec(keep="none")},
    "ats(simulations=3)": {
        **WRITTEN,
        "explorer": mcts(width=4, simulations=3),
        "sampling": replace(WORLD.sampling, max_tokens=96),
        "demonstrations": Demonstrations(revise=SearchTraces(characters=24, max_lines=8)),
    },
    "ats(source=hints)": {
        **WRITTEN,
        "explorer": search_as_text(),
        "demonstrations": Demonstrations(from_trees=True),
    },
    "b_coder(tau=0.5,programs=5,per_step=2,imitation=0.9,advantage=0.2)": {
        "credit": ConservativeBellman(tau=0.5),
        "objective": SftMix(objective=TokenQ(tau=0.5, value_first=0.2), mu=0.5),
        "demonstrations": Demonstrations(count=5, per_step=2),
        "regularizers": (),
    },
    "chord(demonstrations=5,per_step=2)": {
        "objective": Chord(objective=add(PpoClip(), WORLD.regularizers)),
        "demonstrations": Demonstrations(count=5, per_step=2),
    },
    "cpi(eta=0.1,width=4,depth=1,trunk=2,epochs=3)": {
        "explorer": FullTree(width=4, depth=1, trunk=2),
        "credit": ConservativeMixture(eta=0.1),
        "objective": MixtureKl(),
        "optimizer": replace(OWN, epochs=3),
    },
    "cr_planner(kinds=[up,down],width=3,simulations=5)": {
        "explorer": replace(
            mcts(width=1, simulations=5, revisit=False), expand=SampleKinds(kinds=("up", "down"), width=3)
        ),
        "credit": Filtered(max_paths=2, value_targets=KindValues()),
    },
    # The critic learns from the relabelled paths too, so it stands after the hook that adds them.
    "cts(keep=3)": {"hooks": (Hindsight(keep=3), CRITIC), "credit": credit.Archer(), "objective": Reinforce()},
    "dialtree(width=2,depth=3,keep=5)": {
        "explorer": FullTree(width=2, depth=3, keep=5, min_quality=2.0, quality=FormatScore())
    },
    "dialtree(topic=judge)": {
        "explorer": FullTree(width=3, depth=4, keep=8, min_quality=2.0, quality=OnTopic(role="judge"))
    },
    "dta_llama(width=3)": {
        **WRITTEN,
        "explorer": dfsdt(width=3),
        "demonstrations": Demonstrations(revise=ParallelPaths()),
    },
    "itool(simulations=5,gap=0.3,stages=2)": {
        "explorer": mcts(width=3, simulations=5),
        "hooks": (FailureSampling(),),
        "credit": Searched(),
        "objective": SimPo(pairs=Pairs(unit="turn", gap=0.3)),
        "warmup": replace(WORLD.warmup, stages=2),
    },
    "iwocs(key=slip,values=[0.1,0.5],probe_steps=2,train_steps=3)": {
        "hooks": (WorstCases(key="slip", values=(0.1, 0.5), probe_steps=2, train_steps=3),)
    },
    "latr(paths=4,windows=[2,5])": {"explorer": Latr(paths=4, windows=(2, 5))},
    "loop(paths=3,epochs=4)": {
        "explorer": Chains(n=3),
        "credit": credit.loop(),
        "regularizers": (),
        "filters": (SmallAdvantage(threshold=0.01),),
        "objective": loop_clip(),
        "normalizer": Normalizer(by="paths"),
        "optimizer": replace(OWN, epochs=4),
    },
    "mcts_dpo(simulations=5)": {
        **ROUND,
        "explorer": mcts(width=4, simulations=5),
        "credit": Searched(),
        "objective": objective.mcts_dpo(),
    },
    "med_s3(simulations=5,rollouts=3,drop=0.5)": {
        "explorer": replace(
            mcts(width=3, rollouts=3, simulations=5, revisit=False),
            select=Descend(by=Uct(c=2.0), revisit=False),
            backup=MeanBackup(own=False),
        ),
        "credit": Filtered(max_paths=2, value_targets=Process(drop=0.5, head="value", target="action")),
    },
    "mps_prover(width=3)": {
        "explorer": prover_search(width=3),
        "credit": UsefulTurns(credit=Filtered(value_targets=RestMcts(head="value"))),
    },
    "opmd(temperature=2)": {"credit": OpmdBaseline(), "objective": Opmd(temperature=2.0), "regularizers": ()},
    "q_star(expansions=5,width=2,discount=0.8)": {
        "explorer": replace(q_star_search(width=2, discount=0.8, rounds=5), stop_value=None),
        "credit": Filtered(max_paths=2, value_targets=QLearning(discount=0.8)),
    },
    "r_to_q(width=2,samples=3,beta=0.2)": {
        "explorer": implicit_beam(width=2, samples=3, beta=0.2),
        "objective": Dpo(beta=0.2),
        # The reference of search and loss never moves.
        "models": {"reference": EarlierVersion(every=10**9)},
        "regularizers": (),
    },
    "rec": {**SPLIT, "credit": credit.rec(), "objective": Rec(keep="one_side")},
    "rlgf(guide=judge,n=3,alpha=0.25)": {
        "explorer": RollIns(guide="judge", n=3, width=4, ppo=0.25),
        "credit": TreeRpo(within_chains=True),
    },
    "rlgf(kind=aggrevated,width=2)": {"explorer": RollIns(n=2, width=2, ppo=0.0)},
    "rlgf(kind=ppo_pp,mix=0.5)": {"explorer": RollIns(n=2, width=4, ppo=1.0, mix=0.5)},
    "seeupo(clip=0.1)": {
        "credit": dr_grpo(),
        "objective": SeeUpo(clip=PpoClip(ratio="turn", low=0.1, high=0.1)),
    },
    "spar(judge=judge)": {"demonstrations": Demonstrations(revise=Refined(judge=False))},
    "starwm(mu=0.3,per_tree=2)": {
        "objective": SftMix(objective=add(PpoClip(), WORLD.regularizers), mu=0.3),
        "demonstrations": Demonstrations(revise=PredictObservations(per_tree=2)),
    },
    "tp_llama(simulations=5)": {
        **ROUND,
        "explorer": mcts(width=4, simulations=5),
        "credit": Process(label="hard"),
        "objective": objective.tp_llama(),
    },
    "tpo": {"objective": Tpo(), "regularizers": ()},
}


@pytest.mark.parametrize("method", PARTS)
def test_a_method_has_the_parts_of_its_paper(method: str) -> None:
    run = find_run(method, WORLD)
    assert run.replace(**PARTS[method]) == run  # type: ignore[arg-type]
