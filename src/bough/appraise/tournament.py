"""A tournament that ranks the paths of a task."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.topologies import Match, Topology, quantiles, standings
from bough.appraise.two_paths import DifferentPaths, fields_of_two
from bough.ask import Answer, VoteSettings
from bough.ask.each import each
from bough.ask.prompts import AnswerParser, LabelParser, Placeholders
from bough.needs import Need, appraised
from bough.piece import piece
from bough.tree import Entry, Tree, Verdict

TWO = (
    "Two agents were told:\n{instructions}\n\nThe first:\n{first}\n\nThe second:\n{second}\n\n"
    "Compare their steps, their use of tools and what they reached. End with 1 if the first did its task better, 2 if "
    "the second did, or tie."
)


@piece
class Tournament(VoteSettings):
    """ArenaRL's tournament (arXiv 2601.06487): comparisons rank the paths of a task; the value is the rank's quantile.

    Two paths are compared in both orders, `n` times each, so a bias for a position cancels: the margin is the mean of
    both orders. The value of the path with rank r of m is (m - r) / (m - 1), at its leaf. The matches of m paths:

        anchor              m - 1         all against the first path
        single_elimination  2 (m - 1)     a bracket whose seeds are the results against the first path; at most
        double_elimination  2 m - 2       two defeats eliminate; at most
        swiss               m/2 log2(m)   like scores meet, no two meet twice; then by the opponents' scores
        round_robin         m (m - 1)/2   all pairs

    After an elimination the rank is by the round, then by the mean score. A path that a tie
    eliminates shares the rank of its opponent, and equal ranks share their mean: ties alone give .5 to all.
    Paths with the same tokens are one path, without a question; one path alone is worth .5.

    A match is undecided if an order has no readable answer. It is in no score; the path that it eliminates, and one
    without any decided match, have no value.

    The first path meets all others, so its own seed is that of a tie; where the number of paths is no power of two, the
    best seeds have byes. If the first of three paths beats the others, and the second the third, they have the
    ranks 1, 2, 3. In the released code (Alibaba-NLP/qqr) the first path's seed is the mean of its scores and other
    seeds have byes: ranks 1, 3, 2. There ties are broken by the position in the group, and the players of a
    Swiss round are not those of its results. The paper's first path is a greedy sample, its judge writes two scores.

    Attributes:
        column: Name of the column.
        topology: The matches.
        prompt: The question, with the placeholders {instructions}, {first} and {second}.
        system: The system prompt.
        read: Converts an answer to the share of the first path: 1 if it is better, 0 if the second is, .5 for a tie.
        n: Number of votes on each order of a match.
    """

    column: str = "rank"
    topology: Topology = "single_elimination"
    prompt: Annotated[str, Placeholders(required=("first", "second"))] = TWO
    system: str = "You compare the work of two agents."
    read: AnswerParser[float] = field(default_factory=lambda: LabelParser(scores={"1": 1.0, "2": 0.0, "tie": 0.5}))

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The quantile of each path, at its leaf."""
        paths = DifferentPaths.of(trees)
        entries = await self._rank(list(paths.texts.values()), ask)
        return {self.column: paths.at_leaves(dict(zip(paths.texts, entries, strict=True)))}

    async def _rank(self, texts: Sequence[dict[str, str]], ask: AskModels) -> list[Entry]:
        """The entry of each different path; a question counts at the first path of its match."""
        if len(texts) < 2:
            return [Entry(value=0.5, verdict=Verdict.OK)] * len(texts)
        asked: list[list[Answer[float]]] = [[] for _ in texts]
        margins: dict[Match, float | None] = {}

        async def play(matches: Sequence[Match]) -> list[float | None]:
            new = [match for match in matches if match not in margins]
            for match, (margin, answers) in zip(
                new, await each(self._match(texts[one], texts[two], ask) for one, two in new), strict=True
            ):
                one, two = match
                margins[one, two], margins[two, one] = margin, None if margin is None else -margin
                asked[match[0]].extend(answers)
            return [margins[match] for match in matches]

        ranks = quantiles(await standings(self.topology, len(texts), play))
        return [_entry(rank, answers) for rank, answers in zip(ranks, asked, strict=True)]

    async def _match(
        self, one: dict[str, str], two: dict[str, str], ask: AskModels
    ) -> tuple[float | None, Sequence[Answer[float]]]:
        """By how much the first path wins, from -1 to 1, and the answers in both orders."""
        texts = [self.prompt.format_map(fields_of_two(*order)) for order in ((one, two), (two, one))]
        answers = await each(ask(self.query(text, self.read, system=self.system, n=self.n)) for text in texts)
        ahead, back = (sum(answer.values) / max(1, len(answer.values)) for answer in answers)
        return (ahead - back if all(answer.values for answer in answers) else None), answers


def _entry(rank: float | None, answers: Sequence[Answer[float]]) -> Entry:
    questions, tokens = sum(len(answer.texts) for answer in answers), sum(answer.tokens for answer in answers)
    if rank is not None:
        return Entry(value=rank, verdict=Verdict.OK, votes=questions, questions=questions, tokens=tokens)
    missing = [answer.verdict for answer in answers if answer.verdict is not Verdict.OK]
    return Entry(verdict=missing[-1] if missing else Verdict.UNPARSED, questions=questions, tokens=tokens)
