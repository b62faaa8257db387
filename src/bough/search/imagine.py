"""Ratings of actions from imagined rollouts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import AnswerParser, LabelParser, Placeholders, Text
from bough.env import EnvFault, State, Step
from bough.explore.turn_texts import turn_texts
from bough.explore.world_model import ImaginedEpisode, WorldModel
from bough.needs import POLICY, Need, roles
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.search.commit_to_executed import CommitToExecuted
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.judge import PLACE
from bough.search.judge import SYSTEM as JUDGE
from bough.search.node import SearchNode, mean_vote
from bough.search.questions import asked, unanswered
from bough.search.search import Search
from bough.search.tree import SearchTree
from bough.tree import instructions_in, plain_text

NEXT = (
    "You were told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "What do you do next? Answer with the action alone."
)


@piece
class Imagine(QuerySettings):
    """Rates actions by rollouts that the engine imagines (WebDreamer, arXiv 2411.06559).

    Each action has `n` simulations. In each the engine generates the next observation for `depth` turns, with an action
    of its own between two of them. Then it judges the final state `answers` times. The rating is the mean. A simulation
    that fails twice, or without a judgement, leaves the mean and counts as `RolloutCounts.unanswered`. An action
    without any simulation is unjudged (`Search`). The released code drops failed ones, too, without a count. A
    single action is rated 1 without a request.

    Cost of one action: n * (2 * depth - 1 + answers) calls.

    Attributes:
        depth: Imagined turns.
        n: Simulations of each action.
        answers: Judgements of each simulation.
        prompt: The judge's prompt; it may use the placeholders {instructions}, {turns} and {observation}.
        next: The prompt for the next action, with the same placeholders.
        read: Converts a judgement to a value.
        world_role: The role whose model generates the observations.
    """

    depth: Annotated[int, AtLeast(1)] = 1
    n: Annotated[int, AtLeast(1)] = 3
    answers: Annotated[int, AtLeast(1)] = 1
    prompt: Annotated[str, Placeholders()] = PLACE
    next: Annotated[str, Placeholders()] = NEXT
    read: AnswerParser[float] = LabelParser()
    world_role: str = POLICY

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role, self.world_role)

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when it does not all fit a budget.
        """
        if len(children) < 2 or not isinstance(node.at, Cursor):
            return [1.0] * len(children)
        at = node.at
        values = await tree.together(
            self._simulate(tree, at, child, run) for child in children for run in range(self.n)
        )
        begins = range(0, len(values), self.n)
        return [mean_vote(child, values[at : at + self.n]) for child, at in zip(children, begins, strict=True)]

    async def _simulate(self, tree: SearchTree, at: Cursor, child: SearchNode, run: int) -> float | None:
        """The value of one simulation of an action; None without one."""
        dream = WorldModel(ask=tree.rollout.ask, role=self.world_role, deadline_s=self.deadline_s)
        instructions = instructions_in(tree.rollout.builder.nodes[0].info)
        past = tuple(turn_texts(at.past))
        state, action = (
            dream.state(
                plain_text(at.state.observation), ImaginedEpisode(instructions=instructions, past=past, run=run)
            ),
            child.action,
        )
        for turn in range(self.depth):
            step = await self._step(dream, state, action)
            if step is None:
                unanswered(tree)
                return None
            state = step.state
            if step.outcome.value or turn + 1 == self.depth:
                break
            text = self.next.format_map(_story(state))
            answer = await asked(tree, child, self.query(text, Text(), "imagined action", run, turn))
            if answer is None:
                return None
            action = answer
        text = self.prompt.format_map(_story(state))
        queries = [self.query(text, self.read, "imagined", run, number, system=JUDGE) for number in range(self.answers)]
        values = await tree.together(asked(tree, child, query) for query in queries)
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    async def _step(self, dream: WorldModel, state: State, action: str) -> Step | None:
        """An imagined turn; None when it failed twice."""
        value = state.value
        assert isinstance(value, ImaginedEpisode)
        for run in (value.run, value.run + self.n):
            again = ImaginedEpisode(instructions=value.instructions, past=value.past, run=run)
            try:
                return await dream.step(dream.state(plain_text(state.observation), again), action)
            except EnvFault:
                continue
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebDreamer:
    """WebDreamer (arXiv 2411.06559): imagines the results of actions, executes the best; needs no forks.

    It follows one path in the real environment and steps no state twice. The paper's model also removes actions from
    its own proposals before it imagines them; here equal actions are merged, and all are imagined.

    Attributes:
        width: Number of actions sampled at each node.
        imagine: Rates them.
    """

    width: int = 4
    imagine: Imagine = Imagine()

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        search = Search(
            select=Level(),
            expand=Sample(width=self.width),
            rate=self.imagine,
            prune=(CommitToExecuted(),),
            eager=True,
            max_evaluated=1,
        )
        await search(rollout)


def _story(state: State) -> dict[str, str]:
    value = state.value
    assert isinstance(value, ImaginedEpisode)
    turns = "\n".join(f"{read}\n> {action}" for read, action in value.past)
    return {"instructions": value.instructions, "turns": turns, "observation": plain_text(state.observation)}
