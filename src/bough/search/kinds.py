"""Proposals of actions by kind, where a kind is how an action begins."""

from collections.abc import Sequence
from typing import Annotated

from bough.needs import CRITIC, ON_POLICY, Need
from bough.piece import AtLeast, NotEmpty, piece
from bough.rollout.cursor import PendingAction
from bough.search.node import SearchNode
from bough.search.pieces import Proposal
from bough.search.tree import SearchTree


@piece
class SampleKinds:
    """Samples of the policy that begin with given texts, the kinds of a step (CR-Planner, arXiv 2410.01428).

    The beginning of an action is forced, and the policy samples the rest. Actions of one kind share the tokens of the
    beginning, and the sampled tokens are trained.

    Attributes:
        kinds: The texts, in the form of the world's actions, such as "<think>", "<search>" and "<answer>"; shorter than
            an action may be.
        width: Number of samples of each kind.
        best: Whether only the kind of highest value is sampled: the critic's value after the text; one call rates all
            kinds. Needs a critic, as `KindValues` trains it.
    """

    kinds: Annotated[Sequence[str], NotEmpty("at least one text, each once", different=True)]
    width: Annotated[int, AtLeast(1)] = 3
    best: bool = False

    def __post_init__(self) -> None:
        if not all(self.kinds):
            raise ValueError(f"SampleKinds.kinds: got {[*self.kinds]}; need texts that are not empty")

    @property
    def needs(self) -> frozenset[Need]:
        """A critic, to select a kind."""
        return frozenset(
            each.or_else("best=false, which samples all kinds") for each in (CRITIC, ON_POLICY) if self.best
        )

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Sample actions at a node.

        Raises:
            ValueError: when a kind leaves no token to sample.
        """
        begun = [tree.begin_action(node, kind) for kind in self.kinds]
        if full := [kind for kind, each in zip(self.kinds, begun, strict=True) if each.complete]:
            raise ValueError(
                f"SampleKinds.kinds: got {full}, which fill an action of sampling.max_tokens="
                f"{tree.rollout.sampling.max_tokens} tokens; a kind must leave tokens to sample: take "
                "kinds of this world's actions, or raise the limit"
            )
        if self.best:
            values = await tree.within_budget(tree.rollout.value_each(begun))
            if values is None:
                return []
            begun = [max(zip(values, begun, strict=True), key=lambda pair: pair[0])[1]]
        count = self.width * times
        drafts = await tree.together(_continued(tree, each, branch) for each in begun for branch in range(count))
        return [(draft, 1 / (count * len(begun))) for draft in drafts if draft is not None]


async def _continued(tree: SearchTree, begun: PendingAction, branch: int) -> PendingAction | None:
    """A sample that continues an action."""
    draft = await tree.within_budget(tree.rollout.sample(begun, branch=branch))
    return draft if isinstance(draft, PendingAction) else None
