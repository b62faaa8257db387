"""The best of several paths, by the judge of whole paths that verifies their steps."""

from dataclasses import dataclass, field

from bough.appraise import Verifications
from bough.ask.prompts import prompt_fields
from bough.needs import Need, needs_of
from bough.search.node import SearchNode, mean_vote
from bough.search.questions import asked, turns_to
from bough.search.tree import SearchTree
from bough.tree import instructions_in


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePath:
    """The value of an ended path by `Verifications`: a verdict on each of its n steps, and y on its result.

        value = .4 k / n + .6 y                k: the steps that are right

    This is the reward of SPARK (arXiv 2512.03244). The value is the mean over the verifications; one that can't be
    parsed is asked once more, and then leaves the mean. Without any the path is unjudged (`Search`).

    Examples:
        [1, 0, 1] yes: .4 * 2 / 3 + .6 = .866667

    Attributes:
        verifications: The question, the role whose model answers, and the number of answers.
    """

    verifications: Verifications = field(default_factory=lambda: Verifications(role="judge", n=1))

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return needs_of(self.verifications)

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when the answers do not all fit a budget.
        """
        asks = self.verifications
        past, observation = turns_to(tree, node)
        steps = [action for _, action in past]
        fields = prompt_fields(instructions_in(tree.rollout.builder.nodes[0].info), past, observation)
        question = asks.text(fields | {"answer": steps[-1] if steps else ""}, steps)

        def value(text: str) -> float | None:
            found = asks.parsed(text, len(steps))
            return None if found is None else 0.4 * sum(found[0]) / len(steps) + 0.6 * found[1]

        queries = [asks.query(question, value, "verification", n, system=asks.system) for n in range(asks.n)]
        return mean_vote(node, await tree.together(asked(tree, node, query) for query in queries))
