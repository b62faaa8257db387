"""DoraemonGPT: paths to the end, each from a node that is drawn from all open ones."""

from bough.search.backup import SumBackup
from bough.search.draw_open import DrawOpen, UntilEnds
from bough.search.evaluate import ConstantValue
from bough.search.expand import Sample
from bough.search.finish_path_first import FinishPathFirst
from bough.search.hints import Siblings
from bough.search.search import Search


def doraemon(answers: int = 3, decay: float = 0.5, sharpness: float = 1.0, width: int = 8) -> Search:
    """DoraemonGPT (arXiv 2401.08392): starts paths at nodes drawn by a soft maximum over all open nodes; needs forks.

    A node is drawn from all open nodes with probability proportional to exp(sharpness * q). One action is sampled
    there, with the earlier ones and their results in the prompt and the request for a different one, and the path is
    followed to its end. The end's value, 1 or -1, is added to each ancestor, times exp(-decay * (distance - 1)). The
    search ends after `answers` ended paths; the answer is the best of them, the first among equals. A node has up to
    `width` actions. The paper's symbolic memory is the environment `SqlMemory`.

    In the released code the sign of failures is lost, so that they count as successes, and the root has no reward; it
    also tries eight paths at most, of which those count that end with an answer. It combines the answers by another
    request to the model.
    """
    return Search(
        select=UntilEnds(max_ends=answers, then=FinishPathFirst(then=DrawOpen(sharpness=sharpness))),
        expand=Sample(width=1, hint=Siblings(execute_first=True)),
        evaluate=ConstantValue(value=None),
        backup=SumBackup(decay=decay),
        expansions_per_node=width,
        failure_value=-1.0,
        stop_value=None,
    )
