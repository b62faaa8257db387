"""SPaR: refined answers moved to the first prompt, and examples for the judge and the refiner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bough.ask.answered_question import AnsweredQuestion, answered_questions_in
from bough.context import conversation
from bough.needs import TEACHER_TURNS, Need
from bough.rewrite.revise import PathBuilder, RevisedPath, Seen
from bough.rollout import PolicyFormat
from bough.tree import (
    Ints,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Task,
    Tree,
    add_line,
    hint_in,
    instructions_in,
    observation_in,
    path,
    score_in,
    tools_at,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """SPaR (arXiv 2412.11605): the accepted refinement as a first answer, and what judge and refiner did right.

    A search such as `spar()` refines a first answer a until the judge accepts an answer r. From its tree come

        pair       prompt -> r               preferred to a by `Dpo`, which reads a in the search's own tree
        refiner    prompt a .. b hint -> r   the last refinement, as the refiner read it
        judge      question -> judgement     of one accepted and one rejected answer, a judgement of the majority

    An answer is accepted when its own value, the share of positive judgements, is above `accept`; the values of its
    refinements do not count. Without an accepted answer, or when the first was accepted, there is no pair and no
    example of the refiner. `RevisedPath.gap` is the difference of the two answers' own values. Ties among the
    judgements of an answer give no example. The texts of judgements are written in the policy's format. Policy, judge
    and refiner are one model here; the paper trains an actor by the pairs and a refiner, which also judges, by the
    examples. The refiner here reads all answers of the path, the paper's the last one and its critique.

    Attributes:
        accept: An answer's own value above which it is accepted.
        refiner: Whether there are examples of the refiner.
        judge: Whether there are examples of the judge; they need `Judge(keep=True)`.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({TEACHER_TURNS})

    accept: float = 0.5
    refiner: bool = True
    judge: bool = True

    @property
    def texts(self) -> tuple[str, ...]:
        """None: the model itself wrote everything that it learns."""
        return ()

    def __call__(self, rewarded: Sequence[Rewarded], policy_format: PolicyFormat) -> list[RevisedPath]:
        """Make the paths, each a separate tree; paths that exceed the context of the model are left out.

        Args:
            rewarded: Trees of searches.
            policy_format: The policy's formats.
        """
        made = [each for one in rewarded for each in self._of_tree(one.tree, policy_format)]
        return [
            path for path, longest in made if policy_format.max_tokens is None or longest <= policy_format.max_tokens
        ]

    def _of_tree(self, tree: Tree, policy_format: PolicyFormat) -> Iterator[tuple[RevisedPath, int]]:
        """The paths of a tree, each with its longest text, tokens."""
        (answers,) = np.nonzero(tree.answer)
        acts = [
            node for end in answers.tolist() for node in map(int, path(tree, end)) if tree.kind[node] == Kind.ACTION
        ]
        scores = [score_in(tree.info[act]) for act in acts]
        if len(acts) > 1 and scores[-1] > self.accept:
            gap = scores[-1] - scores[0]
            yield _finished(_on_path(tree, acts[-1:], "", policy_format, tree.task), gap)
            hint = hint_in(tree.info[acts[-1]])
            if self.refiner and hint:
                yield _finished(_on_path(tree, acts, hint, policy_format, _other(tree.task, "refiner")), gap)
        for accepted in (True, False) if self.judge else ():
            found = (_of_majority(answered_questions_in(info, "judge"), accepted) for info in tree.info)
            question = next((each for each in found if each is not None), None)
            if question is not None:
                yield _finished(_judged(tree, question, policy_format, f"judge {accepted}"), 0.0)


def _on_path(tree: Tree, acts: Sequence[int], hint: str, policy_format: PolicyFormat, task: Task) -> PathBuilder:
    """Some actions of a path after the first prompt; the last is learned, with a hint below what it answers."""
    root: Ints = tree.tokens_of(0)
    made = PathBuilder(task, instructions_in(tree.info[0]), _seen(tree, 0), policy_format, root.tolist())
    for act in acts:
        seen = _seen(tree, int(tree.parent[act]))
        if act != acts[-1]:
            made.turn(seen, tree.tokens_of(act).tolist(), Source.FORCED)
        else:
            made.turn((add_line(seen[0], hint), seen[1]), tree.tokens_of(act).tolist(), Source.TEACHER)
    return made


def _judged(tree: Tree, question: AnsweredQuestion, policy_format: PolicyFormat, name: str) -> PathBuilder:
    """A question, and a judgement, which is learned."""
    prompt = policy_format.renderer.render(conversation(question.system, (), question.text))
    made = PathBuilder(_other(tree.task, name), question.system, (question.text, ()), policy_format, prompt)
    made.turn((question.text, ()), policy_format.renderer.write(question.answer), Source.TEACHER)
    return made


def _of_majority(judgements: Sequence[AnsweredQuestion], accepted: bool) -> AnsweredQuestion | None:
    """The first judgement that agrees with most others, if most accept the answer, or reject it; None otherwise."""
    sides = {side: [each for each in judgements if _accepts(each) is side] for side in (True, False)}
    return sides[accepted][0] if len(sides[accepted]) > len(sides[not accepted]) else None


def _accepts(judgement: AnsweredQuestion) -> bool | None:
    """Whether a judgement accepts the answer; None when it does neither."""
    value = judgement.value
    return None if value is None or value == 0.5 else value > 0.5


def _finished(made: PathBuilder, gap: float) -> tuple[RevisedPath, int]:
    """The path with its end, and its longest text."""
    made.builder.nodes[-1].outcome = Outcome.TERMINATED
    made.builder.nodes[-1].success = True
    return RevisedPath(tree=made.builder.done(), gap=gap), made.longest


def _other(task: Task, name: str) -> Task:
    """A task of its own, whose answers are compared with no others."""
    return replace(task, id=f"{task.id} {name}")


def _seen(tree: Tree, node: int) -> Seen:
    return observation_in(tree.info[node]), tools_at(tree, node)
