"""What every method changes in GRPO of the same world, as a snapshot: a changed default is a line in review."""

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.methods.test_methods import METHODS, TRAINED
from tests.settings import Settings, changes
from tests.small import world

from bough.cli.find import find_run
from bough.objective import Entropy

WORLD = world().replace(regularizers=(Entropy(coefficient=0.5),))
WITH_ARGUMENTS = (
    "aepo(paths=6,balance=0.2,penalty=0.1,epochs=3)",
    "arpo(paths=6,chains=2)",
    "aspo(mark=pay)",
    "asymre(shift=-0.2)",
    "ats(simulations=3)",
    "ats(source=hints)",
    "b_coder(tau=0.5,programs=5,per_step=2,imitation=0.9,advantage=0.2)",
    "chord(demonstrations=5,per_step=2)",
    "cpi(eta=0.1,width=4,depth=1,trunk=2,epochs=3)",
    "cr_planner(kinds=[up,down],width=3,simulations=5)",
    "cts(keep=3)",
    "dialtree(topic=judge)",
    "dialtree(width=2,depth=3,keep=5)",
    "dta_llama(width=3)",
    "itool(simulations=5,gap=0.3,stages=2)",
    "iwocs(key=slip,values=[0.1,0.5],probe_steps=2,train_steps=3)",
    "latr(paths=4,windows=[2,5])",
    "loop(paths=3,epochs=4)",
    "mcts_dpo(simulations=5)",
    "med_s3(simulations=5,rollouts=3,drop=0.5)",
    "mps_prover(width=3)",
    "opmd(temperature=2)",
    "q_star(expansions=5,width=2,discount=0.8)",
    "r_to_q(width=2,samples=3,beta=0.2)",
    "rlgf(guide=judge,n=3,alpha=0.25)",
    "rlgf(kind=aggrevated,width=2)",
    "rlgf(kind=ppo_pp,mix=0.5)",
    "scope(critic=true)",
    "scope(judge=j)",
    "scope(teacher=t)",
    "seeupo(clip=0.1)",
    "spar(judge=judge)",
    "st_ppo(unit=token)",
    "starwm(mu=0.3,per_tree=2)",
    "tp_llama(simulations=5)",
)
"""Arguments that reach the pieces."""


@pytest.mark.parametrize("method", [*METHODS, *WITH_ARGUMENTS])
def test_settings(method: str, snapshot: SnapshotAssertion) -> None:
    command, on = TRAINED.get(method, (method, None))
    base = on or WORLD
    assert changes(find_run(command, base), find_run("grpo", base)) == snapshot(extension_class=Settings)
