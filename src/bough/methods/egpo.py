"""EGPO (FunRL, arXiv 2508.05118)."""

from dataclasses import replace

from bough.appraise import TaskJudge
from bough.context import ThinkingCalls, ToolCalls
from bough.credit import Egpo
from bough.curate import AcceptedTasks
from bough.train import Run, World


def egpo(world: World, *, alpha: float = 0.4, kappa: float = 2.0, judge: str = "") -> Run:
    """EGPO (FunRL, arXiv 2508.05118): GRPO with a bonus for uncertain thinking before calls of functions.

    Assumes answers with a thought before the calls, and a strict reward of calls, as `FunctionCalls` pays it: 1 when
    the calls parse and equal the reference, else 0. In worlds with calls the entropy is that of the text up to
    `</think>`; in others it is of the whole answer. On `bfcl` the reward is that of BFCL's own checks of states.
    Written from the abstract; the bonus has the form and constants of a related paper, see `Egpo`.

    With a `judge` a model judges each task and its reference calls, as in the first stage of the paper's filter of
    data, and the groups of refused tasks are dropped; the paper does it before training. Answers are stored, so a task
    is judged once in a run.

    Try: `bough train egpo --on function_calls`
    Try: `bough train egpo --on bfcl`
    Try: `bough train 'egpo(judge=judge)' --on function_calls
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Args:
        world: The world.
        alpha: Weight of the entropy, >= 0.
        kappa: The bonus is at most the advantage's size divided by this; above 1.
        judge: The role whose model judges tasks; "" for all tasks.
    """
    calls = isinstance(world.parser, ToolCalls)
    return world.run(
        parser=ThinkingCalls() if calls else world.parser,
        sampling=replace(world.sampling, entropies=True),
        appraisers=(TaskJudge(role=judge),) if judge else (),
        filters=(*((AcceptedTasks(),) if judge else ()), *world.filters),
        credit=Egpo(alpha=alpha, kappa=kappa, mark="thought" if calls else ""),
    )
