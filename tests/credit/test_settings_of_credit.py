"""Each setting of a credit rule at a value other than its default, with numbers by hand or by a plain loop."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.appraise.test_checklist import scored
from tests.appraise.test_verification import judged
from tests.credit.test_hae import card, table
from tests.credit.test_hbpo import told
from tests.credit.test_perplexity_band import of_turns, path
from tests.credit.test_rlvmr import EXAMPLE
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, rewarded

from bough.credit import (
    Credit,
    Egpo,
    Filtered,
    Hae,
    Hbpo,
    PerplexityBand,
    QLearning,
    QuestionAnswer,
    Rlvmr,
    Spae,
    TaskWeight,
    TurnPosition,
    Verified,
)
from bough.tree import Outcome, Rewarded, Ternary, path_view


@pytest.mark.parametrize(("discount", "lam_low", "lam_high"), [(0.8, 0.95, 0.95), (0.95, 0.5, 0.95), (0.95, 0.95, 0.5)])
def test_hae(discount: float, lam_low: float, lam_high: float) -> None:
    """Four turns in two segments; only the last is paid."""
    low, first, second, g = (0.5, 0.6, 0.4, 0.7), 0.3, 0.5, discount
    action = [0.0] * 4
    action[3] = 1 - low[3]
    action[2] = g * low[3] - low[2] + g * lam_low * action[3]
    action[1] = g * second - low[1]
    action[0] = g * low[1] - low[0] + g * lam_low * action[1]
    later = g * 1 - second
    subgoal = [g**2 * second - first + g**2 * lam_high * later, later]
    found = table(card(), Hae(whiten=False, discount=discount, lam_low=lam_low, lam_high=lam_high))
    assert found[:, 3] == pytest.approx(action)
    assert found[[0, 2], 1] == pytest.approx(subgoal)


def test_q_learning() -> None:
    """The next action is rated -3: four turns are left, and the target is .5 ^ 4."""
    nodes = [
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, rating=-2.0, valid=Ternary.YES),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, rating=-3.0, valid=Ternary.YES),
        N(parent=3, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=Ternary.YES),
    ]
    (credited,) = QLearning(head="cost", discount=0.5)([rewarded(build(*nodes))])
    assert credited.value_targets.keys() == {"cost"}
    assert credited.value_targets["cost"][[1, 3]] == pytest.approx([0.5**4, 1.0])


def test_quantiles_of_perplexity() -> None:
    """Of 1 to 10 the quantiles .3 and .6 are 3.7 and 6.4."""
    ten = [float(each) for each in range(1, 11)]
    assert of_turns(PerplexityBand(low=0.3, high=0.6), path(*ten)) == [[0, 0, 0, 1, 1, 1, 0, 0, 0, 0]]
    assert of_turns(PerplexityBand(low=0.3, high=1.0), path(*ten)) == [[0, 0, 0, *[1] * 7]]
    assert of_turns(PerplexityBand(low=0.0, high=0.6), path(*ten)) == [[*[1] * 6, 0, 0, 0, 0]]


def test_the_potential_that_is_saturated() -> None:
    """Above .15 after the first, third and fourth turn."""
    after = np.asarray([0.2, 0.1, 0.16, 0.95])
    expected = [1 - 0.5 * (1 - math.exp(-count)) for count in (0, 1, 1, 2)]
    assert Spae(saturated=0.15).discounts(after, np.asarray([0, 4])) == pytest.approx(expected)


def test_the_bound_and_the_weight_of_an_entropy() -> None:
    advantage, entropy = np.asarray([1.0, 1, -1, -1]), np.asarray([0.5, 5, 0.5, 5])
    assert Egpo(kappa=4.0).raised(advantage, entropy) == pytest.approx([1.2, 1.25, -0.8, -0.75])
    assert Egpo(alpha=0.1).raised(advantage, entropy) == pytest.approx([1.05, 1.5, -0.95, -0.5])


@pytest.mark.parametrize(
    ("least", "kept"), [(0.8, [False, True, False]), (0.2, [True, True, True]), (None, [True, True, False])]
)
def test_a_least_return(least: float | None, kept: list[bool]) -> None:
    """Of three paths, the first two with success."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for paid, success in ((0.5, True), (0.9, True), (0.3, False)):
        nodes.append(N(parent=0, kind=ACTION, env_reward=paid))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=success))
    assert Filtered(min_return=least).keeps(path_view([rewarded(build(*nodes))])).tolist() == kept


def asked(gain: float, result: float) -> Rewarded:
    """A question with a gain, then an answer that is paid."""
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION), N(parent=1, kind=OBSERVATION)]
    nodes += [N(parent=2, kind=ACTION), N(parent=3, kind=OBSERVATION, outcome=Outcome.TERMINATED)]
    tree = build(*nodes)
    channels = {"facts": np.asarray([0, gain, 0, 0, 0.0]), "env": np.asarray([0, 0, 0, result, 0.0])}
    return Rewarded(tree=tree, channels=channels)


@pytest.mark.parametrize(
    ("settings", "question", "answer"),
    [
        ({"gain_weight": 4.0}, 4 * 0.4 + 1, 3.0),
        ({"result_weight": 0.5}, 2 * 0.4 + 0.5, 3.0),
        ({"answer_weight": 5.0}, 2 * 0.4 + 1, 5.0),
    ],
)
def test_questions_and_answers(settings: dict[str, float], question: float, answer: float) -> None:
    """Gains .7 and .3, results 1 and 0: half of the difference is the distance from the mean."""
    rule = QuestionAnswer(std="none", **settings)  # type: ignore[arg-type]
    right, wrong = (each.path_advantage for each in rule([asked(0.7, 1.0), asked(0.3, 0.0)]))
    assert right == pytest.approx([question / 2, answer / 2])
    assert wrong == pytest.approx([-question / 2, -answer / 2])


@pytest.mark.parametrize(("longest", "scale"), [(1024, 4.0), (4096, 2.0)])
def test_the_allowance_of_a_budget(longest: int, scale: float) -> None:
    """Two paths of one budget: their mean is 2, their z-scores one over the root of 2."""
    found = Hbpo(longest_tokens=longest, scale=scale).advantages(
        np.asarray([3.0, 1.0]), np.zeros(2, dtype=np.int64), np.full(2, 512.0)
    )
    bracket = 2 - scale * math.cos(math.pi * 512 / (2 * longest))
    assert found == pytest.approx([bracket + math.sqrt(0.5), bracket - math.sqrt(0.5)], abs=1e-5)


def test_the_least_number_of_turns_in_a_group() -> None:
    found = [each.path_advantage.tolist() for each in TurnPosition(min_turns=2)(scored((1.0, 1.0), (0.0,)))]
    assert found == [[0.5, 0.0], [-0.5]], "two are a group, one is not"
    six = [(1.0,), (0.0,)] * 3
    assert not any(each.path_advantage.any() for each in TurnPosition(min_turns=7)(scored(*six)))


def test_the_field_of_a_tasks_weight() -> None:
    tree = chains([1.0, 0.0])
    given = rewarded(replace(tree, task=replace(tree.task, data={"difficulty": 2.0, "size": 3.0})))
    (credited,) = TaskWeight(field="size")([given])
    assert credited.path_advantage[[0, -1]] == pytest.approx([1.5, -1.5])


BUDGETED = told((512, 3, True), (512, 3, False), (2560, 3, True))
PAID = Rewarded(tree=BUDGETED, channels={"budget": (BUDGETED.kind == ACTION) * 1.5, "env": np.zeros(BUDGETED.nodes)})


@pytest.mark.parametrize(
    ("plain", "renamed", "given", "setting", "channel"),
    [
        (Rlvmr(), Rlvmr(step="other"), [EXAMPLE], "step", "meta_reasoning"),
        (Hbpo(), Hbpo(channel="other"), [PAID], "channel", "budget"),
        (
            QuestionAnswer(std="none"),
            QuestionAnswer(std="none", gain="other"),
            [asked(0.7, 1.0), asked(0.3, 0.0)],
            "gain",
            "facts",
        ),
        *(
            (Verified(), replace(Verified(), **{name: "other"}), [judged(1, (1, 0)), judged(0, (1, 0))], name, channel)
            for name, channel in (("verdict", "verdict"), ("steps", "steps"), ("constraint", "format_constraint"))
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_channels_have_the_names_of_settings(
    plain: Credit, renamed: Credit, given: list[Rewarded], setting: str, channel: str
) -> None:
    """Under its usual name there is a channel of other numbers, which has no effect."""
    moved = [
        replace(each, channels={**each.channels, "other": each.channels[channel], channel: 0 * each.channels[channel]})
        for each in given
    ]
    found = np.concatenate([each.path_advantage for each in plain(given)])
    assert found.any()
    assert np.concatenate([each.path_advantage for each in renamed(moved)]) == pytest.approx(found), setting


def test_the_mark_of_a_thought() -> None:
    tree = EXAMPLE.tree
    info = tuple({"kind": each["thought"]} if "thought" in each else each for each in tree.info)
    moved = replace(EXAMPLE, tree=replace(tree, info=info))
    (plain,), (renamed,) = Rlvmr()([EXAMPLE]), Rlvmr(mark="kind")([moved])
    assert renamed.path_advantage == pytest.approx(plain.path_advantage)
