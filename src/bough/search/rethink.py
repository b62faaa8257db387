"""Writing an action again when it is known what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.engine import Sampling
from bough.explore.asking import check_places
from bough.search import Evaluate
from bough.search.backup import MaxBackup
from bough.search.combine import ExecuteAndEvaluate
from bough.search.descend import Descend
from bough.search.evaluate import ConstantValue, RolloutValue
from bough.search.expand import Sample
from bough.search.node import SearchNode
from bough.search.question import story
from bough.search.reflect import ANSWERED, once
from bough.search.score import Puct
from bough.search.search import Search
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Rethink:
    """Rewrites what failed, once, from what came of it (RethinkMCTS, arXiv 2409.09584); needs forks.

    As `ExecuteAndEvaluate` it rates actions by carrying them out. One that ends its path below `under` is asked about,
    then the policy writes it again, told what it did, what came of it and what the engine said. The new action takes
    the place of the failed one, which the search gives up; it is itself not written again when it fails.

    Attributes:
        evaluate: What the other places are worth.
        under: A path that is worth less has failed.
        prompt: The question; it may use the places {instructions}, {turns} and {observation}.
        text: What the policy is told; it may use the places {action} and {critique}, too.
        sampling: How the answer is sampled, if not as the agent samples.
    """

    evaluate: Evaluate = ConstantValue()
    under: float = 1.0
    prompt: str = ANSWERED
    text: str = "You did this before:\n{action}\nWhat came of it: {observation}\n{critique}\nWrite it anew, and better."
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        check_places("Rethink.prompt", self.prompt)
        check_places("Rethink.text", self.text, "action", "critique")

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """A number for each child, the given ones; those that take their places have theirs.

        Raises:
            BudgetExceeded: when a budget can't pay for all of them.
        """
        look = ExecuteAndEvaluate(evaluate=self.evaluate)
        guesses = await look(tree, node, children)
        failed = [child for child, guess in zip(children, guesses, strict=True) if child.ended and guess < self.under]
        hints = await tree.together(self._hint(tree, child) for child in failed)
        drafts = await tree.together(tree.write(node, hint=hint) for hint in hints)
        for child, draft in zip(failed, drafts, strict=True):
            if draft is not None:
                again = tree.add(node, draft, prior=child.prior)
                (again.guess,) = await look(tree, node, [again])
                tree.give_up(child)
        return guesses

    async def _hint(self, tree: SearchTree, child: SearchNode) -> str:
        critique = await once(tree, child, "critique", self.prompt, self.sampling)
        return self.text.format_map(story(tree, child) | {"action": child.action, "critique": critique})


def rethink(width: int = 3, rounds: int = 16) -> Search:
    """RethinkMCTS (arXiv 2409.09584): thoughts are searched, and failing ones rewritten once; needs forks.

    The paper's settings: three actions, sixteen rollouts, P-UCB with c 4 and base 10, the best return found below,
    discounted by .9 for each turn. Its reward is the share of public tests that pass, or, when all do, .8 and .2 times
    what the model thinks of its program: take `won=None` and `evaluate=Mix(parts=(EnvReturn(), Judge()), weights=(.8,
    .2))` in place of the rollouts where the environment pays so. The code rewrites in place; here the failed path stays
    in the tree that grows, as one that counts nowhere in the search.
    """
    return Search(
        select=Descend(by=Puct(c=4.0, base=10.0, log=True), revisit=False),
        expand=Sample(width=width),
        rate=Rethink(),
        evaluate=RolloutValue(),
        backup=MaxBackup(gamma=0.9),
        rounds=rounds,
    )
