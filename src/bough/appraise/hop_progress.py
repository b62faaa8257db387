"""Step-aware progress: a model compares states, and the comparisons are read back into a potential."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.hops import VIEWS, HopParser, View, fuse, progress_in_view
from bough.appraise.path_fields import acts, path_fields
from bough.ask import VoteSettings
from bough.ask.answer import mean_entry
from bough.ask.each import each
from bough.ask.prompts import AnswerParser, Placeholders
from bough.needs import Appraised, Need, appraised, names_of
from bough.piece import AtLeast, piece
from bough.tree import Entry, Kind, Tree, Verdict, turn_start

GOAL = "The task is done, as the agent was told."
HOP = (
    "The agent was told:\n{instructions}\n\nSTART, the first state:\n{start}\n\nGOAL, the last state:\n{goal}\n\n"
    "BEFORE:\n{before}\n\nAFTER:\n{after}\n\nIs AFTER nearer to GOAL than BEFORE? If it is nearer, which share of the "
    "way from BEFORE to GOAL was made? Answer such as +30%. If it is farther, which share of the way from START to "
    "BEFORE was lost? Answer such as -30%. End with the percentage."
)


@piece
class HopProgress(VoteSettings):
    """Robo-Dopamine's progress (arXiv 2512.23703): a model compares two states and answers one signed percentage.

    The percentage h, the hop from a state with progress b to one with progress a, is relative to what was left where
    it is a gain, and to what had been achieved where it is a loss:

        h = (a - b) / (1 - b) for a >= b        h = (a - b) / b else

    Each state before a turn is compared three times, and each view gives its progress p, 0 at the first state:

        incremental    with the state before it    p = b + (1 - b) h for h >= 0, b + b h else
        forward        with the first state        p = h
        backward       with the goal               p = 1 + h

    The value at an action is the mean over the views with a known progress of the state before it; `PotentialShaping`
    reads it. With two views or more the column "NAME_spread" has their disagreement, the largest minus the smallest.
    With `caution` the progress follows them less where they disagree: p moves from that of the state before by
    exp(-caution * spread) of the way.

    An answer without a percentage is no vote: it never counts as "no progress". The incremental view then knows nothing
    of the rest of the path. A state that no view knows has no value. Progress is kept in [0, 1].

    The goal is the field `goal` of the task's data, else a sentence that refers to the instructions; never the last
    state of the path, which would make every path end at the goal. Released code has these two faults. The paper
    trains a model of images for this; here any model answers about texts. It does not state the weights of the views.

    Cost: up to three times `n` questions for each state; a state that several turns begin from is compared once.

    Attributes:
        column: Name of the column.
        views: The comparisons.
        caution: 0 or more.
        goal: The field of `Task.data` that describes the goal.
        prompt: The question, with the placeholders {instructions}, {goal}, {start}, {before}, {after}, {turns} and
            {observation}.
        system: The system prompt.
        read: Parses the hop, from -1 to 1.
        n: Number of votes on each comparison.
        temperature: Of the sampling; 0.1 in the authors' code.
    """

    column: str = "progress"
    views: tuple[View, ...] = VIEWS
    caution: Annotated[float, AtLeast(0)] = 0.0
    goal: str = "goal"
    prompt: Annotated[str, Placeholders("goal", "start", "before", "after")] = HOP
    system: str = "You judge the progress of an agent."
    read: AnswerParser[float] = HopParser()
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if not self.views or len(set(self.views)) < len(self.views) or not set(self.views) <= set(VIEWS):
            raise ValueError(f"HopProgress.views: got {self.views}; need one or more of {VIEWS}, each once")

    @property
    def gives(self) -> frozenset[Need]:
        """The progress, and the disagreement of several views."""
        return frozenset(map(appraised, (self.column, self._spread)[: len(self.views)]))

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The progress of the state before each action, at the action."""
        found = await each(self._tree(tree, ask) for tree in trees)
        columns = {self.column: [value for value, _ in found], self._spread: [spread for _, spread in found]}
        return {name: columns[name] for name in names_of(self.gives, Appraised)}

    @property
    def _spread(self) -> str:
        return f"{self.column}_spread"

    async def _tree(self, tree: Tree, ask: AskModels) -> tuple[dict[int, Entry], dict[int, Entry]]:
        places = states_of(tree)
        before = {place: _state_before(tree, place) for place in places}
        fields = {place: self._fields(tree, act[0]) for place, act in places.items()}
        later = [place for place in places if before[place] is not None]
        asked = await each(self._asked(place, before, fields, ask) for place in later)
        answers = dict(zip(later, asked, strict=True))
        by_view: dict[int, Mapping[View, float | None]] = {}
        progress: dict[int, float | None] = {}
        value, spread = dict[int, Entry](), dict[int, Entry]()
        for place, actions in places.items():
            last = before[place]
            answered = answers.get(place, {})
            known = dict.fromkeys(self.views, 0.0) if last is None else _views(answered, by_view[last])
            by_view[place] = known
            fused, disagreement = fuse(known)
            progress[place] = self._cautious(fused, disagreement, None if last is None else progress[last])
            for number, act in enumerate(actions):
                value[act] = _entry(progress[place], known, answered if number == 0 else {}, answered)
                if disagreement is not None:
                    spread[act] = Entry(value=disagreement, verdict=Verdict.OK)
        return value, spread

    def _cautious(self, fused: float | None, disagreement: float | None, last: float | None) -> float | None:
        """The progress of a state, for that of the state before it."""
        if fused is None or disagreement is None or last is None:
            return fused
        return last + math.exp(-self.caution * disagreement) * (fused - last)

    def _fields(self, tree: Tree, act: int) -> dict[str, str]:
        """The prompt fields of the state before an action."""
        found = path_fields(tree, act)
        goal = tree.task.data.get(self.goal)
        return found | {"goal": GOAL if goal is None else str(goal)}

    async def _asked(
        self,
        place: int,
        before: Mapping[int, int | None],
        fields: Mapping[int, Mapping[str, str]],
        ask: AskModels,
    ) -> dict[View, Entry]:
        """By view, the hop to a state that is not the first."""
        first = place
        while (earlier := before[first]) is not None:
            first = earlier
        last = before[place]
        own, start = fields[place], fields[first]["observation"]
        other = {
            "incremental": fields[place if last is None else last]["observation"],
            "forward": start,
            "backward": own["goal"],
        }
        texts = [
            self.prompt.format_map({**own, "start": start, "before": other[view], "after": own["observation"]})
            for view in self.views
        ]
        queries = [self.query(text, self.read, system=self.system, n=self.n) for text in texts]
        answers = await each(ask(query) for query in queries)
        return dict(zip(self.views, map(mean_entry, answers), strict=True))


def states_of(tree: Tree) -> dict[int, list[int]]:
    """The actions of counted paths by the node that they begin from, both ascending; an action is its last node."""
    start = turn_start(tree)
    found = dict[int, list[int]]()
    for act in acts(tree):
        found.setdefault(int(tree.parent[start[act]]), []).append(act)
    return dict(sorted(found.items()))


def _state_before(tree: Tree, place: int) -> int | None:
    """The node that the turn before a state began from; None for the first state."""
    start = turn_start(tree)
    node = place
    while node >= 0 and tree.kind[node] != Kind.ACTION:
        node = int(tree.parent[node])
    return None if node < 0 else int(tree.parent[start[node]])


def _views(answers: Mapping[View, Entry], before: Mapping[View, float | None]) -> dict[View, float | None]:
    """By view the progress of a state, given its hops and the progress of the state before it."""
    return {
        view: progress_in_view(view, entry.value, before.get(view)) if entry.verdict is Verdict.OK else None
        for view, entry in answers.items()
    }


def _entry(
    progress: float | None,
    known: Mapping[View, float | None],
    paid: Mapping[View, Entry],
    answered: Mapping[View, Entry],
) -> Entry:
    """The entry of an action; `paid` are the answers whose cost is counted here."""
    questions, tokens = sum(each.questions for each in paid.values()), sum(each.tokens for each in paid.values())
    texts = tuple(text for each in paid.values() for text in each.texts)
    if progress is None or not np.isfinite(progress):
        wrong = [each.verdict for each in answered.values() if each.verdict is not Verdict.OK]
        verdict = wrong[-1] if wrong else Verdict.UNPARSED
        return Entry(verdict=verdict, questions=questions, tokens=tokens, texts=texts)
    votes = sum(each is not None for each in known.values())
    return Entry(value=progress, verdict=Verdict.OK, votes=votes, questions=questions, tokens=tokens, texts=texts)
