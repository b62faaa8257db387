"""SCOPE (arXiv 2602.24110)."""

from bough.credit import WithTargets
from bough.critics import ValueHead
from bough.explore import Blame, Correct, CriticQuality, FirstInvalid, FirstOracleMistake, FirstPoorAction, LlmJudge
from bough.objective import Objective, OffPolicyClip, PpoClip, Sum, ValueClip, add
from bough.train import Demonstrations, Run, World


def scope(
    world: World,
    *,
    n: int = 8,
    max_corrected: int = 2,
    invalid: bool = False,
    teacher: str = "",
    judge: str = "",
    critic: bool = False,
    mu: float = 0.1,
) -> Run:
    """SCOPE (arXiv 2602.24110): keeps a failed path up to its first wrong step, and a teacher completes it.

    Assumes an environment that can step a state twice, and an oracle or a model of the role `teacher`. Experimental:
    written from the abstract. The paper has a process reward model and a stronger model. Here the first wrong step is

        judge="judge"     the first that the model `models.judge=...` calls bad
        critic=true       the first with a value below 0.5 of the run's own value head, which learns whether a path
                          after an action succeeds; untrained at first, so that whole paths are replaced
        neither           the first after which the oracle has no plan, with `invalid` also an invalid action

    With `teacher="teacher"` and `models.teacher=...` that model completes the path; without a judge or a critic it does
    so from the first invalid action or the last. GRPO compares failures with their corrections. The teacher's tokens
    have an off-policy ratio to the policy before the update and the clip of PPO, with a weight `mu`; the paper's own
    ratio and weight are not known. The world's regularizers apply to sampled tokens only.

    Try: `bough train 'scope(teacher=teacher,judge=judge)' --on sokoban
    models='{teacher: FrozenCheckpoint(run=runs/grpo_sokoban), judge: CurrentPolicy}'`

    Args:
        world: With tasks that some paths fail.
        n: Paths of a task.
        max_corrected: Maximum number of corrected failures of a task.
        invalid: Whether an invalid action is wrong, for the oracle.
        teacher: The role of the teacher; "" for the oracle.
        judge: The role of the judge; "" for none.
        critic: Whether a value head finds the step.
        mu: Weight of the teacher's tokens.
    """
    if judge and critic:
        raise ValueError(f"scope: got judge={judge!r} and critic=true; need one of them to find the first wrong step")
    blame: Blame = FirstInvalid() if teacher else FirstOracleMistake(invalid=invalid)
    if judge:
        blame = FirstPoorAction(quality=LlmJudge(role=judge))
    loss: Objective = OffPolicyClip(objective=add(PpoClip(), world.regularizers), mu=mu, denominator="old", shape=0.0)
    run = world.run(
        explorer=Correct(n=n, max_corrected=max_corrected, blame=blame, teacher=teacher),
        objective=loss,
        regularizers=(),
        demonstrations=Demonstrations(from_trees=True),
    )
    if not critic:
        return run
    blame = FirstPoorAction(quality=CriticQuality(), below=0.5)
    return run.replace(
        explorer=Correct(n=n, max_corrected=max_corrected, blame=blame, teacher=teacher),
        critic=ValueHead(detach=True),
        credit=WithTargets(),
        objective=Sum(terms=(loss, ValueClip(clip=None))),
    )
