"""Demonstrations of a world model: the observations of a step's trees, as answers to its questions."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Annotated, ClassVar

from bough.context import Full
from bough.explore.world_model import observed_text, system_text, world_question
from bough.needs import REVISED_PATHS, Need
from bough.piece import AtLeast, piece
from bough.rewrite.revise import PathBuilder, RevisedPath
from bough.rollout import PolicyFormat
from bough.tree import Kind, Outcome, Rewarded, Source, Ternary, Tree, counted, instructions_in, path, text_in


@piece
class PredictObservations:
    """StarWM (arXiv 2602.14857): trains the policy as a world model, on the observation after each executed action.

    Every transition of a step's trees becomes a demonstration of one turn. Its prompt is the question that `WorldModel`
    asks, its answer the real observation, and the end of an episode is marked as `WorldModel` reads it:

        question    You are the environment of an agent. ... What happened: S.. > right        answer    .S.

    So the model that `WorldModel`, `Imagine` and `StarWm` ask is the policy, or a checkpoint of it in another role. The
    loss is on the tokens of the observation alone. Equal questions are asked once for a tree.

    Attributes:
        per_tree: Most transitions of a tree, chosen by a hash of their texts; at least 1.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({REVISED_PATHS})

    per_tree: Annotated[int, AtLeast(1)] = 4

    @property
    def texts(self) -> tuple[str, ...]:
        """The system prompt, a question without turns, and the marks of an end."""
        return system_text(), world_question("", ()), observed_text("", over=True, solved=False)

    def __call__(self, rewarded: Sequence[Rewarded], policy_format: PolicyFormat) -> list[RevisedPath]:
        """The demonstrations, each a separate tree; longer ones than the maximum are left out.

        Args:
            rewarded: Trees.
            policy_format: The policy's formats.
        """
        policy_format = replace(policy_format, context=Full())
        return [made for each in rewarded for made in self._of_tree(each.tree, policy_format)]

    def _of_tree(self, tree: Tree, policy_format: PolicyFormat) -> list[RevisedPath]:
        """The demonstrations of a tree."""
        found: dict[str, str] = {}
        for leaf in counted(tree).tolist():
            found |= dict(_transitions(tree, leaf))
        chosen = sorted(
            found, key=lambda question: blake2b(question.encode(errors="surrogatepass"), digest_size=8).digest()
        )
        made: list[RevisedPath] = []
        for question in chosen[: self.per_tree]:
            one = PathBuilder(tree.task, system_text(), (question, ()), policy_format)
            last = one.turn((question, ()), policy_format.renderer.write(found[question]), Source.TEACHER)
            last.outcome = Outcome.TERMINATED
            if policy_format.max_tokens is None or one.longest <= policy_format.max_tokens:
                made.append(RevisedPath(tree=one.builder.done(), gap=0.0))
        return made


def _transitions(tree: Tree, leaf: int) -> list[tuple[str, str]]:
    """The questions about a path, with their answers."""
    instructions, past, found = instructions_in(tree.info[0]), list[tuple[str, str]](), list[tuple[str, str]]()
    read = text_in(tree.info[0]) or ""
    action: str | None = None
    for node in map(int, path(tree, leaf)[1:]):
        if tree.kind[node] == Kind.ACTION:
            action = text_in(tree.info[node]) or ""
        elif action is not None:
            past.append((read, action))
            read, action = text_in(tree.info[node]) or "", None
            over = tree.outcome[node] == Outcome.TERMINATED
            solved = tree.success[node] == Ternary.YES
            answer = observed_text(read, over=bool(over), solved=bool(solved))
            if answer:
                found.append((world_question(instructions, past), answer))
    return found
