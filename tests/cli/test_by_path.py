"""A run of a model that runs path by path, from the command line: trained, resumed, served."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from openai import OpenAI
from tests.forks import command
from tests.policy import folders
from tests.policy.architectures import config_of
from tests.talk import ONE_STEP, SMALL, Bough
from transformers import AutoModelForCausalLM

import small
from bough.config import override
from bough.train import resume, start


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that has convolutions."""
    found = tmp_path_factory.mktemp("by_path")
    torch.manual_seed(0)
    config = config_of("LFM2")
    config.max_position_embeddings = 1024
    AutoModelForCausalLM.from_config(config).save_pretrained(found / "model")
    folders.tokenizer(folders.CHATML).save_pretrained(found / "model")
    return found


def test_it_trains_and_its_model_is_served(bough: Bough, folder: Path) -> None:
    policy = "policy=Pretrained(path=model,context_tokens=1024)"
    out = bough("train", f"{SMALL}:run", *ONE_STEP, "warmup.epochs=4", policy, "name=lfm", folder=folder).fine()
    reason = "1 of its 2 layers mix tokens without attention that Bough computes"
    assert out.count(f"Lfm2ForCausalLM runs path by path, a shared prefix once for each path: {reason}\n") == 1
    steps = [json.loads(line) for line in (folder / "runs" / "lfm" / "metrics.jsonl").read_text().splitlines()]
    updates = [each for each in steps if "loss/total" in each]
    assert all(each["update/saving"] == 1 for each in updates)
    assert updates[3]["loss/total"] < 0.7 * updates[0]["loss/total"]
    # The engine's and the learner's log-probabilities were compared after each.
    assert all(each["policy/canary_gap"] < 1e-4 for each in steps if "policy/canary_gap" in each)
    trained = AutoModelForCausalLM.from_pretrained(folder / "runs" / "lfm" / "final")
    assert type(trained).__name__ == "Lfm2ForCausalLM"

    messages = [{"role": "user", "content": "go"}]
    with command("serve", folder / "runs" / "lfm" / "final", "--port", "0", "--name", "lfm") as server:
        url = server.line().split()[-1]
        with OpenAI(base_url=url, api_key="any", max_retries=0) as client:
            answer = client.chat.completions.create(
                model="lfm", messages=messages, max_tokens=4, temperature=0, extra_body={"return_token_ids": True}
            )
    sampled = answer.choices[0].model_dump()["token_ids"]
    assert 1 <= len(sampled) <= 4
    prompt = folders.tokenizer(folders.CHATML).apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    with torch.no_grad():
        logits = trained(input_ids=torch.tensor([[*prompt, *sampled]]), use_cache=False).logits[0, len(prompt) - 1 : -1]
    assert logits.argmax(-1).tolist() == sampled, "the most likely tokens of the model's own forward pass"


def test_a_resumed_run_is_bit_equal(folder: Path) -> None:
    changes = ["steps=2", "warmup.epochs=1", "evaluation.every=100", f"policy=Pretrained(path={folder / 'model'})"]
    run = override(small.run(), [*changes, "name=again", "policy.context_tokens=1024"])
    directory = start(run, folder, terminal=False).path

    def result() -> tuple[list[dict[str, object]], bytes]:
        rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
        kept = [{name: each for name, each in row.items() if not name.startswith(small.MEASURED)} for row in rows]
        return kept, (directory / "final" / "model.safetensors").read_bytes()

    whole = result()
    shutil.rmtree(max((directory / "checkpoints").iterdir()))
    resume(directory)
    assert result() == whole
