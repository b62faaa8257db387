"""Whole runs, small: every recipe, contexts with edits, a reference, models that someone trained."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tests.policy import folders
from tests.small import run as small
from transformers import AutoModelForCausalLM, AutoTokenizer

from bough.context import Window
from bough.explore import Chains
from bough.objective import Kl, PpoClip, Sum
from bough.policy import Lora, Pretrained
from bough.store import Checkpoints, RunDirectory, read_metrics, read_trees
from bough.train import Run, Warmup, read_heldout, resume, start
from bough.tree import Credited, Kind


def columns(directory: RunDirectory, name: str) -> list[float]:
    return [float(row[name]) for row in read_metrics(directory.metrics) if name in row]


def test_what_a_run_leaves_behind(tmp_path: Path) -> None:
    run = small()
    directory = start(run, tmp_path, terminal=False)
    rows = read_metrics(directory.metrics)
    assert [row["step"] for row in rows] == list(range(1, 25))
    assert {"train/success", "reward/mean", "policy/entropy", "groups/dropped", "time/grow_s"} <= rows[-1].keys()
    assert sorted(read_heldout(directory)) == [20, 22, 24]
    assert all(len(result) == 6 for result in read_heldout(directory).values())
    losses = columns(directory, "loss/total")[:20]
    assert losses[-1] < 0.5 * losses[0], "the warm-up has learned"
    rates = columns(directory, "optimizer/learning_rate")[:20]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.1 * rates[0], "falls to zero"
    manifest = json.loads(directory.manifest.read_text())
    assert manifest["bough"]
    trees = read_trees(directory.trees_of(24), Credited)
    assert len(trees) == 3
    assert "24" in directory.report.read_text()
    assert sum(row.get("heldout/success", -1) >= 0 for row in rows) == 3  # type: ignore[operator]


@pytest.mark.parametrize("turns", [1, 2])
def test_a_run_with_a_window(turns: int, tmp_path: Path) -> None:
    warmup = replace(small().world.warmup, epochs=8)
    run = small().replace(context=Window(turns=turns), warmup=warmup, steps=2)
    directory = start(run, tmp_path, terminal=False)
    trees = read_trees(directory.trees_of(10), Credited)
    assert sum(int((one.tree.kind == Kind.EDIT).sum()) for one in trees) > 0
    assert max(columns(directory, "policy/gap")) < 1e-4


class Interrupted(BaseException):
    """A run that is stopped from outside."""


def test_a_run_with_a_reference_resumes_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = Sum(terms=(PpoClip(), Kl(coefficient=0.5)))
    run = small().replace(objective=objective, steps=6)
    whole = start(run.replace(name="whole"), tmp_path, terminal=False)
    divergence = columns(whole, "policy/kl_reference")
    assert 0 < divergence[0] < divergence[-1], "the policy leaves its reference"

    from bough.train import recorder

    save = recorder.RunRecorder.save

    def stop(self: recorder.RunRecorder, learner: object, progress: recorder.TrainState, *others: object) -> None:
        save(self, learner, progress, *others)  # type: ignore[arg-type]
        if progress.step == 23:
            raise Interrupted

    with monkeypatch.context() as patched:
        patched.setattr(recorder.RunRecorder, "save", stop)
        with pytest.raises(Interrupted):
            start(run.replace(name="stopped"), tmp_path, terminal=False)
    stopped = resume(tmp_path / "stopped", terminal=False)
    assert columns(stopped, "policy/kl_reference") == divergence
    one, other = (load_file(each.final / "model.safetensors") for each in (whole, stopped))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    kept = Checkpoints(directory=stopped.checkpoints).latest().checkpoint
    assert kept is not None
    assert kept.tensors("reference").keys() == kept.tensors("policy").keys()


def with_model(path: Path, lora: Lora | None) -> Run:
    """Two steps, and a demonstration so that they have something to learn."""
    return small().replace(
        policy=Pretrained(path=str(path), lora=lora, device="cpu"),
        warmup=Warmup(demonstrations=2, epochs=1, learning_rate=1e-2),
        explorer=Chains(n=2),
        steps=2,
        context=Window(turns=1),
    )


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("lora", [None, Lora(rank=2)], ids=["full", "lora"])
def test_a_pretrained_model(family: str, lora: Lora | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = folders.LLAMA3 if family == "llama" else folders.THINKING
    path = folders.folder(tmp_path / "model", family, template)
    directory = start(with_model(path, lora), tmp_path, terminal=False)
    checkpoint = Checkpoints(directory=directory.checkpoints).latest().checkpoint
    assert checkpoint is not None
    kept = checkpoint.tensors("policy")
    assert all(".lora_" in name for name in kept) == (lora is not None)
    assert any(".lora_" in name for name in kept) == (lora is not None)
    before = AutoModelForCausalLM.from_pretrained(path).state_dict()
    after = AutoModelForCausalLM.from_pretrained(directory.final).state_dict()
    assert before.keys() == after.keys()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert any("q_proj" in name for name in moved)
    assert any("embed" in name for name in moved) == (lora is None)
    tokenizer = AutoTokenizer.from_pretrained(directory.final)
    assert tokenizer.chat_template == template
    assert "by plain text" not in capsys.readouterr().out
    # What was trained can be trained again, also with a template whose marks the tokenizer lacks.
    (directory.final / "chat_template.jinja").write_text(folders.ZEPHYR)
    again = with_model(directory.final, lora).replace(name="again", steps=1)
    start(again, tmp_path, terminal=False)
    assert "marks messages by plain text (<|user|>, <|assistant|>)" in capsys.readouterr().out
