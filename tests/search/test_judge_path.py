"""Best of n by a judge of whole paths, which is asked as in training."""

import asyncio
from dataclasses import replace

from tests.appraise.test_appraisers import says
from tests.explore.stage import Letters, runner
from tests.search.game import Game, answer

from bough.appraise import Verifications
from bough.appraise.path_fields import acts
from bough.engine import Request, Scripted
from bough.env import InProcessHost
from bough.rollout import RoleModel
from bough.searches.best_by_judge import best_by_judge
from bough.tree import Task, Tree, counted, path

GAME = Game(depth=2, pays={"aa": 0.0, "ab": 0.0, "ba": 0.0, "bb": 1.0})


def grow(verdicts: list[str], letters: str) -> tuple[Tree, list[str]]:
    """A tree of two-letter paths whose judge gives these verdicts, one after another, and the questions to it."""
    count, asked, left = iter(letters), list[str](), iter(verdicts)

    def judge(request: Request) -> tuple[int, ...]:
        asked.append(Letters().text(request.prompt_tokens))
        return says(next(left))

    place = runner(Scripted(script=lambda _: (ord(next(count)),)), InProcessHost(env=GAME))
    models = {"judge": RoleModel(engine=Scripted(script=judge), renderer=Letters(), name="scripted")}
    place = replace(place, agent=replace(place.agent, models=models))
    how = best_by_judge(n=len(letters) // 2, max_concurrent=1)
    return asyncio.run(place.run(how, [Task(id="t")], seed=0)).trees[0], asked


def test_the_best_verdict_wins_and_the_question_is_that_of_training() -> None:
    tree, asked = grow(["[1, 0] no", "[1, 1] yes", "[1, 0] yes"], "abbaaa")
    assert answer(tree) == ["b", "a"]
    other, _ = grow(["[1, 1] no", "[0, 0] yes", "[0, 1] no"], "abbaaa")
    assert answer(other) == ["b", "a"], ".6 for a right result exceeds .4 for right steps"
    ends = counted(tree).tolist()
    steps = {leaf: [node for node in path(tree, leaf).tolist() if node in acts(tree)] for leaf in ends}
    asks = Verifications(role="judge", n=1)
    trained = {asks.question(tree, leaf, steps[leaf]).prompt for leaf in ends}
    assert all(any(question in prompt for prompt in asked) for question in trained)


def test_an_answer_without_verdicts_is_asked_again_and_then_counts_as_a_failure() -> None:
    tree, asked = grow(["hm", "[1, 0] no", "hm", "[1] yes"], "abba")
    assert len(asked) == 4
    assert answer(tree) == ["a", "b"]
