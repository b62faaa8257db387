"""A run of a model that runs path by path, from the command line."""

import json
from pathlib import Path

import torch
from tests.policy import folders
from tests.policy.architectures import config_of
from tests.talk import ONE_STEP, SMALL, Bough
from transformers import AutoModelForCausalLM


def test_a_model_with_convolutions_trains(bough: Bough, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = config_of("LFM2")
    config.max_position_embeddings = 1024
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "model")
    folders.tokenizer(folders.CHATML).save_pretrained(tmp_path / "model")
    policy = "policy=Pretrained(path=model,context_tokens=1024)"
    out = bough("train", f"{SMALL}:run", *ONE_STEP, "warmup.epochs=4", policy, "name=lfm", folder=tmp_path).fine()
    reason = "1 of its 2 layers mix tokens without attention that Bough computes"
    assert out.count(f"Lfm2ForCausalLM runs path by path, a shared prefix once for each path: {reason}\n") == 1
    steps = [json.loads(line) for line in (tmp_path / "runs" / "lfm" / "metrics.jsonl").read_text().splitlines()]
    updates = [each for each in steps if "loss/total" in each]
    assert all(each["update/saving"] == 1 for each in updates)
    assert updates[3]["loss/total"] < 0.7 * updates[0]["loss/total"]
    # The engine's and the learner's log-probabilities were compared after each.
    assert all(each["policy/canary_gap"] < 1e-4 for each in steps if "policy/canary_gap" in each)
    trained = AutoModelForCausalLM.from_pretrained(tmp_path / "runs" / "lfm" / "final")
    assert type(trained).__name__ == "Lfm2ForCausalLM"
