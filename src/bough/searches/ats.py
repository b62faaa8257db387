"""Autonomous tree search: the model writes the search as text."""

from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.hints import FixedHint
from bough.search.search import Search


def ats() -> Search:
    """Experimental: Autonomous tree-search (arXiv 2310.10686): the model writes the search as text; one path.

    Written from a summary of the paper. The text is limited by the agent's `sampling.max_tokens`, or `limits.tokens` in
    all; the action is what the parser extracts from it. The method of the same name trains a policy to write it.
    """
    text = (
        "Before you act, write a search: list the possible actions, what each leads to and how promising that is; "
        "follow the most promising, and go back where it fails. Then act."
    )
    return Search(select=Level(), expand=Sample(width=1, hint=FixedHint(text=text)))
