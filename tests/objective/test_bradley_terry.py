"""A value head that ranks the actions of a search."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.objective.preference_pairs import P, T, lay
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.cli.find import find_run
from bough.credit import Process, RestMcts, Searched
from bough.needs import CRITIC, PATHS, value_head
from bough.objective import BradleyTerry, LossInputs, Pairs, process_preference
from bough.objective.inputs import ValueInputs
from bough.tree import Outcome, Rewarded

NAN = math.nan


def answers(*each: tuple[int, Sequence[float], float]) -> tuple[LossInputs, torch.Tensor]:
    """Answers of two tokens: their context, their values, the target at their last token."""
    paths = [P(turns=[T(logprob=[-1.0, -1.0], context_id=context)], advantage=0.0) for context, _, _ in each]
    value = torch.tensor([v for _, values, _ in each for v in values], requires_grad=True)
    target = torch.tensor([t for _, _, goal in each for t in (NAN, goal)])
    inputs = ValueInputs(value=value, old=value.detach(), target=target)
    return replace(lay(paths), values={"value": inputs}), value


def test_the_worked_example() -> None:
    columns, value = answers((0, (9.0, 1.0), 0.8), (0, (-9.0, 0.0), 0.2), (1, (0.0, 0.5), 0.3), (1, (0.0, 1.0), -0.3))
    loss = BradleyTerry()(columns)
    assert loss.value.item() == pytest.approx(0.643669, abs=2e-6)
    assert loss.metrics["value_pairs"] == 2
    assert loss.metrics["value_pair_accuracy"] == 0.5
    assert loss.metrics["value_pair_margin"].item() == pytest.approx(0.25)
    slope = torch.autograd.grad(loss.value, value)[0]
    right, wrong = 1 / (1 + math.exp(1.0)), 1 / (1 + math.exp(-0.5))
    assert slope.tolist() == pytest.approx([0, -right / 2, 0, right / 2, 0, -wrong / 2, 0, wrong / 2], abs=1e-6)
    assert BradleyTerry(coefficient=0.5)(columns).value.item() == pytest.approx(0.643669 / 2, abs=2e-6)


def test_a_tie_and_an_answer_without_a_target_make_no_pair() -> None:
    columns, _ = answers((0, (0.0, 1.0), 0.5), (0, (0.0, 0.0), 0.5), (1, (0.0, 1.0), 0.5), (1, (0.0, 0.0), NAN))
    for choice in ("best_worst", "all"):
        loss = BradleyTerry(pairs=Pairs(unit="turn", choice=choice))(columns)
        assert loss.metrics["value_pairs"] == loss.value == 0


def searched() -> Rewarded:
    """Two actions of two tokens, the first of which goes on to a success and a failure."""
    return rewarded(
        build(
            N(parent=-1, kind=PROMPT, value=0.1),
            N(parent=0, kind=ACTION, tokens=(7, 1), value=0.4),
            N(parent=1, kind=OBSERVATION),
            N(parent=2, kind=ACTION, tokens=(8, 1), value=1.0, env_reward=1.0),
            N(parent=3, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=True),
            N(parent=2, kind=ACTION, tokens=(9, 1), value=-1.0),
            N(parent=5, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=False),
            N(parent=0, kind=ACTION, tokens=(6, 1), value=-0.5),
            N(parent=7, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=False),
        )
    )


@pytest.mark.parametrize(
    ("rule", "targets"),
    [
        (Searched(head="value", target="action"), (0.4, 1.0, -1.0, -0.5)),
        (Process(head="value", target="action"), (0.5, 1.0, 0.0, 0.0)),
        (RestMcts(head="value", target="action"), (0.5, 1.0, 0.25, 0.0)),
    ],
)
def test_the_target_of_an_action_is_its_own_value_at_its_last_token(
    rule: Searched | Process | RestMcts, targets: tuple[float, ...]
) -> None:
    tree = searched()
    (credited,) = rule([tree])
    target = credited.value_targets["value"]
    assert target[~np.isnan(target)] == pytest.approx(targets)
    assert (tree.tree.token[~np.isnan(target)] == 1).all(), "the last token of each action"


def test_pairs_of_rstar_need_a_gap_and_both_ends() -> None:
    assert process_preference(gap=0.3).pairs == Pairs(unit="turn", choice="top_bottom", gap=0.3 - 1e-6, ends=True)
    (_, pairs) = find_run("rstar(below=most_visited)", "sokoban").method.objective.terms  # type: ignore[attr-defined]
    assert pairs == process_preference(below="most_visited")
    assert pairs.pairs.below == "most_visited"
    assert BradleyTerry(head="step").needs == {PATHS, CRITIC, value_head("step")}


def test_mistakes() -> None:
    columns, _ = answers((0, (0.0, 1.0), 0.5))
    with pytest.raises(ValueError, match=r"BradleyTerry\.head: got 'step' and a critic with \['value'\]"):
        BradleyTerry(head="step")(columns)
    with pytest.raises(ValueError, match=r"BradleyTerry\.pairs: got unit='path'; need unit='turn'"):
        BradleyTerry(pairs=Pairs())
    with pytest.raises(ValueError, match=r"BradleyTerry\.coefficient: got -1"):
        BradleyTerry(coefficient=-1.0)
    with pytest.raises(ValueError, match="need the path view"):
        BradleyTerry()(replace(columns, path_ids=None))
