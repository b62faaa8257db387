"""Appraisers on a turn that was sampled in pieces: the same as on the turn in one piece."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import AnswerProbe, Appraiser, Continuation, FactGain, Scoring, StepPotential
from bough.appraise.two_paths import DifferentPaths
from bough.ask import Answer, Query, Reply
from bough.tree import Outcome, Task, Tree, Verdict

DATA = {"answer": "x", "facts": ["y"]}


@dataclass
class Noted:
    """Contexts of all questions about the policy's own probabilities."""

    contexts: set[tuple[int, ...]] = field(default_factory=set)

    async def __call__(self, query: Query[Any]) -> Answer[Any]:
        raise AssertionError(query)

    async def score(self, scoring: Scoring) -> Reply:
        self.contexts.add(scoring.tokens)
        return Reply(verdict=Verdict.OK, logprob=-1.0, probability=0.5)

    async def sample(self, continuation: Continuation) -> Reply:
        self.contexts.add(continuation.tokens)
        return Reply(verdict=Verdict.OK, text="x")

    def text(self, tokens: object) -> str:
        raise AssertionError(tokens)


def twice() -> Tree:
    """The same action in one piece and in two."""
    ends = {"kind": OBSERVATION, "tokens": (2,), "outcome": Outcome.TERMINATED, "success": True}
    return build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2, 3)),
        N(parent=0, kind=ACTION, tokens=(4,)),
        N(parent=1, kind=ACTION, tokens=(5, 6), info={"text": "go"}),
        N(parent=2, **ends),  # type: ignore[arg-type]
        N(parent=0, kind=ACTION, tokens=(4, 5, 6), info={"text": "go"}),
        N(parent=4, **ends),  # type: ignore[arg-type]
        task=Task(id="t", data=DATA),
    )


@pytest.mark.parametrize("piece", [AnswerProbe(), StepPotential(), FactGain()])
def test_the_state_before_a_turn_has_nothing_of_the_turn(piece: Appraiser) -> None:
    ask = Noted()
    asyncio.run(piece.appraise([twice()], ask))
    assert ask.contexts == {(1, 2, 3)}


def test_paths_with_the_same_tokens_are_one_path() -> None:
    assert len(DifferentPaths.of([twice()]).texts) == 1
