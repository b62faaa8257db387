"""TAPO (CodeV, arXiv 2511.19661)."""

from bough.appraise import ToolJudge
from bough.credit import dr_grpo
from bough.needs import POLICY
from bough.reward import Judged
from bough.train import Run, World


def tapo(world: World, *, tools: float = 0.5, judge: str = POLICY, n: int = 1, unneeded: str = "") -> Run:
    """TAPO (CodeV, arXiv 2511.19661): adds a judge's mean rating of the tool calls, which reads tool texts alone.

    Assumes calls of tools, a model that can judge (set `judge` and `models`, else the policy judges itself), and a
    success that pays 1: with `tools` below 1 a right answer without evidence stays above a wrong one with it. The
    advantage is the return less the task's mean, for all tokens of a path. Written from a third-party reading of the
    paper, whose tasks are about images and whose policy is fine-tuned first; it drops tasks that more than .9 of 8
    attempts solve. A path without calls is paid nothing for them.

    Try: `bough train 'tapo(judge=judge)' --on search
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Args:
        world: The world.
        tools: Weight of the rating, which is from -1 to 1; above 0 and below 1.
        judge: The role whose model rates calls.
        n: Number of votes on each call.
        unneeded: A field of `Task.data` that is true for tasks without need of a tool, where only bad calls count.
    """
    if not 0 < tools < 1:
        raise ValueError(
            f"tapo: got tools={tools}; need a number above 0 and below 1, so that a success is paid more than calls"
        )
    return world.run(
        appraisers=(ToolJudge(role=judge, n=n, unneeded=unneeded),),
        rewards=(*world.rewards, Judged(column="tool_use", weight=tools)),
        credit=dr_grpo(),
    )
