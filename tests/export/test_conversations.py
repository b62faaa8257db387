"""Paths as conversations in OpenAI's form, with calls and results, and back to trees."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bough
from bough.cli.app import app
from bough.config import ConfigError
from bough.context import Full, Plain, ToolCalls
from bough.export import export, read_message_log
from bough.policy import Tiny
from bough.rewrite.message_trees import message_trees
from bough.rollout import PolicyFormat
from bough.store import RunDirectory, StoreError, read_conversations, read_trees, write_trees
from bough.tree import (
    Credited,
    Kind,
    Outcome,
    Source,
    Ternary,
    ToolCall,
    Tree,
    calls_in,
    counted,
    leaves,
    messages_in,
    tool_record,
)

FEW = ["steps=1", "batch_tasks=4", "explorer.n=3", "evaluation.tasks.count=2", "limits.turns=5", "filters=[]"]
WARM = ["warmup.demonstrations=256", "warmup.epochs=5", "warmup.learning_rate=1e-2", "warmup.batch_tokens=1024"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("runs")
    return RunDirectory.open(bough.train("grpo", [*FEW, *WARM], on="ledger", out=folder, name="led").directory)


def trees(run: RunDirectory) -> list[Tree]:
    return [each.tree for file in sorted(run.trees.glob("*.safetensors")) for each in read_trees(file, Credited)]


def write(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_path_is_a_conversation_with_calls_and_results(run: RunDirectory) -> None:
    rows = export(run.path, what="conversations").rows
    grown = trees(run)
    assert len(rows) == sum(len(counted(tree)) for tree in grown) == 12
    assert [row["task"] for row in rows] == [tree.task.id for tree in grown for _ in counted(tree)]
    known = [Ternary(tree.success[leaf]) is Ternary.YES for tree in grown for leaf in counted(tree)]
    assert [row["success"] for row in rows] == known
    called = [row for row in rows if any("tool_calls" in message for message in row["messages"])]
    assert called
    for row in called:
        assert [tool["function"]["name"] for tool in row["tools"]] == ["get", "pay"]
        assert [message["role"] for message in row["messages"][:2]] == ["system", "user"]
        ids = [call["id"] for message in row["messages"] for call in message.get("tool_calls", ())]
        assert len(set(ids)) == len(ids)
        answered = [message["tool_call_id"] for message in row["messages"] if message["role"] == "tool"]
        assert set(ids) >= {each for each in answered if each}
        arguments = [call["function"]["arguments"] for m in row["messages"] for call in m.get("tool_calls", ())]
        assert all(isinstance(json.loads(each), dict) for each in arguments)


REWARD = """
from dataclasses import dataclass
import numpy as np
from bough.tree import calls_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    def __call__(self, group):
        return [{"calls": np.array([float(bool(calls_in(info))) for info in tree.info])} for tree in group]
"""


def test_examples_with_calls_are_messages_and_their_text(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(REWARD)
    bare = tmp_path / "bare.safetensors"
    write_trees(bare, trees(run))
    changes = [f"rewards=[{tmp_path / 'calls.py'}:Calls]"]
    texts = export(run.path, changes, what="examples", trees=bare)
    found = export(run.path, changes, what="examples", trees=bare, messages=True)
    assert len(found.rows) == len(texts.rows) > 0
    called = [place for place, row in enumerate(found.rows) if "tool_calls" in row["completion"][-1]]
    assert called
    assert any(row["role"] == "tool" for place in called for row in found.rows[place]["prompt"])
    for place in called:
        assert [tool["function"]["name"] for tool in found.rows[place]["tools"]] == ["get", "pay"]
        for call in found.rows[place]["completion"][-1]["tool_calls"]:
            assert f"{call['function']['name']}(" in texts.rows[place]["completion"]


def test_conversations_come_back_with_the_same_messages_and_tokens(run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "chats.jsonl"
    rows = export(run.path, what="conversations", out=out).rows
    back = read_message_log(run.path, out)
    again = export(run.path, what="conversations", trees=out).rows

    def well_formed(given: Sequence[dict[str, Any]]) -> list[str]:
        """The rows without the problem of a malformed call, which is the user's second message."""
        good = [row for row in given if sum(message["role"] == "user" for message in row["messages"]) == 1]
        return sorted(json.dumps(row, sort_keys=True) for row in good)

    assert len(again) == len(rows)
    assert well_formed(again) == well_formed(rows)
    assert any("tool_calls" in row for row in well_formed(rows))
    renderer = Tiny(layers=2, width=64, heads=4, context_tokens=1024).renderer(run.policy)
    before, after = {t.task.id: t for t in trees(run)}, {t.task.id: t for t in back}
    assert before.keys() == after.keys()
    canonical = 0
    for task, tree in before.items():
        for leaf in counted(tree):
            actions = [node for node in _path(tree, leaf) if tree.kind[node] == Kind.ACTION]
            formed = all(tree.well_formed[node] == Ternary.YES for node in actions)
            same = formed and all(_canonical(renderer, tree, node) for node in actions)
            same &= bool(tree.outcome[leaf] != Outcome.TRUNCATED)
            if same:
                canonical += 1
                assert _tokens(tree, leaf) in [_tokens(after[task], each) for each in leaves(after[task])]
    assert canonical >= 3


def _path(tree: Tree, node: int) -> list[int]:
    return [*_path(tree, int(tree.parent[node])), node] if node >= 0 else []


def _canonical(renderer: object, tree: Tree, node: int) -> bool:
    """Whether an action has the tokens that the renderer writes for it."""
    tokens = tuple(tree.tokens_of(node).tolist())
    action = renderer.parse(tokens)  # type: ignore[attr-defined]
    return tokens == renderer.write(action if action.calls else action.text)  # type: ignore[attr-defined]


def _tokens(tree: Tree, leaf: int) -> list[int]:
    return [int(token) for node in _path(tree, leaf) for token in tree.tokens_of(node)]


ASK = {"role": "user", "content": "2 + 3?"}
ADD = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
CALLED = {"role": "assistant", "content": "Sum.", "tool_calls": [ADD]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "5"}
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}


def says(text: str, **fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": text, **fields}


def read(rows: Sequence[object], path: Path, room: int | None = None) -> list[Tree]:
    renderer = Tiny(layers=1, width=32, heads=2, vocab_tokens=300).build(["add 2 3 5"]).renderer
    policy_format = PolicyFormat(renderer=renderer, context=Full(), parser=ToolCalls(), max_tokens=room)
    return list(message_trees(read_conversations(write(path, rows)), policy_format).trees)


def test_rows_of_one_task_share_prefixes_and_branch(tmp_path: Path) -> None:
    rows = [
        {"messages": [ASK, CALLED, RESULT, says("5")], "tools": [TOOL], "reward": 1, "success": True},
        {"messages": [ASK, CALLED, RESULT, says("6")], "tools": [TOOL], "reward": 0.25, "success": False},
        {"messages": [ASK, CALLED, RESULT, says("5")], "tools": [TOOL], "success": True},
        {"messages": [ASK, CALLED, RESULT], "tools": [TOOL]},
        {"messages": [ASK, says("five")], "tools": [TOOL]},
        {"messages": [ASK, says("five")]},
        {"messages": [{"role": "system", "content": "Brief."}, ASK, says("5")], "task": "other"},
    ]
    grown = read(rows, tmp_path / "log.jsonl")
    assert [len(leaves(tree)) for tree in grown] == [5, 1, 1]
    tree = grown[0]
    called = [node for node in range(tree.nodes) if calls_in(tree.info[node])]
    assert len(called) == 2, "shared by three rows; the last action of a row is its own"
    shared = max(called, key=lambda node: int((tree.parent == node + 1).sum()))
    assert int((tree.parent == shared + 1).sum()) == 3
    assert [each.call_id for each in messages_in(tree.info[shared + 1])] == ["c1"]
    ends = leaves(tree)
    assert sorted(Ternary(each).name for each in tree.success[ends]) == ["NO", "UNKNOWN", "UNKNOWN", "YES", "YES"]
    assert sorted(tree.env_reward[tree.env_reward > 0].tolist()) == [0.25, 1.0, 1.0]
    assert (tree.source[tree.kind == Kind.ACTION] == Source.TEACHER).all()
    assert np.isnan(tree.logprob).all()
    assert (tree.outcome[ends] == Outcome.TERMINATED).all()
    assert grown[2].task.id == "other"
    assert grown[2].info[0]["instructions"] == "Brief."


def test_messages_of_weight_0_and_prompts_are_no_examples(tmp_path: Path) -> None:
    weighted = {"messages": [ASK, says("4", weight=0), {"role": "user", "content": "no"}, says("5", weight=1)]}
    prompted = {"prompt": [ASK, says("4"), {"role": "user", "content": "No!"}], "completion": [says("5")]}
    for tree in read([weighted, prompted], tmp_path / "log.jsonl"):
        for leaf in leaves(tree):
            sources = [tree.source[node] for node in _path(tree, leaf) if tree.kind[node] == Kind.ACTION]
            assert sources == [Source.FORCED, Source.TEACHER]


def test_long_conversations_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"messages": [ASK, says("5 " * 200)]}, {"messages": [ASK, says("5")]}])
    renderer = Tiny(layers=1, width=32, heads=2, vocab_tokens=300).build(["2 3 5"]).renderer
    found = message_trees(
        read_conversations(path), PolicyFormat(renderer=renderer, context=Full(), parser=Plain(), max_tokens=60)
    )
    assert (len(found.trees), found.too_long) == (1, 1)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", "line 1: "),
        ({"messages": []}, "line 1: got no message of the assistant"),
        ({"messages": [says("x")]}, "got a message of the assistant first"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "got the role 'robot'; need system, developer"),
        ({"messages": [ASK, {**CALLED, "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]}, "no JSON"),
        ({"messages": [ASK, {**CALLED, "tool_calls": [{"function": {}}]}]}, "call without the name"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}, says("x")]}, "or parts of type 'text'"),
        ({"messages": [ASK, says("x")], "success": "yes"}, "need a number, and true or false"),
        ({"messages": [ASK, says("x")], "reward": math.nan}, "NaN is no number"),
        ({"messages": [ASK, says("x")], "reward": 10**400}, "need at most 1e+15"),
        *[
            ({"messages": [ASK, says("", tool_calls=[{"function": {"name": "f", "arguments": arguments}}])]}, words)
            for arguments, words in (
                (r'{"a": "\ud83d"}', "messages[1]: half of a surrogate pair"),
                ('{"a": 1e999}', "messages[1]: no JSON: Infinity is no number"),
                ('{"a": ' + "[" * 200 + "]" * 200 + "}", "messages[1]: JSON of more than 100 levels"),
                ('{"a": ' + "[" * 50_000, "messages[1]: got arguments that are nested too deeply"),
            )
        ],
        ({"messages": [ASK, says("x")], "functions": [TOOL["function"]]}, "got 'functions', OpenAI's older form"),
        ({"messages": [ASK, says("x", weight=0.5)]}, "messages[1]: got weight=0.5; need 0 or 1"),
        ({"messages": [ASK, says("x", weight="0")]}, "messages[1]: got weight='0'; need 0 or 1"),
        ({"messages": [ASK, says("x", reasoning_content="why")]}, "messages[1]: got the field 'reasoning_content'"),
        ({"messages": [ASK, says("x", reasoning="why")]}, "messages[1]: got the field 'reasoning' in a message of the"),
        (
            {"messages": [ASK, says("x", thinking_blocks=[{"text": "y"}])]},
            "messages[1]: got the field 'thinking_blocks'",
        ),
        ({"messages": [ASK, {"role": "assistant", "refusal": "no"}]}, "messages[1]: got the field 'refusal'"),
        ({"messages": [ASK, says("x", audio={"id": "a"})]}, "messages[1]: got the field 'audio'"),
        ({"messages": [ASK, says("x", annotations=[{"url": "u"}])]}, "messages[1]: got the field 'annotations'"),
        (
            {"messages": [{**ASK, "name": "Ann"}, says("x")]},
            "messages[0]: got the field 'name' in a message of the user",
        ),
        (
            {"messages": [ASK, {"role": "assistant", "content": None, "function_call": {"name": "f"}}]},
            "got the field 'function_call'",
        ),
        ({"messages": [ASK, {"role": "function", "name": "f", "content": "5"}, says("x")]}, "got the role 'function'"),
        ({"messages": [ASK, {"role": "assistant", "text": "x"}]}, "messages[1]: got the field 'text'"),
        ({"messages": [ASK, {"role": "assistant"}]}, "messages[1]: got a message of the assistant without content"),
        (
            {"messages": [ASK, {"role": "assistant", "content": None, "tool_calls": []}]},
            "without content; need text, or",
        ),
        (
            {"messages": [{"role": "user", "content": None}, says("x")]},
            "messages[0]: got a message of the user without",
        ),
        ({"messages": [ASK, {"role": "assistant", "content": False}]}, "messages[1]: got 'False' as content"),
        ({"messages": [ASK, {"role": "assistant", "content": 0}]}, "messages[1]: got '0' as content"),
        ({"messages": [ASK, {"role": "assistant", "content": {}}]}, "messages[1]: got '{}' as content"),
        ({"messages": [ASK, says("", tool_calls=False)]}, "messages[1]: got tool_calls=False; need a list"),
        ({"messages": [{**ASK, "tool_calls": [ADD]}, says("x")]}, "messages[0]: got calls in a message of the user"),
        ({"messages": [ASK, "x"]}, "messages[1]: got 'x'; need an object with role and content"),
        (
            {"messages": [ASK, says("", tool_calls=[{"function": {"name": "f", "arguments": "null"}}])]},
            "got arguments of f that are no JSON object",
        ),
        ({"messages": [ASK, CALLED, {**RESULT, "tool_call_id": "c2"}, says("5")]}, "got a result of the call 'c2'"),
        ({"messages": [ASK, CALLED, says("5")]}, "messages[1]: got no result of the call"),
        ({"rows": 1}, "got no message of the assistant"),
        ([1], "no object"),
    ],
)
def test_wrong_rows_have_a_line_and_a_reason(row: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(row if isinstance(row, str) else json.dumps(row))
    with pytest.raises(ValueError, match=r"log.jsonl, line 1: .*; need a row such as") as caught:
        read_conversations(path)
    assert words in str(caught.value)


def test_empty_fields_names_of_tools_and_parts_of_text_are_fine(tmp_path: Path) -> None:
    empty = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": ""}
    bare = {**CALLED, "content": None, "tool_calls": [{"id": 0, "function": {"name": "f", "arguments": None}}]}
    parts = [{"type": "text", "text": "2 +"}, {"type": "text", "text": "3?"}]
    result = {**RESULT, "tool_call_id": 0, "name": "f"}
    rows = [{"task": 0, "messages": [{"role": "user", "content": parts}, bare | empty, result, says("") | empty]}]
    (found,) = read_conversations(write(tmp_path / "log.jsonl", rows))
    asked, called, answered, said = found.messages
    assert (asked.content, found.task) == ("2 +\n3?", "0")
    assert called.tool_calls == (ToolCall(name="f", arguments={}, call_id="0"),)
    assert (answered.call_id, said.content) == ("0", "")


def test_results_are_matched_by_the_ids_of_their_calls(tmp_path: Path) -> None:
    def rows(*order: int) -> list[object]:
        called = [{**ADD, "id": f"c{number}"} for number in range(2)]
        results = [{"role": "tool", "tool_call_id": f"c{number}", "content": str(number)} for number in order]
        return [{"messages": [ASK, {**CALLED, "tool_calls": called}, *results, says("5")], "tools": [TOOL]}]

    one, other = (read(rows(*order), tmp_path / "log.jsonl")[0] for order in ((0, 1), (1, 0)))
    assert one.token.tolist() == other.token.tolist()


def test_what_does_not_fit_the_policy(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got two messages of the assistant in a row"):
        read([{"messages": [ASK, says("a"), says("b")]}], tmp_path / "log.jsonl")
    renderer = Tiny(layers=1, width=32, heads=2, vocab_tokens=300).build(["2 3 5"]).renderer
    found = read_conversations(write(tmp_path / "log.jsonl", [{"messages": [ASK, CALLED]}]))
    with pytest.raises(ValueError, match=r"got calls of tools and parser=Plain, which takes none; need parser=ToolC"):
        message_trees(found, PolicyFormat(renderer=renderer, context=Full(), parser=Plain()))


def oracle_log(run: RunDirectory, path: Path) -> Path:
    """The conversations of a rule that solves tasks of the world, written as a log."""
    env = run.path and bough.load(run.path).run.world.env
    rows = []
    for task in env.tasks("train", 40, 1):
        state, messages = env.start(task), []
        messages += [{"role": "system", "content": env.instructions}, {"role": "user", "content": task.data["prompt"]}]
        plan = env.plan(state)
        assert plan is not None
        for action in plan:
            calls = [
                {"type": "function", "function": {"name": c.name, "arguments": json.dumps(dict(c.arguments))}}
                for c in action.calls
            ]
            messages.append(says(action.text, **({"tool_calls": calls} if calls else {})))
            state = env.step(state, action).state
            messages += [{"role": "tool", "content": each.content} for each in state.observation or ()]
        rows.append({"messages": messages, "tools": [*map(tool_record, state.tools)], "task": task.id, "success": True})
    return write(path, [*rows, {**rows[0], "success": False}])


@pytest.mark.parametrize("field", ["warmup.file", "demonstrations.file"])
def test_a_log_is_imitated(field: str, run: RunDirectory, tmp_path: Path) -> None:
    log = oracle_log(run, tmp_path / "log.jsonl")
    changes = [f"{field}={log}", "warmup.demonstrations=0", "warmup.epochs=3", "warmup.learning_rate=1e-2"]
    changes += [
        "warmup.batch_tokens=1024",
        "limits.turns=2",
        "steps=1",
        "batch_tasks=2",
        "explorer.n=2",
        "filters=[]",
        "evaluation.tasks.count=2",
    ]
    method = "sft_mix" if field == "demonstrations.file" else "grpo"
    result = bough.train(method, changes, on="ledger", out=tmp_path, name="imitates")
    if field == "warmup.file":
        losses = [row["loss/total"] for row in result.metrics if row.get("phase") == "warmup"]
        assert len(losses) == 3
        assert losses[-1] < losses[0] / 2
    else:
        (learned,) = [row for row in result.metrics if row.get("phase") != "warmup" and "loss/total" in row]
        assert 0 < learned["policy/expert_nll"] < 20


def test_the_commands(run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "chats.jsonl"
    ran = CliRunner().invoke(app, ["export", str(run.path), "--out", str(out), "--what", "conversations"])
    assert ran.output.splitlines()[-1] == f"conversations: 12 in {out}"
    with pytest.raises(StoreError, match="got no files of trees"):
        export(run.path, what="conversations", trees=tmp_path / "none")
    with pytest.raises(ConfigError, match="did you mean 'conversations'"):
        export(run.path, what="conversation")
    for change in ("warmup.file=none.jsonl", f"warmup.file={run.config}"):
        with pytest.raises(ConfigError, match=r"warmup.file: cannot read"):
            bough.train("grpo", [change, *FEW], on="ledger", out=tmp_path, name="wrong")
