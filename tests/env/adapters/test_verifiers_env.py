"""Tasksets of verifiers in the package's own types."""

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.missing import need

from bough.env import Branching, EnvFault, Replay, Verifiers, Workers, verifiers_env
from bough.evaluate import CheckSizes, check_env
from bough.tree import Action, BadCall, Message, Outcome, ToolCall
from bough.usercode import load_module

need("verifiers")

HERE = Path(__file__).parent
SETS = HERE / "verifiers_tasksets.py"
SET = (
    "import verifiers.v1 as vf\n\ndef made():\n    return Set(vf.TasksetConfig())\n\n"
    "class Set(vf.Taskset[vf.Task, vf.TasksetConfig]):\n    def load(self):\n"
)
SUMS, SAFES = f"{SETS}:Sums", f"{SETS}:Safes"


def called(name: str, **arguments: object) -> Action:
    return Action(calls=(ToolCall(name=name, arguments=arguments, call_id="c1"),))


@pytest.fixture
def guessing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    monkeypatch.syspath_prepend(str(HERE / "verifiers_plugin"))
    yield verifiers_env("guessing", config={"highest": 20}, max_steps=6)
    sys.modules.pop("guessing", None)


def test_one_reply_is_paid_by_the_tasks_own_weighted_rewards() -> None:
    env = verifiers_env(SUMS)
    assert env.branching is Branching.REPLAY
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    assert isinstance(state.observation, str)
    system, prompt = state.observation.split("\n\n")
    assert (system, prompt) == ("Give the number alone.", task.data["prompt"])
    number = int(prompt.split()[2])
    right, wordy, wrong = (env.step(state, text) for text in (str(3 * number), f"It is {3 * number}", "-1"))
    assert (right.reward, right.success, right.outcome) == (1.0, True, Outcome.TERMINATED)
    assert right.info == {"rewards": {"right": 0.75, "short": 0.25}}
    assert (wordy.reward, wordy.success) == (0.0, False)
    assert (wrong.reward, wrong.info["rewards"]) == (0.25, {"right": 0.0, "short": 0.25})
    assert not env.step(state, " ").valid


def test_splits_share_no_task_and_do_not_depend_on_the_place() -> None:
    env = Verifiers(taskset=SUMS)
    found = {split: {task.id for task in env.tasks(split, 2, 0)} for split in ("train", "dev", "test")}
    assert len(set.union(*found.values())) == 6
    assert env.tasks("train", 9, 3)[:4] == env.tasks("train", 4, 3)
    fewer = Verifiers(taskset=f"{SETS}:ten_sums")
    assert {task.data["content"] for task in fewer.tasks("train", 5, 0)} <= {
        task.data["content"] for task in env.tasks("train", 31, 0)
    }
    with pytest.raises(ValueError, match="got count=99 for split 'dev'"):
        env.tasks("dev", 99, 0)


def test_an_endless_taskset_is_read_up_to_most() -> None:
    env = Verifiers(taskset=f"{SETS}:Endless", max_tasks=50)
    assert len(env._loaded().tasks) == 50
    assert env.tasks("train", 20, 0)


def test_a_taskset_that_is_given_becomes_its_class_and_config() -> None:
    sets = load_module(SETS)
    given = verifiers_env(sets.Sums(sets.SumsConfig(count=12)))
    assert isinstance(given.env, Verifiers)
    assert (given.env.taskset, given.env.config) == (SUMS, '{"count": 12}')
    assert verifiers_env(sets.Sums).env == Verifiers(taskset=SUMS)
    with pytest.raises(ValueError, match="got a view of a taskset"):
        verifiers_env(sets.Sums(sets.SumsConfig()).take(3))


def test_tools_change_the_state_of_their_trace_alone() -> None:
    env = verifiers_env(SAFES)
    (task,) = env.tasks("train", 1, 0)
    code = str(task.data["prompt"])[-4:-1]
    state = env.start(task)
    assert [tool.name for tool in state.tools] == ["safe_hint", "safe_open"]
    assert state.tools[0].schema["required"] == ["place"]
    hint = env.step(state, called("safe_hint", place=1))
    assert hint.state.observation == (Message(role="tool", content=code[1], call_id="c1"),)
    assert (hint.valid, hint.outcome, hint.reward) == (True, Outcome.OPEN, 0.0)
    opened = env.step(hint.state, called("safe_open", code=code))
    assert (opened.outcome, opened.state.observation[0].content) == (Outcome.OPEN, "open")
    done = env.step(opened.state, Action(text="Done."))
    assert (done.reward, done.success) == (1.0, True)
    other = env.step(hint.state, called("safe_open", code="999"))
    gave_up = env.step(other.state, Action(text="Done."))
    assert (gave_up.reward, gave_up.success) == (0.0, False), "a sibling's calls are not in this state"


def test_wrong_calls_are_answered_and_not_valid() -> None:
    env = verifiers_env(SAFES)
    state = env.start(env.tasks("train", 1, 0)[0])
    bad = Action(calls=(BadCall(text="{", problem="no JSON"),))
    for action in (called("safe_hint"), called("safe_hint", place="x"), called("nothing"), bad):
        step = env.step(state, action)
        assert (step.valid, step.outcome) == (False, Outcome.OPEN)
        assert str(step.state.observation[0].content).startswith("error: ")
    raised = env.step(state, called("safe_hint", place=77))
    assert (raised.valid, raised.outcome) == (True, Outcome.OPEN)
    assert "index out of range" in str(raised.state.observation[0].content)


def test_a_stop_hook_ends_the_episode_and_a_limit_cuts_it() -> None:
    env = verifiers_env(SAFES)
    state = env.start(env.tasks("train", 1, 0)[0])
    first = env.step(state, called("safe_open", code="1"))
    second = env.step(first.state, called("safe_open", code="2"))
    assert (second.outcome, second.reward) == (Outcome.TERMINATED, 0.0)
    short = verifiers_env(SAFES, max_steps=2)
    state = short.start(short.tasks("train", 1, 0)[0])
    state = short.step(state, called("safe_hint", place=0)).state
    assert short.step(state, called("safe_hint", place=0)).outcome is Outcome.TRUNCATED


def test_a_scripted_user_answers_until_its_program_ends(guessing: Replay) -> None:
    task = next(each for each in guessing.tasks("train", 12, 0) if "(Game 1.)" not in str(each.data["prompt"]))
    state = guessing.start(task)
    low, high, replies = 1, 20, []
    while True:
        guess = (low + high) // 2
        step = guessing.step(state, str(guess))
        state = step.state
        if step.outcome is not Outcome.OPEN:
            break
        replies.append(state.observation)
        low, high = (guess + 1, high) if state.observation == "Higher." else (low, guess - 1)
    assert step.success
    assert step.info["rewards"] == {"solved": 1.0}
    assert set(replies) <= {"Higher.", "Lower."}
    state = guessing.start(task)
    for _ in range(5):
        step = guessing.step(state, "what?")
        assert (step.state.observation, step.outcome) == ("No number.", Outcome.OPEN)
        state = step.state
    last = guessing.step(state, "what?")
    assert (last.outcome, last.reward, last.success) == (Outcome.TRUNCATED, 0.0, False)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("Boxed", "tasks run in a container"),
        ("Graded", "whose reward graded needs a runtime"),
        ("Nothing", "has no function Nothing"),
    ],
)
def test_what_cannot_be_played_is_refused_with_the_reason(place: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Verifiers(taskset=f"{SETS}:{place}").tasks("train", 1, 0)


def test_bad_fields_are_named() -> None:
    with pytest.raises(ValueError, match="not-there"):
        Verifiers(taskset="not-there").tasks("train", 1, 0)
    with pytest.raises(ValueError, match="size"):
        Verifiers(taskset=SUMS, config='{"size": 3}').tasks("train", 1, 0)
    for fields in ({"config": "{"}, {"config": "[]"}, {"max_steps": 0}, {"deadline_s": 0}):
        with pytest.raises(ValueError, match=next(iter(fields))):
            Verifiers(taskset=SUMS, **fields)  # type: ignore[arg-type]


def test_a_reward_that_raises_is_a_fault() -> None:
    env = Verifiers(taskset=f"{SETS}:Rude")
    state = env.start(env.tasks("train", 1, 0)[0])
    with pytest.raises(EnvFault, match="no mark today"):
        env.step(state, "4")


REWARDS = """
import sys, time
import verifiers.v1 as vf

class Data(vf.TaskData):
    answer: str = "1"

def taskset(mark):
    class Marked(vf.Task[Data]):
        @vf.reward
        async def marked(self, trace: vf.Trace) -> float:
            return mark()

    class Set(vf.Taskset[Marked, vf.TasksetConfig]):
        def load(self):
            return [Marked(Data(prompt=f"task {place}"), self.config.task) for place in range(20)]

    return Set(vf.TasksetConfig())

def nan(): return taskset(lambda: float("nan"))
def infinite(): return taskset(lambda: float("inf"))
def word(): return taskset(lambda: "much")
def leaves(): return taskset(lambda: sys.exit(3))
def blocks(): return taskset(lambda: time.sleep(8) or 1.0)
def fine(): return taskset(lambda: 1.0)
"""


def test_a_reward_that_is_no_number_hangs_or_exits_is_a_fault_of_its_episode_alone(tmp_path: Path) -> None:
    file = tmp_path / "marks.py"
    file.write_text(REWARDS)

    def reward(name: str, deadline_s: float = 60.0) -> float:
        env = Verifiers(taskset=f"{file}:{name}", deadline_s=deadline_s)
        return env.step(env.start(env.tasks("train", 1, 0)[0]), "hello").reward

    for name, message in (
        ("nan", "got the reward nan of {'marked': nan}; need finite numbers"),
        ("infinite", "got the reward inf"),
        ("word", "could not convert string to float: 'much'"),
        ("leaves", "SystemExit"),
    ):
        with pytest.raises(EnvFault, match=message):
            reward(name)
    assert reward("fine") == 1.0
    with pytest.raises(EnvFault, match="gave no turn within 2 s; need a program that answers, or a larger deadline_s"):
        reward("blocks", deadline_s=2)
    assert reward("fine", deadline_s=4) == 1.0, "the blocked thread is replaced"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def (:", "SyntaxError"),
        ("def made():\n    raise KeyError('shelf')", "KeyError: 'shelf'.*line 2, in made"),
        ("def made():\n    return 3", "which makes a int; need a Taskset"),
        (f"{SET}        raise RuntimeError('disk full')", "whose tasks cannot be read: RuntimeError: disk full"),
        (f"{SET}        return [1, 2]", "whose tasks cannot be read: AttributeError.*need a `load` that returns tasks"),
        (f"{SET}        return []", "which has no tasks"),
    ],
)
def test_a_file_without_a_taskset_is_named(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(ValueError, match=rf"Verifiers.taskset: got '.*mine.py:made'.*{message}"):
        Verifiers(taskset=f"{tmp_path}/mine.py:made").tasks("train", 1, 0)


def test_an_environment_of_the_first_protocol_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "older_env.py").write_text("def load_environment():\n    return 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match=r"got 'older-env', which has `load_environment`.*need a taskset of"):
        Verifiers(taskset="older-env").tasks("train", 1, 0)


def test_arguments_of_another_type_are_named() -> None:
    with pytest.raises(ValueError, match=r"verifiers_env.taskset: got 3; need the id of an installed taskset"):
        verifiers_env(3)
    with pytest.raises(ValueError, match=r"verifiers_env.config: got .*; need values of JSON"):
        verifiers_env(SUMS, config={"count": {1}})
    with pytest.raises(ValueError, match=r"Verifiers.program: got 'nowhere' for .*need the id of an installed"):
        Verifiers(taskset=SUMS, program="nowhere").tasks("train", 1, 0)


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "x" * 100_000, "<tool_call>{}</tool_call>"])
def test_garbage_is_a_reply(text: str) -> None:
    env = verifiers_env(SUMS)
    step = env.step(env.start(env.tasks("train", 1, 0)[0]), text)
    assert (step.outcome, step.success, step.valid) == (Outcome.TERMINATED, False, bool(text.strip()))


@pytest.mark.parametrize("place", ["Sums", "Safes"])
def test_tasksets_pass_every_check(place: str) -> None:
    env = verifiers_env(f"{SETS}:{place}", max_steps=8)
    assert pickle.loads(pickle.dumps(env)) == env
    report = check_env(env, sizes=CheckSizes(tasks=3, walks=3, steps=6, episodes=12, processes=1, seconds=3))
    assert report.passed, report.failures


def test_workers_play_it() -> None:
    import asyncio

    async def run() -> float:
        host = Workers(env=verifiers_env(SUMS), count=1)
        try:
            (task,) = await host.tasks("train", 1, 0)
            number = int(str(task.data["prompt"]).split()[2])
            return (await host.step(await host.start(task), str(3 * number))).reward
        finally:
            await host.close()

    assert asyncio.run(run()) == 1.0
