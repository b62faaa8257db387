"""BFCL's multi-turn episodes as an environment: user turns, rewards, branching, oracle, splits, and wrong actions."""

import json
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import mpmath
import pytest
from bfcl_official import source
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import Draft202012Validator
from tests.env.play import seen

from bough.env import Split, State, Step, call
from bough.tree import Action, BadCall, Message, Outcome, Task, ToolCall
from bough.worlds.bfcl import Bfcl
from bough.worlds.bfcl.apis import execute, hash_apis
from bough.worlds.bfcl.entries import CATEGORIES, Entry, entries
from bough.worlds.bfcl.functions import functions
from bough.worlds.bfcl.solution import solution

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
DONE = Action(text="Done.")
ENV = Bfcl()
MATH = "multi_turn_base_9"
"""An episode with files and arithmetic."""


def task(name: str) -> Task:
    return Task(id=name, data={"episode": name})


def start(name: str, env: Bfcl = ENV) -> State:
    return env.start(task(name))


def play(env: Bfcl, state: State, actions: "tuple[Action, ...] | list[Action]") -> list[Step]:
    steps: list[Step] = []
    for action in actions:
        steps.append(env.step(state, action))
        state = steps[-1].state
    return steps


def contents(step: Step) -> list[str]:
    assert not isinstance(step.state.observation, str)
    return [message.content for message in step.state.observation]


def random_actions(state: State, rng: Random, count: int) -> list[Action]:
    """Calls of listed functions with arguments of the ground truth, of the schema's types, or of none; and answers."""
    truth = [each for turn in solution(state.value.entry).turns for each in turn.calls]  # type: ignore[attr-defined]
    junk = [0, -1, 2.5, "a", "", None, True, [], ["a"], {"a": 1}]
    actions: list[Action] = []
    for _ in range(count):
        calls: list[ToolCall] = []
        for _ in range(rng.choice((1, 1, 2))):
            tool = rng.choice(state.tools)
            names = list(tool.schema["properties"])  # type: ignore[call-overload]
            made = ToolCall(name=tool.name, arguments={name: rng.choice(junk) for name in names if rng.random() < 0.8})
            calls.append(rng.choice([made, *truth[:3]]))
        actions.append(DONE if rng.random() < 0.15 else Action(calls=tuple(calls)))
    return actions


UNUSUAL = {"multi_turn_miss_func_49", *(f"multi_turn_{each}_173" for each in CATEGORIES)}
"""Episodes whose ground truth calls `tail` before it is added, or closes a ticket by a text in place of a number."""


def test_the_oracle_solves_every_episode() -> None:
    """Every one of the first category; the others have its scenarios, and every fourth is played."""
    env = Bfcl(executes_unlisted=True, partial=True)
    wrong: list[str] = []
    played = [n for i, n in enumerate(entries()) if n.startswith("multi_turn_base") or i % 4 == 0 or n in UNUSUAL]
    assert len(played) > 300
    for name in played:
        state = start(name, env)
        steps = play(env, state, env.plan(state) or ())
        assert steps, f"{name}: no plan"
        assert (steps[-1].outcome, steps[-1].success) == (Outcome.TERMINATED, True), name
        assert sum(step.reward for step in steps) == pytest.approx(1)
        wrong += [name for step in steps if not step.valid]
    assert set(wrong) == UNUSUAL


def test_without_unlisted_functions_one_episode_has_no_plan_and_is_no_task() -> None:
    drawn = [task.data["episode"] for split in SPLITS for task in ENV.tasks(split, _size(ENV, split), 0)]
    assert sorted({*entries()} - {*drawn}) == ["multi_turn_miss_func_49"]
    assert ENV.plan(start("multi_turn_miss_func_49")) is None


def _size(env: Bfcl, split: Split) -> int:
    return sum(env._takes(entry) and entry.split == split for entry in entries().values())


def test_a_scenario_is_in_one_split_and_no_first_state_is_in_two() -> None:
    by_scenario: dict[int, set[str]] = {}
    by_state: dict[str, set[str]] = {}
    for entry in entries().values():
        by_scenario.setdefault(entry.scenario, set()).add(entry.split)
        by_state.setdefault(json.dumps(entry.config, sort_keys=True), set()).add(entry.split)
    assert len(by_scenario) == 200
    assert all(len(found) == 1 for found in (*by_scenario.values(), *by_state.values()))
    assert Counter(entry.split for entry in entries().values()).keys() == set(SPLITS)


def test_tasks_follow_from_split_count_and_seed() -> None:
    for split in SPLITS:
        tasks = ENV.tasks(split, 20, 1)
        assert tasks == ENV.tasks(split, 20, 1)
        assert tasks[:5] == ENV.tasks(split, 5, 1)
        assert tasks != ENV.tasks(split, 20, 2)
        assert len({each.id for each in tasks}) == 20
        assert all(entries()[str(each.data["episode"])].split == split for each in tasks)
    with pytest.raises(ValueError, match="got count=1000; need 0 to"):
        ENV.tasks("train", 1000, 0)


def test_fields_choose_episodes() -> None:
    env = Bfcl(categories=("base",), classes=("TradingBot",), user_turns=4, oracle_calls=6)
    chosen = [entry for entry in entries().values() if env._takes(entry)]
    assert chosen
    for entry in chosen:
        assert (entry.category, entry.classes) == ("base", ("TradingBot",))
        assert len(entry.users) <= 4
        assert sum(map(len, entry.truth)) <= 6
    assert len(chosen) < sum(entry.classes == ("TradingBot",) for entry in entries().values())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"categories": ("bas",)}, "need some of base, miss_func"),
        ({"classes": ("Math",)}, "need some of Gorilla"),
        ({"user_turns": 0}, "Bfcl.user_turns: got 0; need at least 1"),
        ({"distractors": -1}, "distractors: got -1; need at least 0, or None"),
    ],
)
def test_fields_out_of_range_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bfcl(**fields)  # type: ignore[arg-type]


def test_a_user_turn_ends_with_text_and_the_next_message_arrives() -> None:
    state = start("multi_turn_base_0")
    entry = entries()["multi_turn_base_0"]
    assert state.observation == (Message(role="user", content=entry.users[0]),)
    looked = ENV.step(state, Action(text="Let me see.", calls=(ToolCall(name="ls", arguments={}, call_id="7"),)))
    assert looked.state.observation == (
        Message(role="tool", content='{"current_directory_content": ["document", "archive"]}', call_id="7"),
    )
    asked = ENV.step(looked.state, DONE)
    assert asked.state.observation == (Message(role="user", content=entry.users[1]),)
    assert (asked.outcome, asked.reward) == (Outcome.OPEN, 0)


def test_a_function_that_is_missing_appears_in_its_turn_and_cannot_be_called_before() -> None:
    name = "multi_turn_miss_func_0"
    ((turn, (missing,)),) = entries()[name].added.items()
    state = start(name)
    sort = Action(calls=(ToolCall(name=missing, arguments={"file_name": "final_report.pdf"}),))
    while state.value.turn < turn:  # type: ignore[attr-defined]
        assert missing not in {tool.name for tool in state.tools}
        early = ENV.step(state, sort)
        assert not early.valid
        assert contents(early)[0].startswith("Error during execution: got the tool 'sort'; need one of")
        before, state = state, ENV.step(state, DONE).state
    assert missing in {tool.name for tool in state.tools}
    assert "more functions" in contents(ENV.step(before, DONE))[0]
    assert ENV.step(state, sort).valid
    unlisted = Bfcl(executes_unlisted=True)
    assert "got the tool" not in contents(unlisted.step(start(name, unlisted), sort))[0]


def test_partial_credit_is_paid_where_a_turn_passes_and_needs_no_earlier_one() -> None:
    name = "multi_turn_base_0"
    turns = solution(name).turns
    first, *_ = turns
    good = [Action(calls=(each,)) for each in first.calls]
    env = Bfcl(partial=True)
    assert [step.reward for step in play(env, start(name, env), [*good, DONE])] == [0.0] * len(good) + [0.25]
    assert [step.reward for step in play(env, start(name, env), [*good[:-1], DONE])] == [0.0] * len(good)
    late = play(env, start(name, env), [DONE, *good, *(Action(calls=(each,)) for each in turns[1].calls), DONE])
    assert late[0].reward == 0
    assert late[-1].reward == 0.25
    assert env.plan(late[-1].state) is None, "success needs every turn"


def test_turns_without_calls_in_the_ground_truth_pay_nothing() -> None:
    env = Bfcl(partial=True)
    name = "multi_turn_miss_param_0"
    state = start(name, env)
    paid = [(step.reward, bool(turn.calls)) for step, turn in _ends(env, state)]
    assert any(not called for _, called in paid)
    assert all((reward > 0) == called for reward, called in paid)


def _ends(env: Bfcl, state: State) -> list[tuple[Step, object]]:
    plan = env.plan(state) or ()
    ends = [step for step, action in zip(play(env, state, plan), plan, strict=True) if not action.calls]
    return [*zip(ends, solution(state.value.entry).turns, strict=True)]  # type: ignore[attr-defined]


def test_a_failed_turn_ends_the_episode_where_chosen() -> None:
    env = Bfcl(stop_at_failure=True)
    step = env.step(start("multi_turn_base_0", env), DONE)
    assert (step.outcome, step.success, step.reward) == (Outcome.TERMINATED, False, 0)
    assert ENV.step(start("multi_turn_base_0"), DONE).outcome == Outcome.OPEN
    again = env.step(step.state, DONE)
    assert (again.outcome, again.valid, again.success) == (Outcome.TERMINATED, False, False)
    assert env.plan(step.state) is None


def test_the_oracle_plans_from_states_off_its_way() -> None:
    name = "multi_turn_base_0"
    plan = ENV.plan(start(name)) or ()
    look = Action(calls=(ToolCall(name="pwd", arguments={}),))
    state = play(ENV, start(name), [look, plan[0], look, plan[1]])[-1].state
    rest = ENV.plan(state)
    assert rest == plan[2:]
    assert play(ENV, state, rest)[-1].success
    away = Action(calls=(ToolCall(name="rm", arguments={"file_name": "final_report.pdf"}),))
    assert ENV.plan(play(ENV, state, [away])[-1].state) is None
    assert ENV.plan(play(ENV, state, rest)[-1].state) == ()


def test_too_many_steps_or_calls_truncate() -> None:
    look = ToolCall(name="ls", arguments={})
    env = Bfcl(max_steps=3, max_calls=6)
    steps = play(env, start("multi_turn_base_0", env), [Action(calls=(look,))] * 4)
    assert [step.outcome for step in steps] == [Outcome.OPEN] * 3 + [Outcome.TRUNCATED]
    many = env.step(start("multi_turn_base_0", env), Action(calls=(look,) * 8))
    assert many.outcome == Outcome.TRUNCATED
    assert contents(many)[5:] == [contents(many)[0]] + ["Error during execution: the limit is 6 calls"] * 2
    assert env.step(many.state, DONE).outcome == Outcome.TRUNCATED


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_branches_of_copies_equal_replays_at_every_step(seed: int) -> None:
    rng = Random(seed)
    name = rng.choice([*entries()])
    state = start(name)
    actions = random_actions(state, rng, 8)
    for number, action in enumerate(actions):
        before = (state.key, hash_apis(state.value.apis), seen(ENV.step(state, action)))  # type: ignore[attr-defined]
        for other in random_actions(state, rng, 2):
            ENV.step(state, other)
        step = ENV.step(state, action)
        assert before == (state.key, hash_apis(state.value.apis), seen(step))  # type: ignore[attr-defined]
        assert seen(ENV.step(pickle.loads(pickle.dumps(state)), action)) == seen(step)
        replayed = play(ENV, start(name), actions[: number + 1])[-1]
        assert seen(replayed) == seen(step)
        if step.outcome != Outcome.OPEN:
            break
        state = step.state


def test_keys_hold_no_step_counter_and_tell_states_apart() -> None:
    state = start("multi_turn_base_0")
    look = Action(calls=(ToolCall(name="pwd", arguments={}),))
    make = [Action(calls=(ToolCall(name="mkdir", arguments={"dir_name": name}),)) for name in ("a", "b")]
    once, *_, often = play(Bfcl(max_steps=50), state, [look] * 30)
    assert once.state.key == often.state.key
    (made,) = play(ENV, state, make[:1])
    assert made.state.key not in (state.key, play(ENV, state, make[1:])[0].state.key)
    entered = ENV.step(state, Action(calls=(ToolCall(name="cd", arguments={"folder": "document"}),)))
    assert entered.state.key != once.state.key, "the current folder is part of the state"
    assert ENV.step(state, DONE).state.key != state.key, "and so is the user turn"


def test_two_threads_at_once_give_what_one_gives() -> None:
    names = [entry.name for entry in entries().values() if {"MathAPI", "VehicleControlAPI"} & {*entry.classes}][::9]

    def trace() -> list[object]:
        plans = [(start(name), ENV.plan(start(name)) or ()) for name in names]
        return [seen(step) for state, plan in plans for step in play(ENV, state, plan)]

    alone = trace()
    assert at_once(trace, trace) == [alone, alone]


def test_two_threads_at_once_keep_their_precision() -> None:
    apis = start(_with("MathAPI").name).value.apis  # type: ignore[attr-defined]

    def trace(digits: int) -> list[str]:
        made = ToolCall(name="logarithm", arguments={"value": 7, "base": 3, "precision": digits})
        return [execute(apis, made) for _ in range(3000)]

    few, many = at_once(lambda: trace(5), lambda: trace(200))
    assert {*few} == {*trace(5)}
    assert {*many} == {*trace(200)}


def at_once(*functions: Callable[[], list[Any]]) -> list[list[Any]]:
    """Results of functions in threads that alternate as often as the interpreter can."""
    results: dict[int, list[Any]] = {}

    def run(number: int) -> None:
        results[number] = functions[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(functions))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return [results[number] for number in range(len(functions))]


def test_an_episode_changes_nothing_outside_it() -> None:
    post, travel = source("posting_api").TwitterAPI.post_tweet, source("travel_booking")
    before = (
        mpmath.mp.dps,
        json.dumps([post.__defaults__, travel.CREDIT_CARD_EXTENSION, travel.BOOKING_RECORD_EXTENSION]),
    )
    tweet = next(name for name, entry in entries().items() if "TwitterAPI" in entry.classes)
    state = start(tweet)
    api = state.value.apis["TwitterAPI"]  # type: ignore[attr-defined]
    enter = {"username": api.username, "password": api.password}
    acts = [
        ToolCall(name="authenticate_twitter", arguments=enter),
        ToolCall(name="post_tweet", arguments={"content": "hello"}),
        ToolCall(name="mention", arguments={"tweet_id": api.tweet_counter, "mentioned_usernames": ["@ann"]}),
    ]
    assert "mentioned successfully" in contents(ENV.step(state, Action(calls=tuple(acts))))[-1]
    for name, entry in entries().items():
        if entry.category == "long_context" and "TravelAPI" in entry.classes:
            play(ENV, start(name), ENV.plan(start(name)) or ())
    digits = ToolCall(name="logarithm", arguments={"value": 7, "base": 3, "precision": 60})
    play(ENV, start(_with("MathAPI").name), [Action(calls=(digits,))])
    after = (
        mpmath.mp.dps,
        json.dumps([post.__defaults__, travel.CREDIT_CARD_EXTENSION, travel.BOOKING_RECORD_EXTENSION]),
    )
    assert after == before


def _with(owner: str) -> Entry:
    return next(entry for entry in entries().values() if owner in entry.classes)


GARBAGE = [
    Action(),
    Action(text=" \n"),
    Action(calls=(BadCall(text="<call>", problem="got no JSON"),)),
    call("nothing", a=1),
    call("_load_scenario", scenario={}),
    call("__init__"),
    call("cd"),
    call("cd", folder="a", self=1),
    call("cd", folder={"a": [1]}),
    call("cd", folder="\udc80\x00"),
    call("touch", file_name="\udc80\x00 <|im_end|>"),
    call("echo", content="x" * 1_000_000, file_name="a"),
    call("cp", source=["a"], destination="b"),
    Action(calls=(ToolCall(name="", arguments={"": float("nan")}),)),
    Action(calls=(ToolCall(name="\udc80", arguments={"\udc80": "\udc80"}),) * 200),
]


@pytest.mark.parametrize("action", GARBAGE, ids=lambda action: repr(action)[:60])
def test_wrong_actions_are_not_valid_and_never_raise(action: Action) -> None:
    state = start("multi_turn_base_0")
    step = ENV.step(state, action)
    if action.calls:
        assert len(contents(step)) == len(action.calls)
    assert not step.valid or action in (GARBAGE[9], GARBAGE[10], GARBAGE[11]), "texts of any kind fit a text's schema"
    str(step.state.observation).encode()
    pickle.dumps(step)
    play(ENV, step.state, [DONE] * 5)


@settings(max_examples=60, deadline=None)
@given(
    arguments=st.dictionaries(
        st.sampled_from(["file_name", "folder", "content", "a", "b", "numbers", "precision", "\udc80"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    ),
    data=st.data(),
)
def test_no_arguments_raise(arguments: dict[str, object], data: st.DataObject) -> None:
    state = start(data.draw(st.sampled_from([*entries()])))
    name = data.draw(st.sampled_from([tool.name for tool in state.tools]))
    step = ENV.step(state, Action(calls=(ToolCall(name=name, arguments=arguments),)))
    assert isinstance(contents(step)[0], str)
    assert step.state.key
    ENV.step(step.state, DONE)


BOMBS = [
    call("power", base=10, exponent=10**9),
    call("logarithm", value=2, base=3, precision=10**9),
    call("logarithm", value="1e999999999", base=3, precision=10),
    call("square_root", number=2, precision=10**9),
    call("round_number", number=5, decimal_places=-(10**9)),
    call("add", a=[[]], b=1),
]


@pytest.mark.parametrize("action", BOMBS, ids=lambda action: action.calls[0].name)
def test_calls_that_would_not_return_are_refused(action: Action) -> None:
    begin = time.process_time()
    (text,) = contents(ENV.step(start(_with("MathAPI").name), action))
    assert text.startswith(("Error during execution", '{"error"'))
    assert time.process_time() - begin < 2


def test_deep_arguments_and_folders_are_no_trouble() -> None:
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    state = start("multi_turn_base_0")
    assert "levels" in contents(ENV.step(state, call("ls", a=deep)))[0]
    down = [
        each for number in range(45) for each in (call("mkdir", dir_name=f"{number}"), call("cd", folder=f"{number}"))
    ]
    calls = tuple(each.calls[0] for each in down)
    step = ENV.step(state, Action(calls=calls))
    assert step.valid
    assert ENV.step(step.state, call("find")).valid
    assert pickle.loads(pickle.dumps(step)).state.key == step.state.key
    inside = ENV.step(
        state,
        Action(
            calls=tuple(
                each.calls[0]
                for each in (
                    call("mv", source="archive", destination="archive"),
                    call("find"),
                    call("cp", source="document", destination="copy"),
                )
            )
        ),
    )
    assert ENV.step(inside.state, DONE).outcome == Outcome.OPEN


def test_a_long_result_is_cut_for_the_agent_alone() -> None:
    name = next(
        each for each, entry in entries().items() if entry.category == "long_context" and "cat(" in str(entry.truth)
    )
    env = Bfcl(result_characters=50)
    state = start(name, env)
    steps = play(env, state, env.plan(state) or ())
    assert steps[-1].success, "the check sees whole results"
    texts = [text for step in steps if step.outcome == Outcome.OPEN for text in contents(step)]
    assert any("... (cut: " in text for text in texts)


def test_tools_are_json_schemas_of_the_documented_functions() -> None:
    assert len(functions()) == 128
    for function in functions().values():
        Draft202012Validator.check_schema(dict(function.tool.schema))
        text = json.dumps(function.tool.schema)
        assert '"float"' not in text
        assert '"dict"' not in text
        assert '"None"' not in text
        assert function.short.description in function.tool.description
        assert "This tool belongs" not in function.short.description


def test_fewer_functions_are_listed_where_chosen() -> None:
    state = start("multi_turn_base_0")
    entry = entries()["multi_turn_base_0"]
    assert len(state.tools) == sum(function.owner in entry.classes for function in functions().values())
    few = [start("multi_turn_base_0", Bfcl(distractors=count, short_descriptions=True)).tools for count in (0, 3, 1000)]
    used = {each.name for turn in solution("multi_turn_base_0").turns for each in turn.calls}
    assert {tool.name for tool in few[0]} == used
    assert len(few[1]) == len(used) + 3
    assert {tool.name for tool in few[2]} == {tool.name for tool in state.tools}


def test_heavy_modules_are_not_imported() -> None:
    code = (
        "import sys\nfrom bough.worlds.bfcl import Bfcl\n"
        "assert not [m for m in sys.modules if m.startswith(('bfcl', 'mpmath'))]\n"
        "env = Bfcl()\n(task,) = env.tasks('test', 1, 0)\nstate = env.start(task)\n"
        "for action in env.plan(state):\n    step = env.step(state, action)\n    state = step.state\n"
        "assert step.success\nprint(' '.join(sys.modules))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {*ran.stdout.split()}
    assert "bfcl_eval" in loaded
    assert (
        not {"torch", "pandas", "openai", "requests", "filelock", "bfcl_eval.utils", "bfcl_eval.model_handler"} & loaded
    )


@pytest.mark.parametrize("missing", ["bfcl_eval", "mpmath"])
def test_a_missing_package_is_named_with_its_installation(missing: str) -> None:
    code = (
        f"import sys\nsys.modules[{missing!r}] = None\nfrom bough.worlds.bfcl.preset import bfcl\n"
        "env = bfcl().env\ntry:\n    env.start(env.tasks('test', 1, 0)[0])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"got no module '{missing}'; need pip install --no-deps --requirement constraints/bfcl.txt" in ran.stdout


def test_a_wrong_task_or_state_is_refused() -> None:
    with pytest.raises(ValueError, match="got the episode 'nothing'; need an id such as"):
        ENV.start(Task(id="a", data={"episode": "nothing"}))
    with pytest.raises(TypeError, match="need one of its own"):
        ENV.step(replace(start(MATH), value=3), DONE)


def test_the_data_have_a_hash() -> None:
    assert len(ENV.data_hash) == 64
