"""StarWM's decision loop: propose an action, simulate it in a world model, and refine it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Placeholders
from bough.env import EnvFault
from bough.explore.turn_texts import turn_texts
from bough.explore.world_model import ImaginedEpisode, WorldModel
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.search.commit_to_executed import CommitToExecuted
from bough.search.frontier import Level
from bough.search.node import SearchNode
from bough.search.pieces import Proposal
from bough.search.questions import unanswered
from bough.search.search import Search
from bough.search.tree import SearchTree
from bough.tree import instructions_in, plain_text


@piece
class SimulateAndRefine(QuerySettings):
    """Proposes one action, refined after a simulation of it (StarWM, arXiv 2602.14857).

    The policy samples an action; the world model predicts the observation after it; the policy samples again with both
    in a hint, and the new action is the proposal. With several `rounds` the new action is simulated in turn. A
    simulation without an answer keeps the action, and counts as `RolloutCounts.unanswered`. Actions before the last one
    stay in the tree as samples that are not executed.

    Attributes:
        rounds: Simulations before an action is executed, at least 1.
        text: The hint; it may use the placeholders {action} and {observation}.
        max_tokens: Maximum length of a predicted observation.
    """

    rounds: Annotated[int, AtLeast(1)] = 1
    text: Annotated[str, Placeholders("action", "observation")] = (
        "You consider this: {action}\nIt would probably lead to:\n{observation}\nDo it, or something better."
    )
    max_tokens: int = 256

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Sample, simulate, and sample again."""
        found = [await self._refined(tree, node) for _ in range(times)]
        return [(draft, 1.0) for draft in found if draft is not None]

    async def _refined(self, tree: SearchTree, node: SearchNode) -> PendingAction | None:
        draft = await tree.sample(node)
        for _ in range(self.rounds):
            if draft is None:
                return None
            seen = await tree.within_budget(self._simulate(tree, draft))
            if seen is None:
                return draft
            hint = self.text.format_map({"action": draft.parsed.text, "observation": seen})
            again = await tree.sample(node, hint=hint)
            draft = again or draft
        return draft

    async def _simulate(self, tree: SearchTree, draft: PendingAction) -> str | None:
        """The predicted observation after an action; None without an answer."""
        at: Cursor = draft.cursor
        model = WorldModel(
            ask=tree.rollout.ask,
            role=self.role,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            deadline_s=self.deadline_s,
        )
        instructions = instructions_in(tree.rollout.builder.nodes[0].info)
        # Each branch has a simulation of its own.
        episode = ImaginedEpisode(instructions=instructions, past=tuple(turn_texts(at.past)), run=draft.node)
        try:
            step = await model.step(model.state(plain_text(at.state.observation), episode), draft.parsed.text)
        except EnvFault:
            unanswered(tree)
            return None
        end = "\n(solved)" if step.success else "\n(the end)" if step.outcome.value else ""
        return f"{plain_text(step.state.observation)}{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StarWm:
    """StarWM (arXiv 2602.14857): generate, simulate, refine: a world model's prediction corrects each action.

    It follows one path in the real environment and needs no forks. The world model is the model of `expand.role`; the
    method `starwm` trains it. The paper's world model is a separate 8B model that predicts the game five seconds ahead
    from observations in five sections; here it predicts the next observation of any environment of texts.

    The model that acts must use the hint. A small policy whose training had no hints solves fewer tasks with them.

    Try: `bough search grpo 'StarWm()' --on textworld
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Attributes:
        expand: Proposes the actions.
    """

    expand: SimulateAndRefine = SimulateAndRefine()

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        search = Search(select=Level(), expand=self.expand, prune=(CommitToExecuted(),), eager=True, max_evaluated=1)
        await search(rollout)
