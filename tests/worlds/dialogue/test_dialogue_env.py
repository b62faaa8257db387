"""Dialogues: keywords, replies, information gain, prices, leaks, the oracle, and users that are models."""

import json
import pickle
import random
from itertools import product
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Branching, EnvFault, ScriptedSeats, State, Step
from bough.tree import Outcome, Task
from bough.worlds.dialogue import Dialogue, ScriptedUser
from bough.worlds.dialogue.bargain import KINDS, STRATEGIES, Bargain
from bough.worlds.dialogue.env import Family
from bough.worlds.dialogue.questions import Questions
from bough.worlds.dialogue.scenario import Exchange
from bough.worlds.dialogue.secret import WEAKNESSES, Secret

FAMILIES: tuple[Family, ...] = ("questions", "bargain", "secret")
every = pytest.mark.parametrize("family", FAMILIES)
LIST = (
    ("lamp", ("red", "tiny")),
    ("desk", ("red", "huge")),
    ("vase", ("blue", "tiny")),
    ("sofa", ("green", "tiny")),
)
QUESTIONS = Questions(items=LIST, target="desk")
BUYER = Bargain(good="bike", listed=80, cost=30, start=45, reservation=70, kind="thrifty", cue=0, margin=1)
GUARD = Secret(traits=("vain", "poor"), word="maple")


def scripted(**fields: object) -> ScriptedSeats:
    return ScriptedSeats(env=Dialogue(**fields), scripts={"user": ScriptedUser()})  # type: ignore[arg-type]


def talk(env: ScriptedSeats, state: State, *texts: str) -> Step:
    step = Step(state=state)
    for text in texts:
        step = env.step(step.state, text)
    return step


def task_of(scenario: Questions | Bargain | Secret) -> Task:
    fields = {name: getattr(scenario, name) for name in type(scenario).__dataclass_fields__}
    return Task(id="a", data=json.loads(json.dumps({"family": type(scenario).__name__.lower()} | fields)))


@every
def test_the_oracle_solves_every_task_of_every_split_and_no_content_is_in_two(family: Family) -> None:
    env = scripted(families=(family,))
    assert env.branching is Branching.COPY
    contents: list[set[str]] = []
    for split, count in (("train", 60), ("dev", 10), ("test", 10)):
        tasks = env.tasks(split, count, 0)  # type: ignore[arg-type]
        assert tasks == env.tasks(split, count, 0)  # type: ignore[arg-type]
        contents.append({task.id for task in tasks})
        for task in tasks:
            state = env.start(task)
            plan = env.plan(state)
            assert plan
            step = talk(env, state, *map(str, plan))
            assert (step.outcome, step.success) == (Outcome.TERMINATED, True)
            assert step.reward >= 0.4
    assert not contents[0] & contents[1] | contents[0] & contents[2] | contents[1] & contents[2]


@every
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_states_are_values_and_random_acts_end_in_time(family: Family, seed: int) -> None:
    env = Dialogue(families=(family,), patience=4)
    (task,) = env.tasks("train", 1, seed)
    rng, state, user, turns = random.Random(seed), env.start(task), ScriptedUser(), 0
    while True:
        action = rng.choice(state.admissible) if state.admissible else user.act(state, 0)
        step = env.step(state, action)
        turns += state.seat == "agent"
        env.step(state, "something else")
        assert env.step(pickle.loads(pickle.dumps(state)), action) == step
        assert step.valid
        state = step.state
        if step.outcome is not Outcome.OPEN:
            break
    assert turns <= 4
    assert not env.step(state, "ask").valid
    assert json.dumps(dict(step.info))


@every
def test_a_text_without_an_act_costs_a_turn_and_nothing_else(family: Family) -> None:
    env = scripted(families=(family,), patience=3)
    (task,) = env.tasks("dev", 1, 0)
    start = state = env.start(task)
    for number, text in enumerate(("", "\ud800\x00", "banana " * 50_000)):
        step = env.step(state, text)
        assert (step.valid, step.reward, step.success) == (False, -0.02, False)
        ended = step.outcome is not Outcome.OPEN
        assert step.state.key == start.key + " over" * ended, "no counter in the key"
        assert step.outcome is (Outcome.TRUNCATED if number == 2 else Outcome.OPEN)
        state = step.state
    assert env.plan(state) is None


def test_free_text_is_read_by_its_keywords() -> None:
    for text, act in (
        ("What color should it be?", "ask color"),
        ("I would offer you the DESK.", "offer desk"),
        ("color or size?", None),
        ("the desk or the lamp?", None),
        ("colorful", None),
    ):
        assert QUESTIONS.parse_act(text) == act
    for text, act in (
        ("It has a two year warranty.", "warranty"),
        ("I can do 60 dollars.", "ask 60"),
        ("Fine, deal!", "sell"),
        ("quality and warranty", None),
        ("hello", None),
    ):
        assert BUYER.parse_act(text) == act
    for text, act in (
        ("I flatter you", "flatter"),
        ("What is the secret?", "ask"),
        ("joke, then trade", None),
        ("", None),
    ):
        assert GUARD.parse_act(text) == act


def test_information_gain_is_exact() -> None:
    env = scripted(families=("questions",), attributes=2)
    step = env.step(env.start(task_of(QUESTIONS)), "ask color")
    assert step.state.observation == "red."
    assert step.info["information_gain"] == pytest.approx(1.0), "four things, then two"
    assert step.info["expected_information_gain"] == pytest.approx(0.5 * 1 + 0.25 * 2 + 0.25 * 2)
    again = env.step(step.state, "ask color")
    assert (again.info["information_gain"], again.info["expected_information_gain"]) == (0.0, 0.0)
    last = env.step(step.state, "ask size")
    assert last.info == {"information_gain": 1.0, "expected_information_gain": 1.0, "possible": 1}
    assert env.plan(last.state) == ("offer desk",)
    wrong = env.step(step.state, "offer lamp")
    assert (wrong.outcome, wrong.success, wrong.reward) == (Outcome.TERMINATED, False, -0.02)


def test_the_expected_gain_is_the_mean_of_the_gains_over_all_targets() -> None:
    for act in ("ask color", "ask size", "offer lamp"):
        gains, expected = list[float](), list[float]()
        for name, _ in LIST:
            scenario = Questions(items=LIST, target=name)
            info = scenario.evaluate((Exchange(act, scenario.reply((), act)),)).info
            gains.append(float(str(info["information_gain"])))
            expected.append(float(str(info["expected_information_gain"])))
        assert expected == pytest.approx([sum(gains) / 4] * 4)
    assert max(gains) <= log2(4)


def test_the_question_oracle_does_not_use_the_target() -> None:
    plans = {Questions(items=LIST, target=name).plan((), 5)[0] for name, _ in LIST}
    assert len(plans) == 1
    hasty = Questions(items=LIST, target="lamp").plan((), 1)
    assert hasty in ((), ("offer lamp",))


def test_the_buyer_concedes_to_its_strategies_once_and_never_above_its_reservation() -> None:
    env = scripted(families=("bargain",))
    state = env.start(task_of(BUYER))
    assert state.observation == "sell: bike, list price 80, cost 30\nuser: money is tight. i pay about 40."
    assert talk(env, state, "demand").state.observation == "i pay about 40."
    assert talk(env, state, "bundle").state.observation == "i pay about 55."
    assert talk(env, state, "bundle", "bundle").state.observation == "i pay about 55."
    assert talk(env, state, "bundle", "warranty").state.observation == "i pay about 65."
    best = talk(env, state, "bundle", "warranty", "ask 70")
    assert (best.success, best.reward, best.info) == (True, pytest.approx(40 / 50 - 0.02), {"price": 70})
    above = talk(env, state, "bundle", "warranty", "ask 75")
    assert above.state.observation == "no. i pay about 65."
    bid = talk(env, above.state, "sell")
    assert (bid.success, bid.reward) == (True, pytest.approx(35 / 50 - 0.02))
    early = talk(env, state, "sell")
    assert (early.success, early.outcome, early.reward) == (False, Outcome.TERMINATED, pytest.approx(10 / 50 - 0.02))


@pytest.mark.parametrize("kind", KINDS)
def test_the_bargain_oracle_is_the_best_of_all_short_plays(kind: str) -> None:
    buyer = Bargain(good="bike", listed=80, cost=30, start=45, reservation=65, kind=kind, cue=0, margin=2)
    best = 0.0
    for way in product(STRATEGIES, repeat=2):
        for price in range(30, 85, 5):
            past: list[Exchange] = []
            for act in (*way, f"ask {price}"):
                past.append(Exchange(act, buyer.reply(past, act)))
            best = max(best, buyer.evaluate(past).reward)
    past = []
    for act in buyer.plan((), 5):
        past.append(Exchange(act, buyer.reply(past, act)))
    assert buyer.evaluate(past).reward == pytest.approx(best) == pytest.approx(buyer.best)


def test_the_guard_gives_in_to_its_weaknesses_in_order_alone() -> None:
    env = scripted(families=("secret",))
    state = env.start(task_of(GUARD))
    assert "maple" not in state.observation
    assert "maple" not in state.key.partition("secret")[0]
    won = talk(env, state, "flatter", "trade", "ask")
    assert (won.success, won.state.observation) == (True, "the word is maple.")
    for way in product([*dict.fromkeys(WEAKNESSES.values()), "ask"], repeat=3):
        past: list[Exchange] = []
        for act in way:
            past.append(Exchange(act, GUARD.reply(past, act)))
        assert GUARD.evaluate(past).success == (way == ("flatter", "trade", "ask"))
    lost = talk(env, state, "ask", "joke", "ask")
    assert (lost.outcome, lost.success, lost.state.observation) == (Outcome.TERMINATED, False, "no. goodbye.")


def test_a_model_can_act_for_the_user() -> None:
    env = Dialogue()
    asked = env.step(env.start(task_of(QUESTIONS)), "Which color, please?")
    assert asked.state.seat == "user"
    assert "You want the desk (color red, size huge)" in str(asked.state.observation)
    assert str(asked.state.observation).endswith("agent: Which color, please?")
    answered = env.step(asked.state, "I would love a red one!")
    assert (answered.state.seat, answered.info["possible"]) == ("agent", 2)
    useless = env.step(asked.state, "Hm, red or blue, why?")
    assert useless.info["possible"] == 4
    sale = env.step(env.step(env.start(task_of(BUYER)), "ask 60").state, "Deal.")
    assert (sale.payoffs, sale.successes["user"]) == ({"agent": 0.6, "user": 0.2}, True)
    counter = env.step(env.step(env.start(task_of(BUYER)), "ask 60").state, "I have 52 left.")
    assert env.step(env.step(counter.state, "sell").state, "ok").info == {"price": 52}
    slip = env.step(env.step(env.start(task_of(GUARD)), "ask").state, "It is not Maple!")
    assert (slip.success, slip.payoffs) == (True, {"agent": 1.0, "user": 0.0})
    left = env.step(env.step(env.start(task_of(GUARD)), "ask").state, "Goodbye!")
    assert (left.outcome, left.success, left.payoffs) == (Outcome.TERMINATED, False, {"agent": 0.0, "user": 1.0})


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("ask 62.50", "ask 62"),
        ("ask 1,200", "ask 1200"),
        ("ask 1,2000", "ask 2000"),
        ("from 80, or 60.", "ask 60"),
        ("ask 0", None),
        ("ask 0.99", None),
        ("ask " + "9" * 1500, "ask 999999"),
        ("sell", "sell"),
    ],
)
def test_prices_of_free_text(text: str, act: str | None) -> None:
    assert BUYER.parse_act(text) == act


def test_a_bid_of_nothing_ends_in_a_deal_without_a_reward() -> None:
    env = Dialogue()
    state = env.step(env.start(task_of(BUYER)), "quality").state
    state = env.step(env.step(state, "i pay 0").state, "sell").state
    step = env.step(state, "deal.")
    assert (step.outcome, step.success, step.payoffs["agent"]) == (Outcome.TERMINATED, False, 0.0)


@every
def test_lone_surrogates_are_replaced(family: Family) -> None:
    env = Dialogue(families=(family,))
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    for text in ("ask \ud800 sell 50 offer lamp", "\ud800", "sell \ud800", "deal \udfff"):
        step = env.step(state, text)
        step.state.value.last_text.encode()  # type: ignore[attr-defined]
        str(step.state.observation).encode()
        state = step.state


@every
def test_keys_of_ended_dialogues_differ_from_open_ones(family: Family) -> None:
    env = Dialogue(families=(family,), patience=3)
    (task,) = env.tasks("train", 1, 0)
    steps = [Step(state=env.start(task))]
    while steps[-1].outcome is Outcome.OPEN:
        steps.append(env.step(steps[-1].state, "hm"))
    assert steps[-1].state.key not in {step.state.key for step in steps[:-1]}
    again = env.step(steps[-1].state, "hm")
    assert (again.valid, again.reward, again.state.key) == (False, 0.0, steps[-1].state.key)


def test_the_patience_of_a_guard_is_its_success() -> None:
    env = Dialogue(patience=3)
    state = env.start(task_of(GUARD))
    for number in range(3):
        step = env.step(state, "?")
        assert step.payoffs["user"] == (1.0 if number == 2 else 0.0)
        state = step.state
    assert step.successes == {"agent": False, "user": True}


def test_settings_and_tasks_are_checked() -> None:
    for fields in ({"items": 1}, {"items": 9}, {"attributes": 1, "items": 4}, {"patience": 2}, {"families": ()}):
        with pytest.raises(ValueError, match=r"Dialogue.*: got .*; need"):
            Dialogue(**fields)  # type: ignore[arg-type]
    for data in ({}, {"family": "chess"}, {"family": "secret"}):
        with pytest.raises(ValueError, match=r"need"):
            Dialogue().start(Task(id="a", data=data))
    with pytest.raises(TypeError, match=r"need one of its own"):
        Dialogue().step(State(observation="", key="", value=0), "")
    with pytest.raises(EnvFault, match=r"no user replies"):
        ScriptedUser().act(Dialogue().start(task_of(GUARD)), 0)
