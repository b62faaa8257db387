"""A tournament of the paths of a task, by pairwise comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels, Reply, check_votes, each
from bough.appraise.prompts import Choice, check_placeholders
from bough.appraise.two_paths import TWO, DifferentPaths, question_of_two
from bough.checks import check_finite
from bough.needs import POLICY, Need, appraised, roles
from bough.tree import Entry, Tree, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobin:
    """Every two different paths of a task are compared, in both orders; the value is the share of comparisons won.

    k different paths need n * k * (k - 1) questions, so a bias for the first or second position cancels. Paths with
    the same tokens are one path. A comparison without a parsable answer leaves the share; a path without any comparison
    has no value. A path without a different one is worth .5, without a question.

    Attributes:
        column: Name of the column.
        prompt: The question, with the placeholders {instructions}, {first} and {second}.
        system: The system prompt.
        n: Number of votes on each ordered pair.
        role: The role whose model answers.
        max_tokens: Maximum length of an answer.
        temperature: Of the sampling.
        deadline_s: Maximum duration of an answer, in seconds.
    """

    column: str = "rank"
    prompt: str = TWO
    system: str = "You compare the work of two agents."
    n: int = 1
    role: str = POLICY
    max_tokens: int = 64
    temperature: float = 1.0
    deadline_s: float = 120.0

    def __post_init__(self) -> None:
        check_votes(self)
        check_placeholders("RoundRobin.prompt", self.prompt, required=("first", "second"))
        check_finite(self)

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role)

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The value of each path, at its leaf."""
        paths = DifferentPaths.of(trees)
        return {self.column: paths.at_leaves(await self._compare(paths.texts, ask))}

    async def _compare(self, texts: Mapping[bytes, dict[str, str]], ask: AskModels) -> dict[bytes, Entry]:
        """The entry of each different path."""
        if len(texts) == 1:
            return dict.fromkeys(texts, Entry(value=0.5, verdict=Verdict.OK))
        pairs = [(one, two, vote) for one, two in permutations(texts, 2) for vote in range(self.n)]
        replies = await each(ask(question_of_two(self, texts[one], texts[two], vote)) for one, two, vote in pairs)
        met: dict[bytes, list[tuple[Reply, bytes | None]]] = {key: [] for key in texts}
        for (one, two, _), reply in zip(pairs, replies, strict=True):
            order = Choice(count=2)(reply.text) if reply.verdict is Verdict.OK else None
            winner = None if order is None else (one, two)[order[0]]
            for key in (one, two):
                met[key].append((reply, winner))
        return {key: _entry(key, replies) for key, replies in met.items()}


def _entry(key: bytes, met: Sequence[tuple[Reply, bytes | None]]) -> Entry:
    """The entry of a path; a question is counted at both of its paths, by half."""
    decided = [winner for _, winner in met if winner is not None]
    questions, tokens = len(met) // 2, sum(reply.tokens for reply, _ in met) // 2
    if decided:
        value = sum(winner == key for winner in decided) / len(decided)
        return Entry(value=value, verdict=Verdict.OK, votes=len(decided), questions=questions, tokens=tokens)
    last = met[-1][0].verdict
    verdict = Verdict.UNPARSED if last is Verdict.OK else last
    return Entry(verdict=verdict, questions=questions, tokens=tokens)
