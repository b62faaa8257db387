"""A search that the model writes itself."""

from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.hints import FixedHint
from bough.search.search import Search


def ats() -> Search:
    """Experimental: Autonomous tree-search (arXiv 2310.10686): the model writes the search itself; one path.

    Of the paper a summary was read, not its text. What it may write is the agent's `sampling.max_tokens`, or
    `limits.tokens` in all; the action is what the parser finds in the end.
    """
    text = (
        "Before you act, write a search: list the possible actions, what each leads to and how promising that is; "
        "follow the most promising, and go back where it fails. Then act."
    )
    return Search(select=Level(), expand=Sample(width=1, hint=FixedHint(text=text)))
