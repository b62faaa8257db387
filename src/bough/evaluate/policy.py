"""Evaluates a policy on held-out tasks: a checkpoint of a run, or another policy."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bough.config import ConfigError
from bough.engine import Remote
from bough.engine.usage import ServerUsage
from bough.evaluate.agent import Adapt, EvaluationTarget, Evaluee, Preset, evaluation_target
from bough.evaluate.failed import require_some
from bough.evaluate.progress import CountedTrees, OnProgress
from bough.rollout import Deadlines
from bough.train import HeldoutResult, Run, measure
from bough.train.evaluation import mean_of
from bough.train.event_loop import run_coroutine
from bough.train.watchdog import Watchdog
from bough.tree import Task, derive
from bough.view import cut_note, failed_note, invalid_note, late_note, mean_interval, paired, wilson
from bough.view.numbers import short


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """A policy's result.

    Attributes:
        agent: "step 24" for a checkpoint; the model of a server; the class of another policy.
        step: The checkpoint's; None for another policy.
        score: Task by task.
        low: Lower end of the 95 % interval of the success rate (Wilson).
        high: Upper end.
        reward_low: Lower end of the 95 % interval of the mean reward (Student's t); -inf for fewer than two paths.
        reward_high: Upper end.
        usage: The usage of a server; None for a model in this process.
        late: Number of tasks from a later start than their own.
        accepted: What changed since the run was made, a line each.
        shots: Number of tasks whose demonstrations the policy imitated before `score`; they are not among its tasks.
        before: The result on the same tasks before that; None without.
        seeds: The results of several seeds of the samples, from `evaluation.seed` on, of which `score` is the first;
            empty for one seed.
    """

    agent: str
    step: int | None
    score: HeldoutResult
    low: float
    high: float
    reward_low: float = -math.inf
    reward_high: float = math.inf
    usage: ServerUsage | None = None
    late: int = 0
    accepted: Sequence[str] = ()
    shots: int = 0
    before: HeldoutResult | None = None
    seeds: Sequence[HeldoutResult] = ()

    def __str__(self) -> str:
        return sentence(self)

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


def evaluate(
    target: Path | Run,
    *,
    policy: Preset | None = None,
    step: int | None = None,
    shots: int = 0,
    seeds: int = 1,
    changes: Sequence[str] = (),
    accept_changes: bool = False,
    on_progress: OnProgress | None = None,
) -> PolicyResult:
    """Sample one path for every held-out task of a run; with several seeds one for every task and seed.

    With `shots` it measures few-shot adaptation (arXiv 2603.07432, on apps that training never saw): the policy is
    measured, imitates the oracle on the first held-out tasks, and is measured again, both times on the others. Epochs
    and learning rate are those of the world's warm-up. The paper does not say how it adapts; this is Bough's choice.

    Args:
        target: A run directory, nothing in which is changed; or a run without weights, whose policy is as built, or a
            server's (`engine=OpenAi(...)`).
        policy: The policy in place of the run's.
        step: The checkpoint of a run directory; the newest complete one if None.
        shots: Number of held-out tasks whose demonstrations are imitated; the run's weights on disk stay as they are.
        seeds: Number of seeds of the samples, from `evaluation.seed` on; the tasks are the same.
        changes: Fields of the run to change first, as on the command line: other tasks, another temperature.
        accept_changes: Whether to go on when files or held-out tasks changed since the run was made.
        on_progress: Called with the progress.

    Raises:
        StoreError: when there is no such run or checkpoint.
        ConfigError: when a change is not one of the run's fields, or pieces do not fit together; when files or held-out
            tasks changed, without `accept_changes`; when shots are negative, when no task is left beside
            them, or the model is a server's.
        ValueError: with shots, when the environment has no oracle.
        EngineFault: when a server does not answer, or refuses the key.
        AllFailed: when every task failed; has the most frequent cause.
    """
    if shots < 0:
        raise ConfigError(f"shots: got {shots}; need 0 or more")
    if seeds < 1:
        raise ConfigError(f"seeds: got {seeds}; need 1 or more")
    deadlines = Deadlines()
    with (
        evaluation_target(target, policy=policy, step=step, changes=changes, accept_changes=accept_changes) as found,
        Watchdog(deadlines, grace_s=found.run.health.stuck_s),
    ):
        return run_coroutine(_measured(found, deadlines, shots, seeds, on_progress))


async def _measured(
    target: EvaluationTarget, deadlines: Deadlines, shots: int, seeds: int, tell: OnProgress | None
) -> PolicyResult:
    before, first = None, target.run.world.evaluation.seed
    async with target.open(deadlines) as agent:
        tasks = agent.tasks[shots:]
        if shots:
            adapt = _adaptation(agent, shots)
            before = await _score(target.run, agent, tasks, first, tell)
            await adapt(agent.tasks[:shots])
        scores = [await _score(target.run, agent, tasks, first + place, tell) for place in range(seeds)]
        engine = agent.runner.agent.engine
        usage = engine.usage if isinstance(engine, Remote) else None
        late = sum(bool(task.start) for task in tasks)
    for each in scores:
        require_some(each.successes, each.failures)
    score = scores[0]
    low, high = wilson(sum(score.successes.values()), len(score.successes))
    reward_low, reward_high = mean_interval([*score.rewards.values()])
    return PolicyResult(
        agent=agent.name,
        step=None if target.checkpoint is None else target.checkpoint.step,
        score=score,
        low=low,
        high=high,
        reward_low=reward_low,
        reward_high=reward_high,
        usage=usage,
        late=late,
        accepted=() if target.provenance is None else tuple(target.provenance.accepted),
        shots=shots,
        before=before,
        seeds=scores if seeds > 1 else (),
    )


def _adaptation(agent: Evaluee, shots: int) -> Adapt:
    """What adapts the agent.

    Raises:
        ConfigError: when no task is left, or the agent is the model of a server.
    """
    if agent.adapt is None:
        raise ConfigError(f"shots: got {shots} and the model of a server; need weights in this process, or no shots")
    if shots >= len(agent.tasks):
        raise ConfigError(
            f"shots: got {shots} with {len(agent.tasks)} held-out tasks; need at least one task more than shots: lower "
            "it, or raise evaluation.tasks.count"
        )
    return agent.adapt


async def _score(run: Run, agent: Evaluee, tasks: Sequence[Task], seed: int, tell: OnProgress | None) -> HeldoutResult:
    return await measure(
        agent.runner,
        run.method.explorer,
        tasks,
        temperature=run.world.evaluation.temperature,
        seed=derive(seed, "heldout"),
        rewards=run.world.rewards,
        checks=run.world.evaluation.checks,
        seat=agent.seat,
        store=CountedTrees(None, tell, len(tasks)),
    )


def sentence(evaluation: PolicyResult) -> str:
    """The result in one line, graded rewards before success, and one line for each further fact.

    Further facts are checks, failed tasks, truncated paths, cut and invalid actions, and the usage of a server.
    """
    score = evaluation.score
    outgrown = score.truncated_context
    cut = f"{outgrown} paths exceeded the context and were truncated" if outgrown else ""
    used = "" if evaluation.usage is None else f"the server: {evaluation.usage}"
    checked = [_check_note(name, values) for name, values in score.checks.items()]
    notes = (failed_note(score.failures), cut, cut_note(score.actions), invalid_note(score.actions), used)
    measured = [
        f"success {score.rate:.1%} of {len(score.successes)} held-out tasks{late_note(evaluation.late)} "
        f"(95 % interval {evaluation.low:.1%} to {evaluation.high:.1%})"
    ]
    if score.rewards and score.rewards != score.successes:
        interval = f"{short(evaluation.reward_low)} to {short(evaluation.reward_high)}"
        measured.insert(0 if score.graded else 1, f"reward {short(score.reward)} (95 % interval {interval})")
    result = f"{evaluation.agent}: {', '.join(measured)}, mean episode length {score.turns:.1f} turns"
    told = [*_seeds_note(evaluation), result, *_shots_note(evaluation), *checked]
    return "\n".join([*told, *(note for note in notes if note)])


def _seeds_note(evaluation: PolicyResult) -> list[str]:
    """The mean success rate over the seeds, and the interval of the mean by Student's t; nothing for one seed."""
    rates = [each.rate for each in evaluation.seeds]
    if not rates:
        return []
    low, high = mean_interval(rates)
    shown = ", ".join(f"{rate:.1%}" for rate in rates)
    return [
        f"{evaluation.agent}: mean success {sum(rates) / len(rates):.1%} over {len(rates)} seeds "
        f"(95 % interval {max(low, 0):.1%} to {min(high, 1):.1%}; {shown}), of which the first:"
    ]


def _check_note(name: str, values: Mapping[str, float]) -> str:
    """The mean of a check with its interval."""
    low, high = mean_interval([*values.values()])
    return f"check {name}: {short(mean_of(values))} (95 % interval {short(low)} to {short(high)})"


def _shots_note(evaluation: PolicyResult) -> list[str]:
    """The result before the adaptation, and the difference on the tasks that both measured."""
    before, after = evaluation.before, evaluation.score
    if before is None:
        return []
    both = [task for task in before.successes if task in after.successes]
    low, high = paired([before.successes[task] for task in both], [after.successes[task] for task in both])
    return [
        f"after {evaluation.shots} demonstrations of other held-out tasks; before them success {before.rate:.1%}, "
        f"reward {short(before.reward)} (difference of success {low:+.1%} to {high:+.1%}, 95 % interval of "
        f"{len(both)} pairs)"
    ]
