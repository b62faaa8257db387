"""EGPO (FunRL, arXiv 2508.05118)."""

from dataclasses import replace

from bough.context import ThinkingCalls, ToolCalls
from bough.credit import Egpo
from bough.train import Run, World


def egpo(world: World, *, alpha: float = 0.4, kappa: float = 2.0) -> Run:
    """EGPO (FunRL, arXiv 2508.05118): GRPO with a bonus for uncertain thinking before calls of functions.

    Assumes answers with a thought before the calls, and a strict reward of calls, as `FunctionCalls` pays it: 1 when
    the calls parse and equal the reference, else 0. In worlds with calls the entropy is that of the text up to
    `</think>`; in others it is of the whole answer. On `bfcl` the reward is that of BFCL's own checks of states.
    Written from the abstract; the bonus has the form and constants of a related paper, see `Egpo`.

    Try: `bough train egpo --on function_calls`
    Try: `bough train egpo --on bfcl`

    Args:
        world: The world.
        alpha: Weight of the entropy, >= 0.
        kappa: The bonus is at most the advantage's size divided by this; above 1.
    """
    calls = isinstance(world.parser, ToolCalls)
    return world.run(
        parser=ThinkingCalls() if calls else world.parser,
        sampling=replace(world.sampling, entropies=True),
        credit=Egpo(alpha=alpha, kappa=kappa, mark="thought" if calls else ""),
    )
