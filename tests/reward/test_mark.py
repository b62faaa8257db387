"""A reward for the parser's numbers."""

from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.needs import annotation
from bough.reward import EnvReward, MarkReward, compute_rewards
from bough.tree import Outcome


def test_ssrl_pays_nine_tenths_for_the_answer_and_one_for_the_form() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, info={"format": 1.0}),
        N(parent=0, kind=ACTION, tokens=(4,), env_reward=1.0, info={"format": 0.5}),
        N(parent=1, kind=OBSERVATION, outcome=Outcome.TERMINATED),
        N(parent=0, kind=ACTION, tokens=(5,), info={"format": "no number"}),
        N(parent=3, kind=OBSERVATION, outcome=Outcome.TERMINATED),
    )
    (found,) = compute_rewards([tree], [EnvReward(weight=0.9), MarkReward(mark="format", weight=0.1)])
    assert {*found.channels} == {"env", "format"}
    assert found.returns().tolist() == [0.9 + 0.05, 0.0]
    assert MarkReward().needs == {annotation("format")}
