"""The information in an observation: how much it changes the log-probability of the next action."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels, Masked, Scoring
from bough.appraise.path_fields import acts
from bough.ask.each import each
from bough.needs import Need, appraised
from bough.piece import Above, piece
from bough.tree import Entry, Kind, Tree, Verdict, context, messages_in, path, tools_at, turn_start


@piece
class ObservationProbe:
    """InfoPO's probe (arXiv 2603.00656): the information in the observation before each action.

    It is the change of the log-probability of the action that followed, when the observation's tokens are replaced by
    as many of a text without information; its mean over the n tokens y of the action, nats:

        value = 1/n * sum of (log p(y | context) - log p(y | context with the observation masked))

    The mean over actions is an estimate of the divergence between the two policies; a single value may be negative.
    The marks of the chat template around the observation stay. A short text is filled up with its last token, a long
    one is cut. The value is at the action; it is 0 at the first turn, and where the context was rebuilt.

    Cost: two scores for each turn after the first, each turn of a tree once, at temperature 1. Both begin with the
    tokens of the context, whose keys and values the `Local` engine has stored.

    Attributes:
        column: Name of the column.
        mask: The text in place of the observation.
        deadline_s: Maximum duration of a score, in seconds.
    """

    column: str = "information"
    mask: str = "No information found."
    deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 120.0

    def __post_init__(self) -> None:
        if not self.mask.strip():
            raise ValueError(
                f"ObservationProbe.mask: got {self.mask!r}; need a text without information, such as 'Nothing.'"
            )

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The value of the observation before each action, at the action."""
        return {self.column: await each(self._tree(tree, ask) for tree in trees)}

    async def _tree(self, tree: Tree, ask: AskModels) -> Mapping[int, Entry]:
        nodes, start = acts(tree), turn_start(tree).tolist()
        entries = await each(self._entry(tree, node, start, ask) for node in nodes)
        return dict(zip(nodes, entries, strict=True))

    async def _entry(self, tree: Tree, node: int, start: Sequence[int], ask: AskModels) -> Entry:
        """The value at a turn, by its last node; `start` has the first node of each turn."""
        place = int(tree.parent[start[node]])
        before = int(tree.parent[place])
        if tree.kind[place] != Kind.OBSERVATION or tree.kind[before] != Kind.ACTION:
            return Entry(value=0.0, verdict=Verdict.OK)
        masked = Masked(
            last=int(tree.span[place + 1] - tree.span[place]),
            action=_written(tree, start[before], before),
            messages=tuple(replace(message, content=self.mask) for message in messages_in(tree.info[place])),
            tools=tools_at(tree, place),
        )
        tokens = tuple(context(tree, start[node]).tolist())
        scoring = Scoring(tokens=tokens, action=_written(tree, start[node], node), deadline_s=self.deadline_s)
        replies = await each(ask.score(asked) for asked in (scoring, replace(scoring, masked=masked)))
        for reply in replies:
            if reply.verdict is not Verdict.OK:
                return Entry(verdict=reply.verdict, questions=2)
        seen, unseen = replies
        return Entry(value=seen.logprob - unseen.logprob, verdict=Verdict.OK, votes=1, questions=2)


def _written(tree: Tree, first: int, last: int) -> tuple[int, ...]:
    """The tokens of a turn, from its first node to its last."""
    walk = path(tree, last)
    return tuple(token for node in walk[walk >= first].tolist() for token in tree.tokens_of(node).tolist())
