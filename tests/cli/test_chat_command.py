"""`bough chat`, with the lines of a person from a list or a pipe."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.evaluate.chat_server import KEY, chat_server, keep_accounts
from tests.forks import command
from tests.small import run as small
from tests.talk import Bough

import bough as library
from bough.cli.chat import chat_in_environment
from bough.cli.episode_chat import written_action
from bough.config import ConfigError
from bough.engine import OpenAi
from bough.reward import EnvReward, reward_trees
from bough.store import RunDirectory, StoreError, read_trees
from bough.train import start
from bough.tree import (
    Action,
    BadCall,
    Kind,
    Outcome,
    Rewarded,
    Source,
    ToolCall,
    Tree,
    counted,
    leaves,
    messages_in,
    path_view,
)
from bough.usercode import load_module


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return start(small(), tmp_path_factory.mktemp("runs"), terminal=False)


def lines(*given: str) -> Callable[[str], str]:
    rest = iter(given)

    def read(prompt: str) -> str:
        del prompt
        for line in rest:
            return line
        raise EOFError

    return read


def rewarded(trees: Sequence[Tree]) -> list[Rewarded]:
    return reward_trees(trees, [EnvReward()])


def test_turns_that_nobody_steers_are_those_of_an_evaluation(trained: RunDirectory) -> None:
    evaluated = library.evaluate(trained.path).score.trees[3]
    (tree,) = library.chat(trained.path, task=3, read=lines(*[""] * 9))
    assert tree.task == evaluated.task
    assert tree.info == evaluated.info
    assert tree.token.tolist() == evaluated.token.tolist()
    assert tree.logprob == pytest.approx(evaluated.logprob, abs=1e-4, nan_ok=True)
    (other,) = library.chat(trained.path, task=3, seed=5, read=lines(*[""] * 9))
    assert other.task == tree.task
    assert other.info != tree.info
    (train,) = library.chat(trained.path, split="train", read=lines("", "/quit", ""))
    assert train.task.id != tree.task.id


def test_a_person_acts_undoes_and_speaks(
    trained: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "chat.safetensors"
    given = ("left", "/undo", "", "/undo", "user: to the right!", "right", "/what", "/new", "up")
    first, second = library.chat(trained.path, out=out, read=lines(*given))
    assert [each.equals(one) for each, one in zip(read_trees(out, Tree), (first, second), strict=True)] == [True, True]
    children = np.flatnonzero(first.parent == 0)
    assert [Kind(first.kind[node]) for node in children] == [Kind.ACTION, Kind.ACTION, Kind.EDIT]
    told = int(children[2])
    assert [each.content for each in messages_in(first.info[told])][-1] == "to the right!"
    below = int(np.flatnonzero(first.parent == told)[0])
    assert (first.info[below]["text"], first.source[below]) == ("right", Source.TEACHER)
    texts = {str(first.info[node].get("text")): Source(first.source[node]) for node in children[:2]}
    assert texts["left"] is Source.TEACHER
    assert sum(source is Source.SAMPLED for source in texts.values()) == 1
    assert len(counted(first)) == 3
    view = path_view(rewarded([first, second]))
    assert len(view.leaf) == 4
    shown = capsys.readouterr().out
    for part in (
        "system: ",
        "you: left\n",
        "agent: ",
        "  turn 1",
        "user: to the right!",
        "Enter            the agent",
        "task 1 of 6",
    ):
        assert part in shown


def test_an_episode_ends_and_goes_on_after_an_undo(trained: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    (tree,) = library.chat(
        trained.path,
        read=lines("left", "left", "left", "left", "left", "/undo", "up", "/undo", "/undo", "/undo", "/undo", "/undo"),
    )
    ends = leaves(tree)
    assert [Outcome(tree.outcome[end]) for end in ends] == [Outcome.TRUNCATED, Outcome.TRUNCATED]
    shown = capsys.readouterr().out
    assert shown.count("not solved (truncated, limit: turns") == 2
    assert "the episode is over: /undo, /new or /quit" in shown
    assert shown.count("there is nothing to undo") == 1


def test_calls_are_written_by_hand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LEDGER_KEY", KEY)
    with chat_server(keep_accounts) as (url, bodies):
        policy = OpenAi(model="rule", base_url=url, key_env="LEDGER_KEY")
        changes = ["env.max_calls=12", "env.max_errors=none", "limits.turns=9"]
        typed = ('get(name="zoe")', "get(zoe)", "give(n=1)", "user: hurry", *[""] * 6)
        (tree,) = library.chat(None, changes, on="ledger", policy=policy, read=lines(*typed))
    shown = capsys.readouterr().out
    assert "tool: pay(name: string, n: integer)  Pay n into an account.\n" in shown
    assert "got a call of 'give'; need one of" in shown, "it is no final answer"
    assert 'you calls: get(name="zoe")\n' in shown
    assert "result: error: no account zoe\nuser: hurry\n" in shown
    assert "need [NAME(ARGUMENT=" in shown, "a malformed call is not executed"
    assert "agent: I look up.\nagent calls: get(name=" in shown
    assert "agent: done\n  turn " in shown
    assert bodies[0]["messages"][-1] == {"role": "user", "content": "hurry"}
    assert tree.nodes > 6


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("get(name='a', n=[1])", Action(calls=(ToolCall(name="get", arguments={"name": "a", "n": [1]}),))),
        ('get({"name": "a"})', Action(calls=(ToolCall(name="get", arguments={"name": "a"}),))),
        ("get()", Action(calls=(ToolCall(name="get", arguments={}),))),
        ("got it (name='a')", Action(text="got it (name='a')")),
        ("get it", Action(text="get it")),
    ],
)
def test_what_a_person_writes(text: str, action: Action) -> None:
    assert written_action(text, ["get"]) == action


@pytest.mark.parametrize("text", ["get({name})", "get('a')", "get(name=", "got(name='a')", 'got({"name": "a"})'])
def test_a_malformed_call_of_a_person(text: str) -> None:
    (call,) = written_action(text, ["get"]).calls
    assert isinstance(call, BadCall)


def test_a_model_alone(trained: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "talk.safetensors"
    given = ("hello", "and now?", "/undo", "or now?", "/new", "/help", "again")
    sampling = ["max_tokens=4", "temperature=0.5"]
    one, two = library.chat(trained.final, sampling, system="Be brief.", out=out, read=lines(*given))
    assert one.info[0]["instructions"] == "Be brief."
    assert one.info[0]["text"] == "hello"
    (first,) = np.flatnonzero(one.parent == 0)
    assert sorted(str(one.info[node]["text"]) for node in np.flatnonzero(one.parent == first)) == [
        "and now?",
        "or now?",
    ]
    assert Outcome.TERMINATED in one.outcome[leaves(one)]
    assert two.info[0]["text"] == "again"
    assert len(path_view(rewarded([one, two])).leaf) >= 2
    assert [each.task.id for each in read_trees(out, Tree)] == ["chat-0", "chat-1"]
    assert "agent: " in capsys.readouterr().out


def test_a_policy_without_a_target_is_the_model(trained: RunDirectory) -> None:
    (tree,) = library.chat(policy=str(trained.final), changes=["max_tokens=4"], read=lines("hello"))
    assert tree.info[0]["text"] == "hello"


def test_a_line_that_is_no_utf8(trained: RunDirectory) -> None:
    (tree,) = library.chat(trained.final, ["max_tokens=4"], read=lines("a\udcff"))
    assert tree.info[0]["text"] == "a?"


def test_a_file_that_has_no_trees_is_not_replaced(trained: RunDirectory, tmp_path: Path) -> None:
    taken = tmp_path / "model.safetensors"
    taken.write_bytes(b"weights")
    with pytest.raises(StoreError):
        library.chat(trained.final, out=taken, read=lines("hello"))
    assert taken.read_bytes() == b"weights"


def test_lines_from_a_pipe(trained: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "piped.safetensors"
    process = command("chat", trained.path, "evaluation.temperature=0", "--out", out, speaks=True)
    process.say("left\n\n", last=True)
    said = process.wait()
    assert "> left\nyou: left\n" in said.fine()
    assert said.out.endswith(f"trees: {out}\n")
    assert not said.err
    assert len(read_trees(out)) == 1


def test_ctrl_c_keeps_what_happened(trained: RunDirectory, tmp_path: Path) -> None:
    with command("chat", trained.path, "--out", tmp_path / "kept.safetensors", speaks=True) as waiting:
        waiting.say("left\n")
        while "turn 1" not in waiting.line():
            pass
        waiting.send(signal.SIGINT)
        said = waiting.wait()
    assert said.status == 130
    assert "Traceback" not in said.err
    assert len(read_trees(tmp_path / "kept.safetensors")) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("{run}", "--task", "6"), 2, "--task 6: need 0 to 5"),
        (("{run}", "--system", "x"), 2, "got an environment, which has instructions of its own"),
        (("{run}", "--out", "x.json"), 2, "need a name that ends in .safetensors"),
        (("{run}/final", "--task", "1"), 2, "with --task, --split or --step; need a run"),
        (
            ("nowhere",),
            2,
            "got 'nowhere', which is no folder and no file; need a run directory, a folder or GGUF file of a model",
        ),
        ((), 2, "got no target, or a model and a policy"),
        (
            ("--policy", "nowhere"),
            2,
            "got 'nowhere', which is no folder and no file; need a run directory, a folder or GGUF",
        ),
        (("--policy", "OpenAi(model=m, base_url='http://127.0.0.1:9')"), 1, "check that the server runs there"),
    ],
)
def test_wrong_commands(
    bough: Bough, trained: RunDirectory, tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    told = [each.format(run=trained.path) for each in arguments]
    assert words in bough("chat", *told, folder=tmp_path).error(status)


def test_a_run_of_an_agent_program_is_refused() -> None:
    program = load_module(Path(__file__).parents[2] / "examples" / "program.py").run()
    with pytest.raises(ConfigError, match="got a run whose episodes an agent program plays; need an environment"):
        chat_in_environment(program)
