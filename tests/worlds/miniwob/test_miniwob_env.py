"""MiniWoB++ in a real Chromium."""

import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.missing import need_world

from bough.env import EnvFault, State
from bough.reward import PointInBox
from bough.screen import Pointings, pointing_in
from bough.tree import Action, BadCall, Message, Outcome, Task, ToolCall
from bough.worlds.miniwob import MiniWob, pages, shared
from bough.worlds.miniwob.command import Command, read_line
from bough.worlds.miniwob.element import Element, Reading
from bough.worlds.miniwob.kinds import REUSED, SUBSETS
from bough.worlds.miniwob.oracle import SOLVERS
from bough.worlds.miniwob.pages import Page, Pages

need_world("miniwob")

ENV = MiniWob(kinds=("all",), remember=0)


def task(page: str, episode: int = 0) -> Task:
    return Task(id=f"{page}-{episode}", data={"page": page, "episode": episode})


@pytest.mark.parametrize("page", SOLVERS)
def test_the_script_of_a_page_solves_it(page: str) -> None:
    for episode in range(2):
        state = ENV.start(task(page, episode))
        plan = ENV.plan(state)
        assert plan, state.observation
        for action in plan:
            step = ENV.step(state, action)
            assert step.valid
            state = step.state
        assert (step.outcome, step.success) == (Outcome.TERMINATED, True)
        assert step.reward > 0


def test_a_wrong_click_ends_the_episode_without_a_reward() -> None:
    state = ENV.start(task("click-test-2"))
    assert state.observation == '1 button "ONE"\n2 button "TWO"\ngoal: Click button ONE.'
    wrong = ENV.step(state, "click 2")
    assert (wrong.outcome, wrong.success, wrong.reward) == (Outcome.TERMINATED, False, 0.0)
    assert not ENV.step(wrong.state, "click 1").valid
    right = ENV.step(state, "click 1")
    assert (right.success, right.reward) == (True, 1.0)


def test_a_form_is_filled_in_and_its_keys_name_what_is_in_it() -> None:
    start = ENV.start(task("login-user", 3))
    names = [word for word in str(start.observation).splitlines()[-1].split('"') if word.isalnum()]
    user, password = names[0], names[1]

    def played(*actions: str) -> State:
        state = start
        for action in actions:
            step = ENV.step(state, action)
            assert step.valid
            state = step.state
        return state

    one = played(f"type 1 {user}", f"type 2 {password}")
    two = played("type 2 x", f"type 1 {user}", f"type 2 {password}", f"type 2 {password}")
    assert one.observation == two.observation
    assert one.key == two.key != start.key
    assert f'field "Username" = "{user}"' in str(one.observation)
    assert ENV.step(one, "click 3").success


def test_keys_of_the_keyboard_reach_the_element_in_focus() -> None:
    state = ENV.start(task("enter-text", 1))
    state = ENV.step(state, "type 1 abc").state
    assert '"tt" = "abc" focused' in str(state.observation)
    state = ENV.step(state, "press backspace").state
    assert '"tt" = "ab"' in str(state.observation)
    state = ENV.step(state, "press tab").state
    assert 'button "Submit" focused' in str(state.observation)
    step = ENV.step(state, "press space")
    assert (step.outcome, step.success) == (Outcome.TERMINATED, False)


def test_a_click_by_coordinates_hits_what_is_there() -> None:
    state = ENV.start(task("click-test-2", 5))
    left, top, right, bottom = ENV.elements(state)[0].box
    step = ENV.step(state, f"click {(left + right) // 2} {(top + bottom) // 2}")
    assert step.success
    assert not ENV.step(state, "click 159 209").success
    assert not ENV.step(state, "click 5000 5000").valid


def test_where_an_action_points_is_compared_with_the_target() -> None:
    env = MiniWob(kinds=("click",), boxes=True)
    state = env.start(task("click-test-2", 5))
    left, top, right, bottom = env.elements(state)[0].box
    assert f'1 button "ONE" {left} {top} {right} {bottom}' in str(state.observation)
    seen = []
    for action in ("click 1", f"box {left} {top} {right} {bottom}", "click 2", "press tab", "nothing"):
        pointing = pointing_in({"env": env.step(state, action).info})
        assert pointing is not None
        assert (pointing.target, pointing.target_box) == ("1", (left, top, right, bottom))
        assert pointing.screen == (160, 210)
        seen.append(pointing)
    assert PointInBox().score(Pointings.of(*seen)).tolist() == [1.0, 1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    "page", ["click-tab-2", "email-inbox", "click-collapsible-2", "login-user-popup", "social-media"]
)
def test_an_earlier_state_is_rebuilt_exactly(page: str) -> None:
    state = ENV.start(task(page, 2))
    first = ENV.step(state, state.admissible[1])
    other = ENV.step(pickle.loads(pickle.dumps(state)), state.admissible[-1])
    again = ENV.step(state, state.admissible[1])
    assert again.state == first.state
    assert other.state.key != first.state.key or other.outcome is not Outcome.OPEN
    shared.close_pages(ENV.chromium, ENV.deadline_s)
    assert ENV.step(state, state.admissible[1]).state == first.state


def test_a_document_that_is_used_again_leaves_nothing_behind() -> None:
    pages = sorted(REUSED & {*SUBSETS["easy"], "click-tab-2", "click-collapsible-2", "navigate-tree", "odd-or-even"})
    ENV.close()
    fresh = {page: ENV.start(task(page)) for page in pages}
    for page in pages:
        for episode in range(2):
            state = ENV.start(task(page, episode))
            for action in (state.admissible[0], state.admissible[-1]):
                ENV.step(state, action)
    assert {page: ENV.start(task(page)) for page in pages} == fresh


def test_elements_have_names_in_place_of_numbers() -> None:
    env = MiniWob(kinds=("all",), ids="label")
    state = env.start(task("login-user", 3))
    assert str(state.observation).splitlines()[:-1] == ['field "Username"', 'field "Password"', 'button "Login"']
    step = env.step(state, 'type "Username" "ann of x"')
    assert 'field "Username" = "ann of x" focused' in str(step.state.observation)
    assert env.step(state, "type Username ann of x").state == step.state
    assert step.state.key == ENV.step(ENV.start(task("login-user", 3)), "type 1 ann of x").state.key
    assert not env.step(state, 'click "Log in"').valid
    assert not env.step(state, "type Nobody x").valid
    for page in SOLVERS:
        state = env.start(task(page))
        plan = env.plan(state)
        assert plan
        for action in plan:
            step = env.step(state, action)
            state = step.state
        assert step.success


def test_each_element_has_a_label_of_its_own() -> None:
    names = ("ok", "ok", "", "")
    rows = [Element(ref=ref, role="field", name=name, box=(0, 0, 1, 1)) for ref, name in enumerate(names, 1)]
    reading = Reading(goal="", elements=tuple(rows), page="", done=False, reward=0.0)
    assert reading.labels() == ("ok", "ok 2", "field 1", "field 2")
    assert read_line("type ok 2 x", reading.labels()) == Command(verb="type", ref=2, text="x")
    assert read_line('type "ok 2" "x"', reading.labels()) == Command(verb="type", ref=2, text="x")
    assert read_line("type ok 3", reading.labels()) == Command(verb="type", ref=1, text="3")
    assert read_line("click ok 3", reading.labels()) == Command(verb="click", ref=5)


@pytest.mark.parametrize("names", [("ok", "ok", "ok 2"), ("ok 2", "ok", "ok", "ok 3"), ("", "field 1", "", "field 2")])
def test_a_label_with_a_number_is_not_the_name_of_another_element(names: tuple[str, ...]) -> None:
    rows = [Element(ref=ref, role="field", name=name, box=(0, 0, 1, 1)) for ref, name in enumerate(names, 1)]
    labels = Reading(goal="", elements=tuple(rows), page="", done=False, reward=0.0).labels()
    assert [read_line(f'click "{label}"', labels) for label in labels] == [
        Command(verb="click", ref=ref) for ref in range(1, len(names) + 1)
    ]


def test_an_action_that_was_played_is_remembered() -> None:
    env = MiniWob(kinds=("click",))
    state = env.start(task("click-checkboxes-large", 7))
    first = env.step(env.step(state, "click 1").state, "click 2")
    process = shared.process_id("", env.deadline_s)
    env.close()
    again = env.step(env.step(env.start(task("click-checkboxes-large", 7)), "click 1").state, "click 2")
    assert (again.state, again.info) == (first.state, first.info)
    assert shared.process_id("", env.deadline_s) is None
    assert env.step(again.state, "click 3").valid
    assert shared.process_id("", env.deadline_s) != process


def test_episodes_at_the_same_time_do_not_touch_each_other() -> None:
    pages = ("click-checkboxes", "enter-text", "click-option", "email-inbox-reply") * 5
    states = [ENV.start(task(page, episode)) for episode, page in enumerate(pages)]
    apart = [ENV.step(state, state.admissible[0]) for state in states]
    mixed = [ENV.step(state, state.admissible[0]) for state in reversed(states)]
    assert [step.state for step in apart] == [step.state for step in reversed(mixed)]


@pytest.mark.parametrize(
    "text", ["", " ", "fly", "\x00", "\ud800\ud800", "x" * 100_000, '{"click": 1}', "click", "click 99"]
)
@pytest.mark.parametrize("page", ["click-test", "enter-text"])
def test_garbage_costs_a_turn_and_changes_nothing(page: str, text: str) -> None:
    state = ENV.start(task(page))
    step = ENV.step(state, text)
    assert (step.valid, step.reward, step.outcome, step.state.key) == (False, 0.0, Outcome.OPEN, state.key)
    lines = str(step.state.observation).splitlines()
    assert [line for line in lines if not line.startswith("note: ")] == str(state.observation).splitlines()
    again = ENV.step(step.state, text)
    assert (again.state.observation, again.state.key) == (step.state.observation, step.state.key)


def test_the_tab_key_begins_at_the_top_whatever_had_the_focus_before() -> None:
    names = ("login-user", "focus-text-2")
    ENV.close()
    fresh = [ENV.step(ENV.start(task(page, 1)), "press tab") for page in names]
    ENV.close()
    for page in names:
        state = ENV.step(ENV.start(task(page)), "click 2").state
        ENV.step(state, "click 3")
    again = [ENV.step(ENV.start(task(page, 1)), "press tab") for page in names]
    assert [(step.state, step.reward) for step in again] == [(step.state, step.reward) for step in fresh]
    start = ENV.start(task("login-user"))
    left = ENV.step(ENV.step(start, "click 2").state, "click 20 15").state
    assert left.key == start.key
    assert ENV.step(left, "press tab").state.key == ENV.step(start, "press tab").state.key


def test_a_key_names_the_place_of_the_caret() -> None:
    typed = ENV.step(ENV.start(task("enter-text")), "type 1 abc").state
    moved = ENV.step(typed, "press home").state
    assert moved.observation == typed.observation
    assert moved.key != typed.key
    assert ENV.step(moved, "press end").state.key == typed.key
    assert '"tt" = "bc"' in str(ENV.step(moved, "press delete").state.observation)


def test_scrolling_in_an_episode_does_not_last_until_the_next_one() -> None:
    keys = ("click 3", "press pagedown", "press pageup", "click 2", "press end", "press up")

    def keys_of_states() -> list[str]:
        state = ENV.start(task("copy-paste-2", 2))
        found = [state.key]
        for key in keys:
            state = ENV.step(state, key).state
            found.append(state.key)
        return found

    first = keys_of_states()
    for episode in range(4):
        state = ENV.start(task("copy-paste-2", episode))
        for key in ("click 3", "press pagedown", "press end"):
            state = ENV.step(state, key).state
    assert keys_of_states() == first


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_any_text_can_be_typed_and_is_no_code(text: str) -> None:
    state = ENV.start(task("enter-text"))
    step = ENV.step(state, f'type 1 "{text}"')
    assert step.outcome is Outcome.OPEN
    shown = next(each for each in ENV.elements(step.state) if each.role == "field")
    assert shown.value == " ".join("".join(c if c.isprintable() else " " for c in text).split())


def test_the_wrong_kind_of_element_gives_a_note() -> None:
    state = ENV.start(task("choose-list"))
    for action, note in (
        ("type 2 abc", "not a field"),
        ("select 2 abc", "not a select"),
        ("select 1 no such country", "no such option"),
        ("click 77", "no such element"),
        ("press f13", "no such action"),
    ):
        step = ENV.step(state, action)
        assert not step.valid
        assert str(step.state.observation).splitlines()[-2] == f"note: {note}"


def test_episodes_are_truncated() -> None:
    env = MiniWob(kinds=("forms",), max_steps=2)
    step = env.step(env.step(env.start(task("enter-text")), "type 1 a").state, "type 1 b")
    assert step.outcome is Outcome.TRUNCATED
    assert env.plan(env.step(env.start(task("enter-text")), "x").state) is None


def test_an_action_after_the_last_turn_changes_nothing() -> None:
    env = MiniWob(kinds=("click",), max_steps=1)
    last = env.step(env.start(task("click-test")), "x")
    late = env.step(last.state, "click 1")
    assert (late.state, late.outcome, late.valid, late.success) == (last.state, Outcome.TRUNCATED, False, False)


def test_calls_of_tools_do_what_the_lines_do() -> None:
    env = MiniWob(kinds=("forms",), calls=True)
    state = env.start(task("enter-text", 1))
    text = state.observation[0].content.splitlines()[-1].split('"')[1]
    typed = ToolCall(name="type", arguments={"element": "1", "text": text}, call_id="a")
    bad = BadCall(text="{", problem="no JSON")
    step = env.step(state, Action(calls=(typed, bad)))
    assert [message.role for message in step.state.observation] == ["tool", "tool"]
    assert not step.valid
    assert f'"{text}"' in step.state.observation[-1].content
    plan = env.plan(step.state)
    assert plan == (Action(calls=(ToolCall(name="click", arguments={"element": "2"}),)),)
    both = Action(calls=(typed, plan[0].calls[0]))
    assert env.step(state, both).success
    silent = env.step(state, Action(text="done"))
    assert (silent.valid, silent.outcome) == (False, Outcome.OPEN)
    assert isinstance(silent.state.observation[0], Message)


@pytest.mark.parametrize(("ids", "element"), [("number", "1"), ("label", "tt")])
def test_the_texts_of_calls_are_not_parsed(ids: str, element: str) -> None:
    env = MiniWob(kinds=("forms",), calls=True, ids=ids)  # type: ignore[arg-type]
    state = env.start(task("enter-text", 1))
    for name, arguments, value in (
        ("type", {"element": element, "text": '"2 x"'}, '"2 x"'),
        ("type", {"element": f'"{element}"', "text": " 7\n"}, "7"),
        ("type", {"element": f"{element} 2", "text": "x"}, None),
        ("type", {"element": "", "text": f"{element} x"}, None),
        ("click", {"element": "40 90"}, None),
        ("tap", {"x": 5.0, "y": 60}, ""),
    ):
        done = env.step(state, Action(calls=(ToolCall(name=name, arguments=arguments),)))
        assert done.valid == (value is not None), arguments
        assert env.elements(done.state)[0].value == (value or "")


@pytest.mark.parametrize("level", ["episode", "kind"])
def test_no_two_splits_share_an_episode(level: str) -> None:
    env = MiniWob(kinds=("click-option", "click-test-2", "enter-text", "focus-text-2"), level=level)
    shown: dict[str, set[str]] = {}
    pages: dict[str, set[object]] = {}
    for split in ("train", "dev", "test"):
        drawn = env.tasks(split, 6 if split == "train" else 1, 0)
        assert env.tasks(split, 1, 0) == drawn[:1]
        shown[split] = {str(env.start(each).observation) for each in drawn}
        pages[split] = {each.data["page"] for each in drawn}
    assert not shown["train"] & shown["test"] | shown["dev"] & shown["test"] | shown["train"] & shown["dev"]
    if level == "kind":
        assert not pages["train"] & (pages["dev"] | pages["test"])
        assert not pages["dev"] & pages["test"]


def test_tasks_of_more_pages_than_are_kept_load_few_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = Pages._load

    def counted(self: Pages, page: Page, kind: str) -> None:
        loaded.append(kind)
        load(self, page, kind)

    ENV.close()
    monkeypatch.setattr(Pages, "_load", counted)
    monkeypatch.setattr(pages, "MOST_PAGES", 2)
    kinds = ("click-button", "click-link", "click-option", "enter-text", "login-user", "simple-arithmetic")
    drawn = MiniWob(kinds=kinds).tasks("dev", 4, 11)
    assert len(drawn) == 4
    assert len(loaded) <= 2 * len(kinds)
    ENV.close()


def test_the_script_ticks_all_the_boxes_of_the_largest_page() -> None:
    plan = ENV.plan(ENV.start(task("click-checkboxes-large", 111)))
    assert plan is not None
    assert len(plan) == 13


def test_wrong_settings_and_tasks() -> None:
    with pytest.raises(ValueError, match="need subsets"):
        MiniWob(kinds=("click-nothing",))
    with pytest.raises(ValueError, match="need subsets"):
        MiniWob(kinds=())
    with pytest.raises(ValueError, match="3 or more"):
        MiniWob(kinds=("enter-text",), level="kind")
    with pytest.raises(ValueError, match="need a page"):
        ENV.start(Task(id="x", data={"page": "../../x", "episode": 0}))
    with pytest.raises(ValueError, match="an integer"):
        ENV.start(Task(id="x", data={"page": "click-test", "episode": True}))
    for deadline_s in (float("nan"), float("inf"), 1e12, 0.0):
        with pytest.raises(ValueError, match=r"MiniWob\.deadline_s: got"):
            MiniWob(deadline_s=deadline_s)
    with pytest.raises(ImportError, match="apt-get install chromium"):
        MiniWob(chromium="no-such-browser").start(task("click-test"))


def test_a_screenshot_is_an_image_of_the_page() -> None:
    image = ENV.screenshot(ENV.start(task("click-test")))
    assert image.startswith(b"\x89PNG")
    assert struct.unpack(">II", image[16:24]) == (160, 210)


def test_a_killed_browser_loses_no_episode() -> None:
    states = [ENV.start(task("click-checkboxes-large", episode)) for episode in range(4)]
    states = [ENV.step(state, "click 1").state for state in states]
    process = shared.process_id(ENV.chromium, ENV.deadline_s)
    assert process
    os.killpg(process, signal.SIGKILL)
    after = [ENV.step(state, "click 2") for state in states]
    assert shared.process_id(ENV.chromium, ENV.deadline_s) != process
    assert all(step.valid and step.replayed_steps == 1 for step in after)
    assert all(str(step.state.observation).count(" checked") == 2 for step in after)


def test_a_browser_that_hangs_is_replaced() -> None:
    env = MiniWob(kinds=("click",), remember=0, deadline_s=1.5)
    state = env.step(env.start(task("click-checkboxes-large")), "click 1").state
    process = shared.process_id("", 1.5)
    assert process
    os.killpg(process, signal.SIGSTOP)
    assert env.step(state, "click 2").valid
    assert shared.process_id("", 1.5) != process
    env.close()


def test_a_program_that_is_no_browser_is_a_fault() -> None:
    env = MiniWob(chromium="/bin/false", deadline_s=5)
    with pytest.raises(EnvFault, match=r"browsers in a row died: .* try: /bin/false --headless"):
        env.start(task("click-test"))
    assert shared.process_id("/bin/false", 5) is None


CHILD = """
import os, signal
from bough.worlds.miniwob import MiniWob
from bough.worlds.miniwob import shared
from bough.tree import Task
env = MiniWob()
env.start(Task(id="x", data={"page": "click-test", "episode": 0}))
print(shared.process_id("", env.deadline_s), flush=True)
END
"""


@pytest.mark.parametrize("end", ["env.close()", "", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_no_process_and_no_folder_is_left(end: str) -> None:
    # pytest's own folders are too long for Chromium's socket.
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        group = int(_child(end, place))
        until = time.monotonic() + 10
        while time.monotonic() < until and (_alive(group) or os.listdir(place)):
            time.sleep(0.05)
        assert not _alive(group)
        assert os.listdir(place) == []


def test_a_long_path_of_temporary_files_is_no_fault(tmp_path: Path) -> None:
    """A socket's path has at most 107 characters."""
    place = tmp_path / ("long" * 20)
    place.mkdir()
    assert int(_child("env.close()", str(place))) > 0


def _child(end: str, place: str) -> str:
    """What a process prints that opens a page, with its temporary files in `place`."""
    command = [sys.executable, "-c", CHILD.replace("END", end)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TMPDIR": place}, check=False
    ).stdout


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
