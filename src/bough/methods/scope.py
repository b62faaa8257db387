"""SCOPE (arXiv 2602.24110)."""

from bough.explore import Correct, FirstInvalid, FirstOracleMistake
from bough.objective import PpoClip, SftMix, add
from bough.train import Demonstrations, Run, World


def scope(world: World, *, n: int = 8, most: int = 2, invalid: bool = False, teacher: str = "") -> Run:
    """SCOPE (arXiv 2602.24110): keeps a failed path up to its first wrong step, and a teacher completes it.

    Assumes an environment that can step a state twice, and an oracle or a model of the role `teacher`. Experimental:
    written from the abstract. A step is wrong after which the oracle has no plan; with `invalid` also an invalid
    action. The paper has a process reward model and a stronger model: with `teacher="teacher"` and `models.teacher=...`
    that model completes the path, from the first invalid action or the last. GRPO compares failures with their
    corrections. The teacher's actions are imitated with a weight of 0.1, as in Trinity-RFT's mixture. The world's
    regularizers apply to sampled tokens only.

    Args:
        world: With tasks that some paths fail.
        n: Paths of a task.
        most: Maximum number of corrected failures of a task.
        invalid: Whether an invalid action is wrong.
        teacher: The role of the teacher; "" for the oracle.
    """
    blame = FirstInvalid() if teacher else FirstOracleMistake(invalid=invalid)
    return world.run(
        explorer=Correct(n=n, most=most, blame=blame, teacher=teacher),
        objective=SftMix(objective=add(PpoClip(), world.regularizers), mu=0.1),
        regularizers=(),
        demonstrations=Demonstrations(from_trees=True),
    )
