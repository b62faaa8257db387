"""A question that exceeds the context of its model is refused and counted, whichever piece it is from."""

from dataclasses import replace

import pytest
from tests.explore.stage import Letters, grow, runner
from tests.search.talk import letter, talk

from bough.engine import Scripted
from bough.explore import LlmJudge, Slate
from bough.rollout import Explorer, RoleModel
from bough.search import Best, Confidence, Imagine, Judge, JudgeAction, Pairwise, Ranked, Sample, Search
from bough.search.curiosity import Curiosity
from bough.searches.implicit_beam import implicit_beam
from bough.tree import Outcome, leaves, refusal_in

SAMPLE = Sample(width=2)


@pytest.mark.parametrize(
    "explorer",
    [
        Search(select=Best(), expand=SAMPLE, evaluate=Judge(role="judge")),
        Search(select=Best(), expand=SAMPLE, evaluate=Confidence(role="judge")),
        Search(select=Best(), expand=SAMPLE, evaluate=Curiosity(role="judge")),
        Search(select=Best(), expand=SAMPLE, rate=JudgeAction(role="judge")),
        Search(select=Best(), expand=SAMPLE, rate=Ranked(role="judge")),
        Search(select=Best(), expand=SAMPLE, rate=Pairwise(role="judge")),
        Search(select=Best(), expand=SAMPLE, rate=Imagine(world_role="judge")),
        Slate(quality=LlmJudge(role="judge")),
        implicit_beam(),
    ],
    ids=lambda each: str(getattr(each, "evaluate", None) or getattr(each, "rate", None) or each)[:20],
)
def test_the_search_goes_on_without_it(explorer: Explorer) -> None:
    engine, judge = talk(letter, lambda _: "yes"), Scripted(script=lambda _: (ord("y"),), context_tokens=2)
    place = runner(engine, max_tokens=200)
    models = {role: RoleModel(engine=judge, renderer=Letters(), name=role) for role in ("judge", "reference")}
    (tree,) = grow(replace(place, agent=replace(place.agent, models=models)), explorer).trees
    assert tree.counts.refused > 0
    assert "need one with" in refusal_in(tree.info[0])
    assert not judge.requests
    assert not (tree.outcome[leaves(tree)] == Outcome.FAILED).any()
