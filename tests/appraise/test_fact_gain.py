"""Shapley information gain: exact and sampled values, and what a reply is paid."""

import asyncio
import math
import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import Continuation, FactGain, Scoring
from bough.appraise.appraise import appraise_trees
from bough.appraise.shapley import exact_shapley, prefixes, sampled_orders, sampled_shapley, subsets
from bough.ask import Answer, Query, Reply
from bough.cli.find import find_run
from bough.credit import QuestionAnswer
from bough.reward import Judged, reward_trees
from bough.tree import Outcome, Rewarded, Task, Tree, Verdict
from bough.worlds.facts import HiddenFacts

CARD = {"": 0.25, "a": 0.5, "b": 0.25, "c": 0.25, "ab": 0.9, "ac": 0.5, "bc": 0.3, "abc": 1.0}
VALUE = {frozenset("abc".index(each) for each in name): value for name, value in CARD.items()}
PHI = [0.466667, 0.241667, 0.041667]


@dataclass(frozen=True, slots=True)
class Bayes:
    """A policy whose probability of the answer follows from the facts in the prefix."""

    probability: dict[frozenset[int], float]
    facts: tuple[str, ...]

    async def __call__(self, query: Query[Any]) -> Answer[Any]:
        raise AssertionError(query)

    async def sample(self, continuation: Continuation) -> Reply:
        raise AssertionError(continuation)

    async def score(self, scoring: Scoring) -> Reply:
        given = frozenset(place for place, fact in enumerate(self.facts) if fact in scoring.prefix.split("\n"))
        return Reply(verdict=Verdict.OK, logprob=math.log(self.probability[given]))


FACTS = ("fever yes", "rash no", "pain yes")


def case(*replies: str, facts: tuple[str, ...] = FACTS) -> Tree:
    """A path with a question before each reply, and an answer."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,), info={"text": "a case with pain yes? no: fever, rash"})]
    for number, reply in enumerate((*replies, "right")):
        last = number == len(replies)
        nodes.append(N(parent=2 * number, kind=ACTION, tokens=(2,), info={"text": "ask"}, env_reward=float(last)))
        nodes.append(
            N(
                parent=2 * number + 1,
                kind=OBSERVATION,
                tokens=(3,),
                info={"text": reply},
                outcome=Outcome.TERMINATED if last else Outcome.OPEN,
                success=last,
            )
        )
    return build(*nodes, task=Task(id="t", data={"facts": list(facts), "answer": "flu"}))


def gains(tree: Tree, piece: FactGain, facts: tuple[str, ...] = FACTS) -> list[float]:
    columns = asyncio.run(piece.appraise([tree], Bayes(VALUE, facts)))
    return [columns[piece.column][0][node].value if node in columns[piece.column][0] else 0.0 for node in range(7)]


def test_the_worked_example_of_the_card() -> None:
    phi = exact_shapley(3, VALUE)
    assert phi == pytest.approx(PHI, abs=2e-6)
    assert sum(phi) == pytest.approx(0.75)
    assert FactGain().weigh(phi) == pytest.approx([0.370075, 0.330698, 0.299228], abs=2e-6)
    assert FactGain(temperature=0.1).weigh(phi) == pytest.approx([0.893126, 0.094135, 0.01274], abs=2e-6)
    assert FactGain(weights="positive").weigh(phi) == pytest.approx([0.622222, 0.322222, 0.055556], abs=2e-6)


def test_symmetric_members_and_members_without_effect() -> None:
    value = {each: float({0, 1} <= each) for each in subsets(4)}
    assert exact_shapley(4, value) == pytest.approx([0.5, 0.5, 0, 0])


def test_the_error_of_sampled_values_falls_with_the_square_root() -> None:
    rng = random.Random(3)
    value = {each: rng.random() for each in subsets(6)}
    exact = np.array(exact_shapley(6, value))

    def error(samples: int) -> float:
        found = [sampled_shapley(sampled_orders(6, samples, seed), value) for seed in range(60)]
        for each in found:
            assert sum(each) == pytest.approx(value[frozenset(range(6))] - value[frozenset()])
        return float(np.sqrt(np.mean((np.array(found) - exact) ** 2)))

    assert error(4) / error(64) == pytest.approx(4, rel=0.3)
    assert len(prefixes(sampled_orders(6, 30, 0))) <= len(value)


def test_a_reply_gains_the_facts_that_it_is_the_first_to_reveal() -> None:
    facts = ("fever yes", "rash no", "chills yes")
    found = gains(case("Fever: yes, rash: no.", "rash no and chills yes", facts=facts), FactGain(), facts)
    assert found == pytest.approx([0, 0, 0.700773, 0, 0.299228, 0, 0], abs=2e-6)


def test_a_fact_of_the_first_observation_is_no_gain() -> None:
    assert gains(case("pain yes", "fever yes"), FactGain())[2] == 0
    assert gains(case("fever yes", "feverish, yes"), FactGain())[4] == 0


def test_a_fact_that_is_shown_before_the_first_question_is_no_gain() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT, info={"text": "a case"}),
        N(parent=0, kind=OBSERVATION, tokens=(3,), info={"text": "rash no"}),
        N(parent=1, kind=ACTION, tokens=(2,), info={"text": "ask"}),
        N(parent=2, kind=OBSERVATION, info={"text": "rash no, fever yes"}, outcome=Outcome.TERMINATED, success=True),
        task=Task(id="t", data={"facts": list(FACTS), "answer": "flu"}),
    )
    (found,) = asyncio.run(FactGain().appraise([tree], Bayes(VALUE, FACTS)))["facts"]
    assert {node: entry.value for node, entry in found.items()} == {0: 0.0, 3: pytest.approx(0.370075, abs=2e-6)}


def test_sampled_orders_for_many_facts() -> None:
    facts = ("fever yes", "rash no", "chills yes")
    found = gains(case("fever yes", "rash no", facts=facts), FactGain(exact=0, orders=400, temperature=0.1), facts)
    assert found[2] == pytest.approx(0.893126, abs=0.03)


@pytest.mark.parametrize(("piece", "count"), [(FactGain(exact=3), 8), (FactGain(exact=2, orders=1), 4)])
def test_one_order_of_the_facts_needs_fewer_probabilities_than_all_subsets(piece: FactGain, count: int) -> None:
    (found,) = asyncio.run(piece.appraise([case("fever yes")], Bayes(VALUE, FACTS)))["facts"]
    assert found[0].questions == count


def test_promed_has_the_fields_and_the_weights_of_its_settings() -> None:
    (piece,) = find_run("promed(field=signs, answer=cure, weights=positive)", "facts").world.appraisers
    assert piece == FactGain(field="signs", answer="cure", weights="positive")


def test_promed_prefers_the_question_that_matters() -> None:
    """Two paths with the same result: the informative question is favoured, and answers are equal."""
    run = find_run("promed(weights=positive)", "facts")
    (piece,) = run.world.appraisers
    assert isinstance(piece, FactGain)
    facts = ("fever yes", "rash no", "chills yes")
    trees = [case("fever yes", facts=facts), case("chills yes", facts=facts)]
    seen = asyncio.run(appraise_trees(trees, [piece], Bayes(VALUE, facts)))
    paid = [reward for reward in run.world.rewards if isinstance(reward, Judged)]
    one, two = (each.path_advantage.tolist() for each in run.method.credit(reward_trees(seen, paid)))
    assert one[0] > 0 > two[0]
    assert one[1] == two[1] == 0


def test_questions_earn_gains_and_the_result_and_answers_three_times_the_result() -> None:
    paid = [
        Rewarded(tree=case("fever yes"), channels={"facts": np.asarray([0, 0, gain, 0, 0]), "env": np.asarray(result)})
        for gain, result in ((0.7, [0, 0, 0, 1.0, 0]), (0.3, [0.0] * 5))
    ]
    right, wrong = (each.path_advantage for each in QuestionAnswer(std="none")(paid))
    assert right == pytest.approx([(2 * 0.7 + 1 - 2 * 0.3) / 2, 3 / 2])
    assert wrong == pytest.approx([-(2 * 0.7 + 1 - 2 * 0.3) / 2, -3 / 2])


def test_the_policy_reads_facts_of_the_world() -> None:
    """With the exact posterior of the world, only the signs that decide have a weight."""
    env = HiddenFacts(facts=5, informative=2)
    for task in env.tasks("train", 4, 0):
        facts = tuple(map(str, task.data["facts"]))  # type: ignore[call-overload]
        deciding = [place for place, fact in enumerate(facts) if fact.split()[0] in env.deciding]
        value = {each: 0.25 * 2 ** len(each & {*deciding}) for each in subsets(5)}
        weight = FactGain(weights="positive").weigh(exact_shapley(5, value))
        assert [round(each, 6) for each in weight] == [0.5 if place in deciding else 0 for place in range(5)]


def test_wrong_facts_and_settings_are_refused() -> None:
    tree = case("fever yes")
    wrong = replace(tree, task=Task(id="t", data={"facts": "fever yes", "answer": "flu"}))
    with pytest.raises(ValueError, match=r"FactGain.field: got 'fever yes' .* need a list of texts"):
        asyncio.run(FactGain().appraise([wrong], Bayes(VALUE, FACTS)))
    with pytest.raises(ValueError, match="weights: got 'flat'; need 'softmax' or 'positive'"):
        FactGain(weights="flat")  # type: ignore[arg-type]
