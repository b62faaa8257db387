"""Evaluation: the success rate of an agent with its confidence interval, with or without search.

The package is also a function, `bough.evaluate(result)`: see `bough.api`.
"""

from bough.evaluate.exploitability import PolicyExploitability, policy_exploitability
from bough.evaluate.failed import AllFailed
from bough.evaluate.policy import PolicyResult, evaluate, sentence
from bough.evaluate.search import SearchResult, search, summary
from bough.lazy import make_callable

__all__ = [
    "AllFailed",
    "PolicyExploitability",
    "PolicyResult",
    "SearchResult",
    "evaluate",
    "policy_exploitability",
    "search",
    "sentence",
    "summary",
]

make_callable(__name__)
