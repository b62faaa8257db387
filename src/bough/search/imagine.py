"""Imagining what actions lead to before one is carried out."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.engine import Sampling
from bough.env import EnvFault, State, Step
from bough.explore.asking import LabelParser, Reader, Text, check_places
from bough.explore.dream import Dream, Dreamt
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.judge import PLACE
from bough.search.judge import SYSTEM as JUDGE
from bough.search.no_return import CommitToExecuted
from bough.search.node import SearchNode
from bough.search.question import asked, unanswered
from bough.search.search import Search
from bough.search.tree import SearchTree

NEXT = (
    "You were told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "What do you do next? Answer with the action alone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imagine:
    """Rates actions by where the engine imagines that they lead (WebDreamer, arXiv 2411.06559).

    For each action, `n` times: the engine imagines what the agent would read next, for `depth` turns, between which it
    says what it would do; then it judges the place, `answers` times. The rating is the mean. A simulation that fails
    twice, or to which there is no judgement, counts as a failed path and is counted as "unanswered": the released code
    drops it silently, so that an action whose bad ends can't be imagined looks better. A single action is rated 1
    without a question.

    Cost of one action: n * (2 * depth - 1 + answers) calls.

    Attributes:
        depth: Imagined turns.
        n: Simulations of each action.
        answers: Judgements of each simulation.
        prompt: The judge's question; it may use the places {instructions}, {turns} and {observation}.
        next: The question for the next action, with the same places.
        read: What a judgement is worth.
        sampling: How answers are sampled, if not as the agent samples.
    """

    depth: int = 1
    n: int = 3
    answers: int = 1
    prompt: str = PLACE
    next: str = NEXT
    read: Reader[float] = LabelParser()
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        for name in ("depth", "n", "answers"):
            if getattr(self, name) < 1:
                raise ValueError(f"Imagine.{name}: got {getattr(self, name)}; need at least 1")
        check_places("Imagine.prompt", self.prompt)
        check_places("Imagine.next", self.next)

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """A number for each child.

        Raises:
            BudgetExceeded: when a budget can't pay for all of it.
        """
        if len(children) < 2 or not isinstance(node.at, Cursor):
            return [1.0] * len(children)
        at = node.at
        values = await tree.together(self._worth(tree, at, child, run) for child in children for run in range(self.n))
        return [sum(values[begin : begin + self.n]) / self.n for begin in range(0, len(values), self.n)]

    async def _worth(self, tree: SearchTree, at: Cursor, child: SearchNode, run: int) -> float:
        """What one simulation says of an action."""
        dream = Dream(ask=tree.rollout.ask)
        told = str(tree.rollout.builder.nodes[0].info["instructions"])
        past = tuple((turn.observation, turn.action) for turn in at.past)
        state, action = dream.state(at.state.observation, Dreamt(told=told, past=past, run=run)), child.action
        for turn in range(self.depth):
            step = await self._step(dream, state, action)
            if step is None:
                unanswered(tree, child)
                return tree.lost
            state = step.state
            if step.outcome.value or turn + 1 == self.depth:
                break
            text, name = self.next.format_map(_story(state)), ("imagined action", run, turn)
            said = await asked(tree, child, *name, system="", text=text, read=Text(), sampling=self.sampling)
            if said is None:
                return tree.lost
            action = said
        text = self.prompt.format_map(_story(state))
        judged = await tree.together(
            asked(tree, child, "imagined", run, number, system=JUDGE, text=text, read=self.read, sampling=self.sampling)
            for number in range(self.answers)
        )
        return sum(tree.lost if value is None else value for value in judged) / self.answers

    async def _step(self, dream: Dream, state: State, action: str) -> Step | None:
        """An imagined turn; None when it failed twice."""
        value = state.value
        assert isinstance(value, Dreamt)
        for run in (value.run, value.run + self.n):
            again = Dreamt(told=value.told, past=value.past, run=run)
            try:
                return await dream.step(dream.state(state.observation, again), action)
            except EnvFault:
                continue
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamer:
    """WebDreamer (arXiv 2411.06559): imagine what actions lead to, carry out the best; needs no forks.

    One path through the real environment, of which no state is stepped twice. The paper's model also strikes actions
    from its own proposals before it imagines them; here equal ones are merged, and all are imagined.

    Attributes:
        width: How many actions of the policy are considered at each place.
        imagine: How they are rated.
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
            lead=1,
        )
        await search(rollout)


def _story(state: State) -> dict[str, str]:
    value = state.value
    assert isinstance(value, Dreamt)
    turns = "\n".join(f"{read}\n> {action}" for read, action in value.past)
    return {"instructions": value.told, "turns": turns, "observation": state.observation}
