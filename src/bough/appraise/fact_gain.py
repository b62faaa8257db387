"""The Shapley information gain of questions: the weight of the facts that a reply reveals first."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, cast

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels, Scoring
from bough.appraise.path_fields import acts
from bough.appraise.shapley import Members, exact_shapley, prefixes, sampled_orders, sampled_shapley, subsets
from bough.appraise.true_answer import answer_field, true_answer
from bough.ask import Reply
from bough.ask.each import each
from bough.needs import Need, appraised, task_field
from bough.piece import Above, AtLeast, piece
from bough.tree import Entry, Kind, Tree, Verdict, context, derive, text_in, turn_start


@piece
class FactGain:
    """ProMed's Shapley information gain (arXiv 2508.13514): a reply has the weight of the facts that it reveals first.

    The field `field` of the task's data lists the facts f_1 to f_n that the agent does not see. v(S) is the policy's
    probability of the true answer, after the first prompt and the facts S. The weight of a fact is a function of its
    Shapley value phi for v:

        phi          .466667   .241667   .041667
        "softmax"    .370075   .330698   .299228    softmax of phi / temperature, at 2
        "positive"   .622222   .322222   .055556    max(phi, 0) over their sum

    A reply that reveals facts 1 and 2 and one that reveals 2 and 3 gain .700773 and .299228 with "softmax". Facts of
    the first observation are known, and are no gain. A fact is revealed by a text that has it as whole words, whatever
    their case. The value is at the observation after the question.

    At temperature 2, the paper's, "softmax" hardly tells facts apart, and a fact that misleads has a weight, too. The
    paper's facts are found in replies by a model. A task without facts has no gain.

    Cost: 2 ** n scores for each task of at most `exact` facts, else at most n * `orders` + 1.

    Attributes:
        column: Name of the column.
        field: The field of `Task.data` with the facts, a list of texts.
        answer: The field of `Task.data` with the true answer; "" for the last action of a successful path.
        prompt: Text before the answer, with the placeholder {facts}.
        weights: How Shapley values are made weights.
        temperature: Of "softmax", > 0.
        exact: Maximum number of facts whose values are exact.
        orders: Number of random orders for more facts.
        deadline_s: Maximum duration of a score, in seconds.
    """

    column: str = "facts"
    field: str = "facts"
    answer: str = "answer"
    prompt: str = "{facts}\n"
    weights: Literal["softmax", "positive"] = "softmax"
    temperature: Annotated[float, Above(0)] = 2.0
    exact: Annotated[int, AtLeast(0)] = 6
    orders: Annotated[int, AtLeast(1)] = 30
    deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 120.0

    @property
    def needs(self) -> frozenset[Need]:
        """The fields with the facts and with the answer."""
        return answer_field(self.answer) | {task_field(self.field)}

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The gain of each reply, at its observation.

        Raises:
            ValueError: when the task's facts are no list of texts.
        """
        facts, answer = self._facts(trees[0]) if trees else [], true_answer(trees, self.answer)
        first = next((_first_prompt(tree) for tree in trees if acts(tree)), None)
        if not facts or answer is None or first is None:
            return {self.column: [{0: Entry(value=0.0, verdict=Verdict.OK)} for _ in trees]}
        orders = None if len(facts) <= self.exact else sampled_orders(len(facts), self.orders, derive(0, *facts))
        wanted = subsets(len(facts)) if orders is None else prefixes(orders)
        replies = await each(
            ask.score(self._scoring(first, [facts[member] for member in sorted(one)], answer)) for one in wanted
        )
        missing = next((reply.verdict for reply in replies if reply.verdict is not Verdict.OK), None)
        if missing is not None:
            return {self.column: [{0: Entry(verdict=missing, questions=len(replies))} for _ in trees]}
        weight = self.weigh(_shapley(len(facts), dict(zip(wanted, replies, strict=True)), orders))
        columns = [_gains(tree, facts, weight) for tree in trees]
        columns[0][0] = Entry(value=0.0, verdict=Verdict.OK, votes=len(replies), questions=len(replies))
        return {self.column: columns}

    def weigh(self, phi: Sequence[float]) -> list[float]:
        """The weights of facts with these Shapley values; their sum is 1, or 0 where no fact helps."""
        if self.weights == "positive":
            total = sum(max(each, 0.0) for each in phi)
            return [max(each, 0.0) / total if total > 0 else 0.0 for each in phi]
        raised = [math.exp((each - max(phi)) / self.temperature) for each in phi]
        return [each / sum(raised) for each in raised]

    def _facts(self, tree: Tree) -> list[str]:
        found = tree.task.data.get(self.field, ())
        rows = list(cast("Sequence[object]", found)) if isinstance(found, list | tuple) else [None]
        if any(not isinstance(row, str) or not _words(row) for row in rows):
            raise ValueError(
                f"FactGain.field: got {found!r} in data[{self.field!r}] of task {tree.task.id}; need a list of texts"
            )
        return [str(row) for row in rows]

    def _scoring(self, tokens: tuple[int, ...], facts: Sequence[str], answer: str) -> Scoring:
        prefix = self.prompt.replace("{facts}", "\n".join(facts)) if facts else self.prompt.replace("{facts}\n", "")
        return Scoring(tokens=tokens, text=answer, prefix=prefix, deadline_s=self.deadline_s)


def _first_prompt(tree: Tree) -> tuple[int, ...]:
    return tuple(context(tree, int(turn_start(tree)[acts(tree)[0]])).tolist())


def _shapley(count: int, replies: Mapping[Members, Reply], orders: Sequence[Sequence[int]] | None) -> list[float]:
    value = {one: math.exp(reply.logprob) for one, reply in replies.items()}
    return exact_shapley(count, value) if orders is None else sampled_shapley(orders, value)


def _gains(tree: Tree, facts: Sequence[str], weight: Sequence[float]) -> dict[int, Entry]:
    """The weight of the facts that each text after an action is the first to have on its path."""
    known: dict[int, frozenset[int]] = {}
    asked: dict[int, bool] = {}
    entries = {0: Entry(value=0.0, verdict=Verdict.OK)}
    for node in range(tree.nodes):
        parent = int(tree.parent[node])
        before, after_action = known.get(parent, frozenset[int]()), asked.get(parent, False)
        text = text_in(tree.info[node]) if tree.kind[node] != Kind.ACTION else None
        new = frozenset(place for place, fact in enumerate(facts) if text and _words(fact) in _words(text)) - before
        known[node], asked[node] = before | new, after_action or tree.kind[node] == Kind.ACTION
        if new and after_action:
            entries[node] = Entry(value=sum(weight[place] for place in sorted(new)), verdict=Verdict.OK)
    return entries


def _words(text: str) -> str:
    """The words of a text between single spaces, so that words are found as a whole."""
    kept = "".join(each if each.isalnum() else " " for each in text.casefold()).split()
    return f" {' '.join(kept)} " if kept else ""
