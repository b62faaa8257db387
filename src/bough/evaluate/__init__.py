"""Evaluation: the success rate of an agent with its confidence interval, and checks of environments and data sets.

The package is also a function, `bough.evaluate(result)`: see `bough.api`.
"""

from typing import TYPE_CHECKING

from bough.evaluate.envs import CheckSizes, EnvCheck, EnvReport, check_env
from bough.evaluate.failed import AllFailed
from bough.lazy import lazy_names, make_callable

if TYPE_CHECKING:
    from bough.evaluate.dataset import DatasetMeasures, measure
    from bough.evaluate.exploitability import PolicyExploitability, policy_exploitability
    from bough.evaluate.policy import PolicyResult, evaluate, sentence
    from bough.evaluate.run_measures import measure_run
    from bough.evaluate.search_result import SearchResult, search, summary
else:
    # The fresh processes of check_env import this package, and need nothing of a run. No module has the name of one of
    # its functions: importing the module would put it in the function's place.
    __getattr__ = lazy_names(
        __name__,
        {
            "bough.evaluate.dataset": ("DatasetMeasures", "measure"),
            "bough.evaluate.exploitability": ("PolicyExploitability", "policy_exploitability"),
            "bough.evaluate.policy": ("PolicyResult", "evaluate", "sentence"),
            "bough.evaluate.run_measures": ("measure_run",),
            "bough.evaluate.search_result": ("SearchResult", "search", "summary"),
        },
    )

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
