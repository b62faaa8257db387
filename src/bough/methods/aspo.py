"""ASPO (arXiv 2508.19201)."""

from bough.credit import Aspo
from bough.needs import CALLS, needs_of
from bough.train import Run, World


def aspo(world: World, *, mark: str | None = None) -> Run:
    """ASPO (arXiv 2508.19201): successful paths gain more the earlier their first marked turn.

    Assumes turns with a mark, and known success. The paper marks the first run of code. The default mark is the first
    call of a tool in a world of tools, elsewhere the first action that the environment understands. It acts where the
    position of the mark differs between successful paths of a task. In two steps on `sokoban`, 31 of 2,031 advantages
    changed, of tasks where a path began with an impossible action. On `ledger` none did: after the world's warm-up all
    right paths of a task pay after the same lookups, and it acts when some look up more than others. Weights -2 and 0.7
    are the paper's. The released code was not found.

    Try: `bough train aspo --on sokoban`
    Try: `bough train 'aspo(mark=call:pay)' --on ledger`

    Args:
        world: The world.
        mark: The mark; "call:pay" for the first call of the tool `pay`.
    """
    default = "call" if CALLS in needs_of(world.env) else "valid"
    return world.run(credit=Aspo(mark=default if mark is None else mark))
