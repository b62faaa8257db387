"""The log ratio of a policy to its reference as a rating, and a beam by it."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from bough.needs import POLICY, Need, roles
from bough.piece import Above, AtLeast, piece
from bough.rollout.cursor import PendingAction
from bough.search.node import SearchNode
from bough.search.score import rating_of
from bough.search.tree import SearchTree


@piece
class LogRatio:
    """From r to Q* (arXiv 2404.12358): rates an action by beta * log (policy / reference), summed over its tokens.

    For a policy that DPO has trained, this is the soft advantage Q*(s, a) - V*(s) of the reward that the preferences
    imply, in a process whose actions are tokens; an action's is the sum of its tokens'. Tokens of log-probability
    -.2 -.4 under the policy and -1.2 -.3 under the reference, beta .1: .1 * (1 - .1) = .09.

    The reference is the model of a role, with the policy's tokenizer. With a `model` that is another role's the
    preferences are that model's (Step-level Q, 2409.09345). One call for the actions of a state under the policy, and
    one for each action under a model of another role.

    Attributes:
        beta: The strength of the pull to the reference in DPO, > 0.
        role: The role whose model is the reference.
        model: The role whose model DPO has trained.
    """

    beta: Annotated[float, Above(0)] = 0.1
    role: str = "reference"
    model: str = POLICY

    @property
    def needs(self) -> frozenset[Need]:
        """A model for each role."""
        return roles(self.role, self.model)

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
            ValueError: when a model has another tokenizer than the policy.
        """
        del node
        drafts = [child.draft for child in children if child.draft is not None]
        own, reference = [await self._scores(tree, drafts, role) for role in (self.model, self.role)]
        return [self.beta * (sum(one) - sum(other)) for one, other in zip(own, reference, strict=True)]

    async def _scores(
        self, tree: SearchTree, drafts: Sequence[PendingAction], role: str
    ) -> Sequence[tuple[float, ...]]:
        """The log-probabilities of the tokens of each action under the model of a role."""
        if role == POLICY:
            return await tree.rollout.score_each(drafts)
        agent = tree.rollout.writer().agent
        other = agent.model(role).renderer
        if any(other.text(draft.tokens) != agent.renderer.text(draft.tokens) for draft in drafts):
            raise ValueError(
                f"LogRatio: got a model for the role {role!r} that reads the policy's tokens as other text; need a "
                "model with the policy's tokenizer, such as a checkpoint of the same policy"
            )
        return await tree.together(tree.rollout.score(draft, role=role) for draft in drafts)


@piece
class PathRating:
    """The sum of the ratings of the actions from the root, over depth^alpha.

    Unknown ratings count as 0, and unjudged ones as `rating_of` has them.

    With `Likely` as the rating it is `Likelihood` for actions that were sampled with a hint, too. Ratings -.4 and -.2:
    -.6 with alpha 0, -.3 with 1.

    Attributes:
        alpha: 0 for the sum, 1 for the mean.
    """

    fixed: ClassVar[bool] = True

    alpha: Annotated[float, AtLeast(0)] = 0.0

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        return sum(rating_of(each) for each in node.path()) / max(1, node.depth) ** self.alpha
