import json
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Branching, EnvFault, State, Step
from bough.env.check_call import check_call
from bough.screen import pointing_in
from bough.screen.pointing import inside
from bough.tree import Action, BadCall, Outcome, Task, ToolCall, plain_text
from bough.worlds.screens import Screens
from bough.worlds.screens.command import TOOLS

ENVS = {
    "easy": Screens(),
    "long": Screens(tier=3, apps=4, rows=4, page_rows=4, slow=0.5, max_steps=30, level="template"),
    "pointing": Screens(tier=2, level="app", boxes=True, points=True, progress=0.5, targets="plan", themes=False),
    "no links": Screens(tier=2, links=False, ends="success", targets="none"),
    "labels": Screens(tier=2, ids="label", rows=4, page_rows=3),
}
every = pytest.mark.parametrize("env", ENVS.values(), ids=ENVS)


def of(*goals: tuple[str, ...], apps: tuple[str, ...] = (), seed: int = 1) -> Task:
    names = apps or tuple(dict.fromkeys(goal[0] for goal in goals))
    return Task(id="t", data={"device": seed, "apps": [*names], "goals": [[*goal] for goal in goals]})


def play(env: Screens, state: State, *actions: str) -> Step:
    step = Step(state=state)
    for action in actions:
        step = env.step(step.state, action)
        assert step.valid, f"{action}: {step.state.observation}"
    return step


def number(state: State, words: str) -> str:
    """The id of the first element whose line has some words."""
    lines = plain_text(state.observation).splitlines()
    return next(line.split()[0] for line in lines if words in line and line[0].isdigit())


def press(env: Screens, state: State, *words: str) -> State:
    for each in words:
        state = play(env, state, f"click {number(state, each)}").state
    return state


def follow(env: Screens, state: State) -> Step:
    step = Step(state=state)
    for action in env.plan(state) or ():
        assert step.outcome == Outcome.OPEN
        step = env.step(step.state, action)
        assert step.valid
    return step


@every
def test_the_oracle_solves_every_task_from_the_start_and_from_anywhere(env: Screens) -> None:
    for task in env.tasks("train", 12, 0):
        state = env.start(task)
        step = follow(env, state)
        assert (step.success, step.outcome) == (True, Outcome.TERMINATED)
        rng = random.Random(task.id)
        for _ in range(6):
            wandered = env.step(state, rng.choice(state.admissible or ()))
            if wandered.outcome != Outcome.OPEN:
                break
            state = wandered.state
            way = env.plan(state)
            if way is not None:
                assert follow(env, state).success


@every
def test_lengths_of_plans_are_those_of_the_tier(env: Screens) -> None:
    least, most = {1: (2, 4), 2: (5, 8), 3: (9, 15)}[env.tier]
    for task in env.tasks("test", 6, 3):
        assert least <= len(env.plan(env.start(task)) or ()) <= most


@every
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_states_are_values(env: Screens, seed: int) -> None:
    (task,) = env.tasks("train", 1, seed % 5)
    rng = random.Random(seed)
    state = env.start(pickle.loads(pickle.dumps(task)))
    assert state == env.start(task)
    for _ in range(12):
        action = rng.choice([*(state.admissible or ()), "type tea", "click 99", "points 3 4 5 6", "box 1 1 600 900"])
        before = pickle.dumps(state)
        step = env.step(state, action)
        env.step(state, "home")
        again = pickle.loads(pickle.dumps(env)).step(pickle.loads(before), action)
        assert again == step == env.step(state, action)
        assert pickle.dumps(pickle.loads(before)) == pickle.dumps(pickle.loads(pickle.dumps(state)))
        assert json.loads(json.dumps(step.info)) == step.info
        if step.outcome != Outcome.OPEN:
            break
        state = step.state


@every
def test_admissible_actions_are_possible(env: Screens) -> None:
    for task in env.tasks("dev", 4, 0):
        state = env.start(task)
        for action in env.plan(state) or ():
            assert action in (state.admissible or ()) or env.points
            assert all(env.step(state, each).valid for each in state.admissible or ())
            state = env.step(state, action).state


GARBAGE = [
    "",
    " ",
    "click",
    "click -1",
    "click 0",
    "click 1 2 3",
    "click \u0661",
    "click 99999999999999999999",
    "click 5\x00",
    "click \ud800",
    "box 9 9 1 1",
    "points 1",
    "open nothing",
    "open \ud800",
    "type tea",
    "scroll left",
    "done now",
    "fly",
    "click 1\nclick 2",
    "x" * 10**6,
    "click " + "1 " * 10**5,
    "{}<|end|>",
]


@every
@pytest.mark.parametrize("action", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_costs_a_step_and_changes_nothing(env: Screens, action: str) -> None:
    start = env.start(env.tasks("train", 1, 0)[0])
    step = env.step(start, action)
    assert (step.valid, step.reward, step.outcome) == (False, 0.0, Outcome.OPEN)
    assert step.state.key == start.key
    assert "note: " in plain_text(step.state.observation)
    plain_text(step.state.observation).encode()


@settings(max_examples=200)
@given(st.text(max_size=60), st.sampled_from(["", "type ", "click ", "open ", "points ", "box "]))
def test_no_text_raises_or_brings_more_than_one_line(text: str, verb: str) -> None:
    env = Screens(targets="none", themes=False)
    task = of(("notes", "notes", "create", "zoo", "rice"))
    form = press(env, env.start(task), "icon notes", "item notes", "button new", "field title")
    step = env.step(form, verb + text)
    shown = plain_text(step.state.observation)
    shown.encode()
    assert len(shown.splitlines()) <= 10
    assert len(shown) < 1500


def test_the_episode_is_truncated_and_a_finished_one_stays_finished() -> None:
    env = Screens(max_steps=3)
    state = env.start(of(("notes", "notes", "create", "zoo", "rice")))
    outcomes = []
    for _ in range(3):
        step = env.step(state, "nothing")
        outcomes.append(step.outcome)
        state = step.state
    assert outcomes == [Outcome.OPEN, Outcome.OPEN, Outcome.TRUNCATED]
    over = env.step(env.start(of(("notes", "notes", "create", "zoo", "rice"))), "done")
    assert (over.outcome, over.success, over.valid) == (Outcome.TERMINATED, False, True)
    assert env.step(over.state, "home").outcome == Outcome.TERMINATED
    assert env.plan(over.state) is None


def test_a_form_is_checked_and_saved() -> None:
    env = Screens(themes=False, targets="none")
    state = env.start(of(("contacts", "people", "create", "zoe", "42")))
    assert plain_text(state.observation).startswith(
        "task: create contact name zoe phone 42 in contacts\nscreen: home\n"
    )
    state = press(env, state, "icon contacts", "item people", "button new")
    assert not env.step(state, "type zoe").valid, "no field has the focus"
    for field, text, note in (("name", "zoe", "phone is empty"), ("phone", "4x", "phone is no number")):
        state = press(env, state, f"field {field}")
        state = play(env, state, f"type {text}").state
        refused = play(env, state, f"click {number(state, 'button save')}").state
        assert f"note: {note}" in plain_text(refused.observation)
        assert "screen: contacts people new" in plain_text(refused.observation)
    state = play(env, state, "type 42").state
    state = press(env, state, "button save")
    assert "item zoe" in plain_text(state.observation)
    assert env.step(state, "done").success
    # A second entry of this name is refused.
    state = press(env, state, "button new", "field name")
    state = press(env, play(env, state, "type zoe").state, "field phone")
    state = press(env, play(env, state, "type 7").state, "button save")
    assert "note: zoe exists" in plain_text(state.observation)


def test_what_cannot_be_undone_has_no_plan_and_what_can_is_undone() -> None:
    env = Screens(themes=False, max_steps=40)
    start = env.start(of(("chat", "messages", "send", "ann", "tea"), ("notes", "notes", "create", "zoo", "rice")))
    state = press(env, start, "icon chat", "item alerts", "toggle")
    assert len(env.plan(state) or ()) > 0, "a toggle is turned back"
    assert follow(env, state).success
    assert not env.step(state, "done").success
    state = press(env, start, "icon chat", "item messages", "button new", "field to")
    state = press(env, play(env, state, "type ben").state, "field text")
    state = press(env, play(env, state, "type tea").state, "button send")
    assert env.plan(state) is None, "a message cannot be taken back"


FULL, EMPTY = 0, 1
BUY = ("food", "menu", "buy", "1 soup")


def test_an_order_needs_a_confirmation_and_is_final() -> None:
    env = Screens(themes=False, targets="none")
    with pytest.raises(ValueError, match="no empty cart"):
        env.start(of(BUY, seed=FULL))
    seed = EMPTY
    state = press(env, env.start(of(BUY, seed=seed)), "icon food", "item menu")
    empty = press(env, state, "button cart", "button order", "button yes")
    assert "note: the cart is empty" in plain_text(empty.observation)
    state = press(env, state, "item soup", "button put")
    assert "soup in cart 1" in plain_text(state.observation)
    asked = press(env, play(env, state, "back").state, "button cart", "button order")
    assert plain_text(asked.observation).splitlines()[2:] == ["1 text really order", "2 button yes", "3 button no"]
    assert env.plan(asked) == ("click 2", "done")
    kept = press(env, asked, "button no")
    assert not env.step(kept, "done").success
    ordered = press(env, asked, "button yes")
    assert "text ordered 1 soup" in plain_text(ordered.observation)
    assert env.step(ordered, "done").success
    twice = press(env, ordered, "item soup", "button put")
    assert not env.step(twice, "done").success, "a good is left in the cart"


def test_progress_is_paid_and_taken_back() -> None:
    env = Screens(themes=False, progress=0.5, max_steps=40)
    task = of(("camera", "mode", "choose", "video"), ("notes", "notes", "create", "zoo", "rice"), seed=18)
    state, paid = env.start(task), []
    for action in env.plan(state) or ():
        step = env.step(state, action)
        paid.append(step.reward)
        state = step.state
    assert sorted(paid)[-3:] == [0.25, 0.25, 0.5]
    assert sum(paid) == 1
    half = press(env, env.start(task), "icon camera", "item mode", "option video")
    undone = env.step(half, f"click {number(half, 'option photo')}")
    assert undone.reward == -0.25


def test_lists_have_pages_and_slow_screens_are_waited_for() -> None:
    env = Screens(themes=False, rows=6, page_rows=3, slow=1.0, max_steps=40)
    state = press(env, env.start(of(("notes", "notes", "create", "a", "b"))), "icon notes", "item notes")
    assert plain_text(state.observation).endswith("1 text loading")
    assert not env.step(state, "click 2").valid
    state = play(env, state, "wait").state
    assert "page 1 of 3" in plain_text(state.observation)
    seen = set()
    for _ in range(3):
        seen |= {line for line in plain_text(state.observation).splitlines() if " item " in line}
        state = play(env, state, "scroll down").state
    assert len({line.split()[-1] for line in seen}) == 6
    plan = env.plan(env.start(of(("notes", "notes", "create", "a", "b")))) or ()
    assert "wait" in plan


def test_injected_faults_are_transient_and_change_no_result() -> None:
    env, calm = Screens(fault_rate=0.3), Screens()
    tasks = env.tasks("train", 20, 0)
    faults = steps = 0
    for task in tasks:
        state, other = env.start(task), calm.start(task)
        for action in calm.plan(other) or ():
            steps += 1
            try:
                step = env.step(state, action)
            except EnvFault:
                faults += 1
                step = env.step(state, action)
            reference = calm.step(other, action)
            assert step == reference
            state, other = step.state, reference.state
    assert 0.15 < faults / steps < 0.45


def test_boxes_do_not_overlap_and_every_centre_hits_its_element() -> None:
    rng = random.Random(0)
    env = Screens(tier=2, boxes=True, apps=3)
    for task in env.tasks("train", 15, 2):
        state = env.start(task)
        for _ in range(10):
            phone = state.value
            view = env._view
            placed = phone.boxes(view)  # type: ignore[attr-defined]
            for left, top, right, bottom in placed:
                assert 0 <= left < right < env.width
                assert 0 <= top < bottom < env.height
            for one in range(len(placed)):
                for other in range(one):
                    a, b = placed[one], placed[other]
                    assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
                x, y = (placed[one][0] + placed[one][2]) // 2, (placed[one][1] + placed[one][3]) // 2
                by_point, by_id = env.step(state, f"click {x} {y}"), env.step(state, f"click {one + 1}")
                assert by_point.state == by_id.state
                assert plain_text(state.observation).count(" ".join(map(str, placed[one]))) >= 1
            step = env.step(state, rng.choice(state.admissible or ()))
            if step.outcome != Outcome.OPEN:
                break
            state = step.state


def test_info_has_the_element_and_box_of_the_oracle_of_each_step_and_of_the_whole_plan() -> None:
    env = Screens(tier=2, targets="plan")
    for task in env.tasks("train", 10, 1):
        state = env.start(task)
        way, targets = env.plan(state) or (), env.pointings(state) or ()
        assert len(way) == len(targets) + 1
        assert way[-1] == "done"
        for action, target in zip(way, targets, strict=False):
            step = env.step(state, action)
            pointing = pointing_in({"env": step.info})
            assert pointing is not None
            assert (pointing.target_kind, pointing.target_box) == (target.target_kind, target.target_box)
            assert pointing.kind == action.split()[0] == pointing.target_kind
            if pointing.kind == "click":
                assert f"click {pointing.target}" == action
                assert pointing.hit
                x, y = pointing.points[0]
                assert inside((x, y), pointing.target_box or (0, 0, 0, 0))
            assert [row["action"] for row in step.info["plan"]] == [*(env.plan(state) or ())][:-1]  # type: ignore[union-attr,index]
            state = step.state
        (last,) = [pointing_in({"env": env.step(state, "done").info})]
        assert last is not None
        assert (last.kind, last.target_kind, last.target_box) == ("done", "done", None)


def test_calls_are_actions_and_each_is_answered() -> None:
    env = Screens(calls=True, tier=2)
    assert env.branching is Branching.COPY
    for task in env.tasks("train", 5, 0):
        state = env.start(task)
        for action in env.plan(state) or ():
            assert isinstance(action, Action)
            assert all(not check_call(call, state.tools) for call in action.calls)
            step = env.step(state, action)
            assert [message.role for message in step.state.observation] == ["tool"]  # type: ignore[union-attr]
            state = step.state
        assert step.success
    start = env.start(env.tasks("train", 1, 0)[0])
    bad = env.step(
        start,
        Action(calls=(ToolCall(name="fly", arguments={}, call_id="a"), BadCall(text="<", problem="no JSON"))),
    )
    assert [message.call_id for message in bad.state.observation] == ["a", ""]  # type: ignore[union-attr]
    assert "need one of: click" in plain_text(bad.state.observation)
    assert (bad.valid, bad.state.key) == (False, start.key)
    home, done = ToolCall(name="home", arguments={}), ToolCall(name="done", arguments={})
    both = env.step(start, Action(calls=(home, done, home)))
    assert both.outcome == Outcome.TERMINATED
    assert plain_text(both.state.observation).splitlines()[:3] == ["ok", "ok", "not executed"]
    assert env.step(start, Action(text="I am done")).outcome == Outcome.TERMINATED
    for tool, arguments in (("type", {"text": "\ud800\x00 done"}), ("click", {"id": "9" * 9}), ("open", {"app": ""})):
        step = env.step(start, Action(calls=(ToolCall(name=tool, arguments=arguments),)))
        assert (step.valid, step.outcome) == (False, Outcome.OPEN)
        plain_text(step.state.observation).encode()
    assert {tool.name for tool in TOOLS} >= {"click", "type", "open", "back"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tier": 4}, "Screens.tier: got 4"),
        ({"apps": 16}, "Screens.apps: got 16; need at most 15 at level 'instance'"),
        ({"apps": 4, "level": "app"}, "Screens.apps: got 4; need at most 3 at level 'app'"),
        ({"rows": 0}, "Screens.rows: got 0; need a number from 1 to 6"),
        ({"height": 100}, "Screens.height: got 100; need 24 for each of 10 rows"),
        ({"slow": 1.5}, "Screens.slow: got 1.5"),
        ({"max_steps": 0}, "Screens.max_steps: got 0"),
    ],
)
def test_settings_out_of_range(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Screens(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"device": "1", "apps": ["notes"], "goals": [["notes", "notes", "delete", "x"]]},
        {"device": 1, "apps": ["no app"], "goals": [["no app", "notes", "delete", "x"]]},
        {"device": 1, "apps": ["notes"], "goals": [["notes", "notes", "delete", "nothing"]]},
        {"device": 1, "apps": ["notes"], "goals": [["notes", "notes", "fly", "x"]]},
        {"device": 1, "apps": ["notes"], "goals": [["notes", "no part", "delete", "x"]]},
        {"device": 1, "apps": ["food"], "goals": [["food", "menu", "buy", "soup"]]},
        {"device": 1, "apps": ["notes"], "goals": [["notes", "notes", "rename"]]},
        {"device": 1, "apps": ["notes"], "goals": 3},
    ],
)
def test_a_task_of_another_form(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"Screens: (task x got the data|got the goal)"):
        Screens().start(Task(id="x", data=data))


def test_a_state_of_another_environment() -> None:
    with pytest.raises(TypeError, match="Screens: got a state with a value of type int"):
        Screens().step(State(observation="", key="", value=3), "home")
