"""Actions from a list of different ideas, which one answer of the engine gives."""

from collections.abc import Sequence
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Lines, Placeholders
from bough.piece import AtLeast, piece
from bough.search.node import SearchNode
from bough.search.pieces import Proposal
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree

STRATEGIES = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Name up to {count} different strategies to solve this. Write each in one line, the most promising first."
)
REPAIRS = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n{review}\n"
    "Its strategy was: {strategy}\n"
    "Name up to {count} different ways to improve the last action. Write each in one line, the most promising first."
)


@piece
class Ideas(QuerySettings):
    """One action for each idea of a thinker (CodeTree, arXiv 2411.04329).

    The role's model lists ideas in one answer: strategies at the root, and ways to improve the last action below it.
    Each idea is the hint of one action of the policy, so these actions can't be reinforced. Without a list one action
    is sampled without a hint.

    Attributes:
        width: Maximum number of ideas at a node; the policy samples one action for each.
        strategies: The question at the root; it may use {count}, {instructions}, {turns} and {observation}.
        repairs: The question below; it may also use {review}, the critic's text about the node, and {strategy}, the
            idea at the root.
        text: The hint; it may use {idea} and {strategy}.
    """

    width: Annotated[int, AtLeast(1)] = 4
    strategies: Annotated[str, Placeholders("count")] = STRATEGIES
    repairs: Annotated[str, Placeholders("count", "review", "strategy")] = REPAIRS
    text: Annotated[str, Placeholders("idea", "strategy")] = "Follow this advice: {idea}"

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """List the ideas, and sample an action for each."""
        by_action: dict[int, str] = tree.notes.setdefault("Ideas", {})
        first = node.path()[1:2]
        strategy = "".join(by_action.get(each.draft.node, "") for each in first if each.draft is not None)
        fields = prompt_fields(tree, node) | {"strategy": strategy, "review": str(node.notes.get("review", ""))}
        ideas = await tree.within_budget(self._list(tree, node, fields, self.width * times))
        if ideas is None:
            return []
        hints = [self.text.format_map(fields | {"idea": idea}) if idea else "" for idea in ideas]
        most = [tree.max_cost(node)] * len(hints)
        drafts = await tree.together((tree.sample(node, hint=hint) for hint in hints), most)
        proposed = [(draft, idea) for draft, idea in zip(drafts, ideas, strict=True) if draft is not None]
        by_action.update((draft.node, idea) for draft, idea in proposed)
        return [(draft, 1 / len(ideas)) for draft, _ in proposed]

    async def _list(self, tree: SearchTree, node: SearchNode, fields: dict[str, str], count: int) -> tuple[str, ...]:
        """The ideas; one that is empty without an answer."""
        attempt = node.notes["lists of ideas"] = int(str(node.notes.get("lists of ideas", 0))) + 1
        text = (self.strategies if node.parent is None else self.repairs).format_map(fields | {"count": str(count)})
        ideas = await asked(tree, node, self.query(text, Lines(max_items=count), "ideas", attempt))
        return ideas or ("",)
