"""Evaluation: the success rate of an agent with its confidence interval, and checks of environments and data sets.

The package is also a function, `bough.evaluate(result)`: see `bough.api`.
"""

from bough.evaluate.dataset import DatasetMeasures, measure
from bough.evaluate.envs import CheckSizes, EnvCheck, EnvReport, check_env
from bough.evaluate.exploitability import PolicyExploitability, policy_exploitability
from bough.evaluate.failed import AllFailed
from bough.evaluate.measure_run import measure_run
from bough.evaluate.policy import PolicyResult, evaluate, sentence
from bough.evaluate.search import SearchResult, search, summary
from bough.lazy import make_callable

__all__ = [
    "AllFailed",
    "CheckSizes",
    "DatasetMeasures",
    "EnvCheck",
    "EnvReport",
    "PolicyExploitability",
    "PolicyResult",
    "SearchResult",
    "check_env",
    "evaluate",
    "measure",
    "measure_run",
    "policy_exploitability",
    "search",
    "sentence",
    "summary",
]

make_callable(__name__)
