"""Measures the time of each call of an environment."""

from bough.evaluate.envs.report import EnvCheck, not_applicable, passed
from bough.evaluate.envs.timed import quantile
from bough.evaluate.envs.trial import Trial

CALLS = ("start", "step", "branch", "plan")


def check_latency(trial: Trial) -> EnvCheck:
    """Median and 95th percentile of the calls of all other checks, in milliseconds.

    "branch" is a step of a state that is not the newest: with copies, or with a replay of the actions before.
    """
    took = trial.env.took_ms
    parts: list[str] = []
    numbers: dict[str, float] = {}
    for call in CALLS:
        if times := took.get(call):
            median, high = quantile(times, 0.5), quantile(times, 0.95)
            parts.append(f"{call} {median:.3g} / {high:.3g}")
            numbers |= {f"{call}_median_ms": median, f"{call}_p95_ms": high, f"{call}_count": float(len(times))}
    if not parts:
        return not_applicable("no calls")
    return passed(f"ms, median / 95 %: {', '.join(parts)}", **numbers)
