"""Step-GRPO with a judge: a turn is compared by its own rating."""

from dataclasses import replace

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.cli.find import find_run
from bough.config import ConfigError, override
from bough.reward import reward_trees
from bough.train.check import check
from bough.tree import Appraisal, Entry, Outcome, Tree, Verdict

SERVER = "models.judge=OpenAi(model=m, base_url=http://127.0.0.1:9/v1)"


def routed(ratings: tuple[float, float]) -> Tree:
    """Two turns, which a judge has rated; the last one is paid 1 by the environment."""
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1, 2)),
        N(parent=0, kind=ACTION, tokens=(3,)),
        N(parent=1, kind=OBSERVATION, tokens=(4,)),
        N(parent=2, kind=ACTION, tokens=(5,), env_reward=1.0),
        N(parent=3, kind=OBSERVATION, tokens=(), outcome=Outcome.TERMINATED, success=True),
    )
    entries = {node: Entry(value=value, verdict=Verdict.OK) for node, value in zip((1, 3), ratings, strict=True)}
    return replace(tree, appraisals={"step": Appraisal.of(entries, tree.nodes)})


def test_equal_answers_differ_by_the_step_that_the_judge_prefers() -> None:
    run = find_run("step_grpo(discount=0, judge=judge)", "routed_search")
    rewarded = reward_trees([routed((1.0, 0.5)), routed((0.0, 0.5))], run.world.rewards)
    first, second = (each.positive + each.negative for each in run.method.credit(rewarded))
    spans = rewarded[0].tree.span
    assert first[spans[1]] > 0 > second[spans[1]]
    assert first[spans[3]] == second[spans[3]] == 0
    plain = find_run("step_grpo(discount=0)", "routed_search")
    unjudged = plain.method.credit(reward_trees([routed((1.0, 0.5)), routed((0.0, 0.5))], plain.world.rewards))
    assert not any(np.any(each.positive) or np.any(each.negative) for each in unjudged)


def test_a_judge_needs_a_model() -> None:
    run = find_run("step_grpo(judge=judge)", "routed_search")
    with pytest.raises(ConfigError, match="judge"):
        check(run)
    check(override(run, [SERVER]))
    (rubric,) = run.world.appraisers
    assert rubric.each == "step"  # type: ignore[attr-defined]
