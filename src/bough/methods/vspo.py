"""VSPO of PRS + VSPO (arXiv 2512.07478)."""

from bough.credit import DampedCopies
from bough.explore import Chains
from bough.hooks import ValueResampling
from bough.methods.prs import prs
from bough.train import Run, World


def vspo(world: World, *, best: float = 0.0, staged: bool = True, field: str = "", column: str = "", n: int = 5) -> Run:
    """PRS + VSPO (arXiv 2512.07478): staged rewards, and tied groups replaced by valuable ones with damped copies.

    Assumes several paths of each task, whose largest return is `best`; 0 takes 1 for the world's rewards, and 1 more
    for the staged ones. With `staged` false it is VSPO alone, on the world's rewards; `field` and `column` are those of
    `prs`. Five paths of a task, as in the paper.

    Try: `bough train 'vspo(field=answers)' --on search`
    """
    run = prs(world, field=field, column=column) if staged else world.run()
    largest = best or 1.0 + staged
    return run.replace(
        explorer=Chains(n=n),
        hooks=(ValueResampling(best=largest),),
        credit=DampedCopies(),
    )
