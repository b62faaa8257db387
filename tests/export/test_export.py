"""Trees as data for others: what is written is what the loss would learn."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.small import run as small
from tests.trees import in_pieces
from typer.testing import CliRunner

from bough.cli.app import app
from bough.config import ConfigError
from bough.context import Window, conversation
from bough.credit import Searched
from bough.explore.text_similarity import edit_distance
from bough.export import PairFilter, export
from bough.objective import mcts_dpo
from bough.policy import Pretrained, Tiny
from bough.rewrite import Revise
from bough.rollout import Limits
from bough.searches.mcts import mcts
from bough.store import RunDirectory, StoreError, read_metrics, read_trees, write_trees
from bough.train import Run, Warmup, start
from bough.tree import Credited, Ternary, path_view

PATHS = ["objective.pairs.unit=path", "objective.pairs.choice=best_worst"]


def searching() -> Run:
    return small().replace(
        explorer=mcts(width=3),
        limits=Limits(turns=4, tree_turns=24),
        warmup=Warmup(demonstrations=12, epochs=20, learning_rate=1e-2, batch_tokens=256),
        batch_tasks=8,
        steps=1,
        credit=Searched(),
        filters=(),
        objective=mcts_dpo(),
        optimizer=replace(small().world.optimizer, minibatches=1),
    )


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return start(searching().replace(name="full"), tmp_path_factory.mktemp("runs"), terminal=False)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    run = searching().replace(name="window", context=Window(turns=1))
    return start(run, tmp_path_factory.mktemp("runs"), terminal=False)


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_pairs_are_those_of_the_loss_and_are_read_back(full: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    found = export(full.path, out=out)
    learned = [row["policy/pairs"] for row in read_metrics(full.metrics) if "policy/pairs" in row]
    assert learned == [len(found.rows)]
    assert found.rows
    read = rows(out)
    assert read == list(found.rows)
    for row in read:
        assert set(row) == {"prompt", "chosen", "rejected", "task", "gap"}
        assert str(row["prompt"]).endswith("<|assistant|>")
        assert row["chosen"] != row["rejected"]
        assert str(row["chosen"]).count("<|") <= 1, "one answer and its end"
        assert float(str(row["gap"])) > 0


@pytest.mark.parametrize("changes", [[], PATHS])
def test_messages_make_the_text_again(full: RunDirectory, changes: Sequence[str]) -> None:
    texts = export(full.path, changes).rows
    chats = export(full.path, changes, messages=True).rows
    renderer = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512).renderer(full.policy)
    write = renderer._tokenizer.apply_chat_template
    assert len(texts) == len(chats) > 0
    for text, chat in zip(texts, chats, strict=True):
        prompt = write(chat["prompt"], tokenize=False, add_generation_prompt=True)
        assert prompt == text["prompt"]
        for side in ("chosen", "rejected"):
            whole = write([*chat["prompt"], *chat[side]], tokenize=False)
            # Within Tiny's tokens blanks are free: what counts is what stands there.
            assert (
                whole.removesuffix("<|end|>").split() == (text["prompt"] + text[side]).removesuffix("<|end|>").split()
            )
            assert chat[side][-1]["role"] == "assistant"


def test_sides_whose_context_is_rebuilt_are_left_out_and_turns_are_not(window: RunDirectory) -> None:
    reason = "its context is rebuilt on the path"
    paths = export(window.path, ["credit=Process()"], what="steps")
    assert paths.left_out[reason] > 0
    assert all(len(row["completions"]) == 1 for row in paths.rows)
    examples = export(window.path, ["credit=Process()"], what="examples", messages=True)
    assert reason not in examples.left_out
    assert {len(row["prompt"]) for row in examples.rows} == {2}, "the system's and the newest observation"


def test_examples_are_the_turns_of_good_paths_and_no_others(full: RunDirectory) -> None:
    found = export(full.path, ["credit=Filtered()"], what="examples")
    (file,) = full.trees.glob("*.safetensors")
    solved = {each.tree.task.id for each in read_trees(file, Credited) if np.any(each.tree.success == Ternary.YES)}
    assert {row["task"] for row in found.rows} == solved
    assert {row["weight"] for row in found.rows} == {1.0}
    best = export(full.path, ["credit=Filtered(answer=true)"], what="examples")
    assert len(best.rows) <= len(found.rows)


def test_values_and_steps(full: RunDirectory) -> None:
    values = export(full.path, ["credit=Searched(head=value)"], what="values").rows
    (file,) = full.trees.glob("*.safetensors")
    views = [path_view([each.rewarded]) for each in read_trees(file, Credited)]
    assert len(values) == sum(len(set(view.place.tolist())) for view in views), "each place once"
    assert all(-1 <= row["value"] <= 1 and row["head"] == "value" for row in values)
    paths = export(full.path, ["credit=Process(label=hard)"], what="steps").rows
    assert all(len(row["completions"]) == len(row["labels"]) == len(row["scores"]) for row in paths)
    assert all(row["labels"] == [score > 0 for score in row["scores"]] for row in paths)
    assert any(len(row["labels"]) > 1 for row in paths)


def test_revisions_say_what_is_learned(full: RunDirectory) -> None:
    found = export(full.path, what="revisions").rows
    assert found
    renderer = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512).renderer(full.policy)
    for row in found:
        assert set(row) == {"prompt", "completion", "task", "gap", "input_ids", "completion_mask"}
        assert renderer.verbatim(row["input_ids"]) == row["prompt"] + row["completion"]
        assert len(row["input_ids"]) == len(row["completion_mask"])
        learned = [token for token, kept in zip(row["input_ids"], row["completion_mask"], strict=True) if kept]
        said = renderer.verbatim(learned).split("<|end|>")
        assert said[0] == Revise().thought
        assert {word.strip() for word in said[1:-1]} <= {"left", "right", "up", "down"}
        assert len(said) > 2, "a thought and an action"
        assert row["gap"] > 0
    chats = export(full.path, what="revisions", messages=True).rows
    assert [set(chat) for chat in chats] == [{"prompt", "completion", "task", "gap"}] * len(found)
    write = renderer._tokenizer.apply_chat_template
    for text, chat in zip(found, chats, strict=True):
        prompt = write(chat["prompt"], tokenize=False, add_generation_prompt=True)
        assert prompt.split() == text["prompt"].split()
        assert chat["completion"][0] == {"role": "assistant", "content": Revise().thought}
        roles = [message["role"] for message in chat["completion"]]
        assert roles == ["assistant", "user"] * (len(roles) // 2) + ["assistant"]


def test_revisions_are_those_of_the_run(full: RunDirectory, window: RunDirectory) -> None:
    rule = "demonstrations.revise=Revise(thought=oh, blame=Process(label=hard), below=.5, reply=well)"
    found = export(full.path, [rule, "objective=Imitation()"], what="revisions").rows
    assert all(row["completion"].startswith("oh<|end|><|user|>well<|assistant|>") for row in found)
    with pytest.raises(
        ValueError,
        match=r"got no revisions \(\d+ left out: its context is rebuilt on the path\)",
    ):
        export(window.path, what="revisions")
    with pytest.raises(ConfigError, match=r"demonstrations\.revise"):
        export(full.path, ["demonstrations.revise=Revise(min_return=much)"], what="revisions")


def test_sides_that_are_too_much_alike_are_left_out(full: RunDirectory) -> None:
    def said(side: Sequence[dict[str, str]]) -> str:
        return "\n".join(message["content"] for message in side if message["role"] == "assistant")

    paths = ["objective.pairs.unit=path", "objective.pairs.choice=all"]
    whole = export(full.path, paths, messages=True).rows
    sides = [(said(row["chosen"]), said(row["rejected"])) for row in whole]
    far = [edit_distance(one, other) >= 6 for one, other in sides]
    others = [not set(one.split()) & set(other.split()) for one, other in sides]
    for apart, kept in ((PairFilter(edits=6), far), (PairFilter(overlap=0.0), others)):
        for messages in (False, True):
            found = export(full.path, paths, messages=messages, apart=apart)
            rows = export(full.path, paths, messages=messages).rows
            assert list(found.rows) == [row for row, stays in zip(rows, kept, strict=True) if stays]
            assert found.left_out["its sides are too similar"] == kept.count(False) > 0
    with pytest.raises(ConfigError, match=r"apart: got PairFilter\(edits=4, overlap=1\.0\) and steps; need pairs"):
        export(full.path, what="steps", apart=PairFilter(edits=4))


def test_trees_without_rewards_get_the_runs(full: RunDirectory, tmp_path: Path) -> None:
    (file,) = full.trees.glob("*.safetensors")
    write_trees(tmp_path / "bare.safetensors", [each.tree for each in read_trees(file, Credited)])
    assert export(full.path, trees=tmp_path).rows == export(full.path).rows
    assert export(full.path, trees=file).rows == export(full.path).rows


@pytest.mark.parametrize("messages", [False, True])
def test_actions_in_pieces_make_the_same_rows(full: RunDirectory, tmp_path: Path, messages: bool) -> None:
    (file,) = full.trees.glob("*.safetensors")
    rng, whole = np.random.default_rng(0), [each.rewarded for each in read_trees(file, Credited)]
    pieces = [in_pieces(each, rng) for each in whole]
    assert sum(each.tree.nodes for each in pieces) > sum(each.tree.nodes for each in whole)
    write_trees(tmp_path / "pieces.safetensors", [each.tree for each in pieces])
    for what, changes in (("pairs", []), ("pairs", PATHS), ("examples", ["credit=Filtered()"]), ("steps", [])):
        rows = export(full.path, changes, what=what, messages=messages).rows
        assert export(full.path, changes, trees=tmp_path, what=what, messages=messages).rows == rows, what


def test_what_cannot_be_is_said_and_nothing_is_written(full: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "kept.jsonl"
    out.write_text("before")
    for changes, what, error, message in (
        (["credit=Gae()"], "pairs", ConfigError, "credit=Gae fails: .*no estimate 'value'.*credit='Searched"),
        (["objective=PpoClip()"], "pairs", ConfigError, "objective=PpoClip: has no pairs"),
        ([], "values", ConfigError, "has no value targets"),
        (["objective.pairs.gap=9.0"], "pairs", ValueError, "got no pairs .*nothing is better by more than the gap"),
        ([], "pears", ConfigError, "unknown name 'pears'; did you mean 'pairs'"),
    ):
        with pytest.raises(error, match=message):
            export(full.path, changes, what=what, out=out)
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(
            StoreError, match=r"no files of trees; set checkpointing.trees_every .* or name other trees"
        ):
            export(full.path, trees=place, out=out)
    with pytest.raises(StoreError, match="need one that `bough train` made"):
        export(tmp_path / "nowhere", out=out)
    assert out.read_text() == "before"


def test_the_command(full: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "good.jsonl"
    asked = ["export", str(full.path), "--out", str(out), "--what", "examples", "--messages", "credit=Process()"]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    assert re.search(r"\d+ left out: turns without a positive advantage", said.output)
    assert said.output.endswith(f"examples: {len(rows(out))} in {out}\n")
    few = CliRunner().invoke(app, ["export", str(full.path), "--out", str(out), "--min-edit-distance", "99"])
    assert "1 left out: its sides are too similar" in few.output
    back = CliRunner().invoke(app, ["export", str(full.path), "--out", str(out), "--what", "revisions"])
    assert back.output.endswith(f"revisions: {len(rows(out))} in {out}\n")
    assert "objective='Dpo(pairs=Pairs(unit=turn))'" in CliRunner().invoke(app, ["export", "--help"]).output
    wrong = CliRunner().invoke(
        app, ["export", str(full.path), "--out", str(tmp_path / "none.jsonl"), "--what", "pears"]
    )
    assert wrong.exit_code == 2
    assert not (tmp_path / "none.jsonl").exists()


def test_a_tokenizer_is_all_that_is_needed(full: RunDirectory, tmp_path: Path) -> None:
    tiny = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512).renderer(full.policy)
    trained = Pretrained(path=str(full.final)).renderer(full.policy)
    tokens = tiny.render(conversation("go", (), "G _ P"))
    assert trained.render(conversation("go", (), "G _ P")) == tokens
    assert trained.verbatim(tokens) == tiny.verbatim(tokens) == "<|system|>go<|user|>G _ P<|assistant|>"
    with pytest.raises(ValueError, match="got no file; need the tokenizer that the run has trained"):
        Tiny().renderer(tmp_path)


def test_an_export_replaces_neither_the_runs_files_nor_its_input(full: RunDirectory, tmp_path: Path) -> None:
    config = full.config.read_bytes()
    with pytest.raises(StoreError, match="itself"):
        export(full.path, what="conversations", out=full.config)
    assert full.config.read_bytes() == config
    chats = tmp_path / "chats.jsonl"
    export(full.path, what="conversations", out=chats)
    with pytest.raises(ConfigError, match="which is exported; need another file"):
        export(full.path, what="conversations", trees=chats, out=chats)
