"""TreeInstruct: a tree of questions along one dialogue."""

from dataclasses import field
from typing import Annotated

from bough.ask.prompts import Placeholders
from bough.checks import INFINITE
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.search.node import SearchNode
from bough.search.tree import SearchTree
from bough.tree import Source


@piece
class TreeInstruct:
    """TreeInstruct (arXiv 2406.11709): questions on one level until one is understood, then deeper; needs no forks.

    It plans one dialogue, in which no state is stepped twice. An action with a reward above `progress` was understood,
    and the next one is on the next level. Any other is followed by another question on the same level, sampled with a
    hint: the questions on this level that failed. After `questions` of them it executes the action `teach` in place of
    a question, where the environment lists it among the admissible actions or lists none. Questions that the
    environment calls invalid do not count as failed; an invalid `teach` sets the count to 0. `Socratic` is an
    environment for it; its state is the list of resolved bugs.

    The levels of an action are in the path alone: its siblings in the question tree are the failed actions before it.
    The paper has a verifier model for the replies, and ends the questions of a bug after seven levels; here the
    environment's rewards and levels decide.

    Try: `bough train grpo --on socratic`
    Try: `bough search grpo 'TreeInstruct()' --on socratic
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Attributes:
        questions: Failed questions on a level before `teach`, at least 1.
        teach: The action; "" for none.
        progress: A reward above this means that the action was understood.
        text: The hint; it may use the placeholder {actions}.
    """

    questions: Annotated[int, AtLeast(1)] = 3
    teach: str = "teach"
    progress: float = field(default=0.0, metadata=INFINITE)
    text: Annotated[str, Placeholders("actions")] = (
        "These questions were not understood:\n{actions}\nAsk a different one that is as deep."
    )

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(rollout, await rollout.root(), success_value=1.0, failure_value=0.0)
        try:
            await self._talk(tree)
        finally:
            tree.store_results()

    async def _talk(self, tree: SearchTree) -> None:
        """One dialogue, to its end or that of a budget."""
        node: SearchNode = tree.root
        failed: list[str] = []
        while isinstance(node.at, Cursor) and not tree.spent:
            draft = await self._action(tree, node, failed)
            if draft is None:
                return
            child = tree.add(node, draft, prior=1.0)
            tree.mark_expanded(node)
            await tree.execute(child)
            done = tree.rollout.builder.nodes[draft.node]
            refused = not done.valid and done.source is Source.FORCED
            if child.reward - node.reward > self.progress or refused:
                failed = []
            elif done.valid:
                failed.append(child.action)
            node = child
        if node.ended:
            node.value = node.q = 1.0 if node.success else 0.0

    async def _action(self, tree: SearchTree, node: SearchNode, failed: list[str]) -> PendingAction | None:
        """The next question, or the lesson after too many that failed."""
        if self.teach and len(failed) >= self.questions and _is_admissible(node, self.teach):
            return tree.force_action(node, self.teach)
        actions = "\n".join(f"- {each}" for each in dict.fromkeys(failed))
        return await tree.sample(node, hint=self.text.format_map({"actions": actions}) if failed else "")


def _is_admissible(node: SearchNode, action: str) -> bool:
    admissible = node.at.state.admissible if isinstance(node.at, Cursor) else None
    return admissible is None or action in admissible
