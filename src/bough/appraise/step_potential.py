"""The step potential of SPAE: the policy's confidence and correctness if it answered now."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels, Continuation, Scoring
from bough.appraise.path_fields import acts
from bough.appraise.true_answer import answer_field, true_answer
from bough.ask import Reply
from bough.ask.each import each
from bough.ask.query_settings import check_sampling
from bough.checks import check_finite
from bough.needs import ENTROPIES, Need, appraised
from bough.tree import Entry, Tree, Verdict, context, turn_start


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPotential:
    """The potential of SPAE (arXiv 2601.03823) before each action: the policy is asked to answer at once, `n` times.

    After the context before an action and `prefix`, which begins an answer, the policy samples `n` short answers, and
    the true answer y is scored. With H_j the entropies of a sample's tokens, and p_m the probability of token m of y:

        conf = mean over the samples of exp(- mean over j of H_j)        acc = mean over m of p_m
        potential = 1.5 * acc * conf + 0.5 * acc - conf

    It is in [-1, 1]: 1 for a policy that is sure of the true answer, -1 for one that is sure of another, near 0 for one
    that does not know. acc .8 and conf .9 have .58; .1 and .9 have -.715.

    The true answer is the field `field` of the task's data, of a list the first. A task without it has the last action
    of its first successful path; while no path succeeds, acc is 0. A `prefix` such as "Final answer: " asks for an
    answer in worlds whose actions are not all answers. The paper asks after each paragraph of one long answer; here a
    step is a turn. In the released example acc and conf are products over the answer's tokens, divided by their number.

    Cost: `n` samples of up to `max_tokens` tokens and one score for each action, stored and counted as those of judges.

    Attributes:
        column: Name of the column.
        field: The field of `Task.data` with the answer; "" for the last action of a successful path. A field that no
            task has is refused.
        prefix: Begins the answer.
        n: Number of sampled answers.
        max_tokens: Maximum length of an answer.
        temperature: Of the sampling; 0.6 in the released example.
        deadline_s: Maximum duration of a question, in seconds.
    """

    column: str = "potential"
    field: str = "answer"
    prefix: str = ""
    n: int = 5
    max_tokens: int = 10
    temperature: float = 0.6
    deadline_s: float = 120.0

    def __post_init__(self) -> None:
        check_sampling(self, self.n)
        check_finite(self)

    @property
    def needs(self) -> frozenset[Need]:
        """The field with the answer, and entropies."""
        return answer_field(self.field) | {ENTROPIES}

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The potential of the state before each action, at the action."""
        answer = true_answer(trees, self.field)
        return {self.column: await each(self._tree(tree, ask, answer) for tree in trees)}

    async def _tree(self, tree: Tree, ask: AskModels, answer: str | None) -> Mapping[int, Entry]:
        nodes, start = acts(tree), turn_start(tree).tolist()
        entries = await each(self._entry(tuple(context(tree, start[node]).tolist()), ask, answer) for node in nodes)
        return dict(zip(nodes, entries, strict=True))

    async def _entry(self, tokens: tuple[int, ...], ask: AskModels, answer: str | None) -> Entry:
        """The potential of the state with this context."""
        samples = await each(ask.sample(self._continuation(tokens, vote)) for vote in range(self.n))
        truth = Reply(verdict=Verdict.OK)
        if answer is not None:
            truth = await ask.score(Scoring(tokens=tokens, text=answer, prefix=self.prefix, deadline_s=self.deadline_s))
        good = [reply for reply in samples if reply.verdict is Verdict.OK]
        questions, written = len(samples) + (answer is not None), sum(reply.tokens for reply in samples)
        texts = tuple(reply.text for reply in samples)
        if not good or truth.verdict is not Verdict.OK:
            verdict = samples[-1].verdict if not good else truth.verdict
            return Entry(verdict=verdict, questions=questions, tokens=written, texts=texts)
        conf = sum(math.exp(-reply.entropy) for reply in good) / len(good)
        return Entry(
            value=potential(truth.probability, conf),
            verdict=Verdict.OK,
            votes=len(good),
            questions=questions,
            tokens=written,
            texts=texts,
        )

    def _continuation(self, tokens: tuple[int, ...], vote: int) -> Continuation:
        return Continuation(
            tokens=tokens,
            prefix=self.prefix,
            vote=vote,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            deadline_s=self.deadline_s,
        )


def potential(acc: float, conf: float) -> float:
    """SPAE's step potential, in [-1, 1], of a correctness and a confidence in [0, 1]."""
    return 1.5 * acc * conf + 0.5 * acc - conf
