"""A tournament of the paths of a task, by pairwise comparisons."""

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Annotated

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.two_paths import TWO, DifferentPaths, fields_of_two
from bough.ask import Answer, VoteSettings
from bough.ask.each import each
from bough.ask.prompts import Choice, Placeholders
from bough.needs import Need, appraised
from bough.piece import piece
from bough.tree import Entry, Tree, Verdict


@piece
class RoundRobin(VoteSettings):
    """Every two different paths of a task are compared, in both orders; the value is the share of comparisons won.

    k different paths need n * k * (k - 1) questions, so a bias for the first or second position cancels. Paths with
    the same tokens are one path. A comparison without a parsable answer leaves the share; a path without any comparison
    has no value. A path without a different one is worth .5, without a question.

    Attributes:
        column: Name of the column.
        prompt: The question, with the placeholders {instructions}, {first} and {second}.
        system: The system prompt.
        n: Number of votes on each ordered pair.
    """

    column: str = "rank"
    prompt: Annotated[str, Placeholders(required=("first", "second"))] = TWO
    system: str = "You compare the work of two agents."
    max_tokens: int = 64

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
        pairs = list(permutations(texts, 2))
        prompts = [self.prompt.format_map(fields_of_two(texts[one], texts[two])) for one, two in pairs]
        read = Choice(count=2)
        answers = await each(ask(self.query(text, read, system=self.system, n=self.n)) for text in prompts)
        met: dict[bytes, list[Answer[tuple[int, ...]]]] = {key: [] for key in texts}
        won: dict[bytes, list[bool]] = {key: [] for key in texts}
        for (one, two), answer in zip(pairs, answers, strict=True):
            for place, key in enumerate((one, two)):
                met[key].append(answer)
                won[key] += [order[0] == place for order in answer.values]
        return {key: _entry(won[key], met[key]) for key in texts}


def _entry(won: Sequence[bool], met: Sequence[Answer[tuple[int, ...]]]) -> Entry:
    """The entry of a path; a question is counted at both of its paths, by half."""
    return Entry(
        value=sum(won) / len(won) if won else math.nan,
        verdict=Verdict.OK if won else met[-1].verdict,
        votes=len(won),
        questions=sum(len(answer.texts) for answer in met) // 2,
        tokens=sum(answer.tokens for answer in met) // 2,
    )
