"""Sizes of models and memory of devices, against models that are built."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from bough.config.config import ConfigError
from bough.learner.memory_forecast import ChunkShape, measure_chunk_memory
from bough.plan import activation_bytes, engine_memory, learner_memory, model_size, read_model
from bough.plan.model_size import FAMILIES
from bough.policy import Tiny

COMMON = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "dtype": "bfloat16",
}
OWN: dict[str, dict[str, Any]] = {
    "qwen3": {"head_dim": 32},
    "gemma2": {"head_dim": 16},
    "gemma3_text": {"head_dim": 16},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "head_dim": 16},
}


def built(config: dict[str, Any]) -> torch.nn.Module:
    settings = transformers.AutoConfig.for_model(**config)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(settings)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", [*FAMILIES, "phi3", "gpt2"])
def test_parameters_are_those_of_the_built_model(kind: str, tied: bool) -> None:
    """phi3 and gpt2 are not in the table of families."""
    config = {"model_type": kind, "tie_word_embeddings": tied, "pad_token_id": 0, **COMMON, **OWN.get(kind, {})}
    model = built(config)
    assert model_size(config, name=kind).parameters == sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("kind", ["qwen3_moe", "mixtral"])
def test_a_token_passes_through_the_routed_experts(kind: str) -> None:
    config = {"model_type": kind, **COMMON, **OWN[kind]}
    size = model_size(config, name=kind)
    experts = sum(each.numel() for name, each in built(config).named_parameters() if ".experts." in name)
    assert size.expert == experts
    dense = size.parameters - experts - 2 * size.vocab * size.width
    assert size.trunk == dense + round(experts * size.expert_share)
    assert size.read_bytes(1) == pytest.approx(2 * (size.parameters - experts * (1 - size.expert_share)))
    assert size.read_bytes(10_000) == pytest.approx(2 * size.parameters)


def test_a_policy_counts_the_same_operations() -> None:
    policy = Tiny(layers=2, width=64, heads=4, vocab_tokens=300, context_tokens=128).build(["a b c"])
    with torch.no_grad():
        size = model_size(policy_config(policy), name="tiny")
    own = policy.arithmetic()
    assert size.arithmetic.head == own.head
    assert size.arithmetic.attention == own.attention
    assert size.arithmetic.weights == pytest.approx(own.weights, rel=0.01)
    assert size.weight_bytes == sum(each.nbytes for each in policy.weights().values())


def policy_config(policy: Any) -> dict[str, Any]:
    return json.loads(policy._model.model.config.to_json_string())


@pytest.mark.parametrize("tokens", [512, 2048])
def test_activations_are_near_the_measured_ones(tokens: int) -> None:
    """The engine of the memory budget measures allocations; the formula has to be within a third of them."""
    policy = Tiny(layers=3, width=128, heads=4, vocab_tokens=400, context_tokens=4096).build(["a b c"])
    size = model_size(policy_config(policy), name="tiny")
    seen = measure_chunk_memory(policy).bytes(ChunkShape(tokens=tokens, trained=tokens), entropy=True)
    assert activation_bytes(size, tokens, recompute=False) == pytest.approx(seen, rel=0.33)
    assert activation_bytes(size, tokens, recompute=True) < activation_bytes(size, tokens, recompute=False) / 2


def test_memory_of_devices() -> None:
    size = model_size({"model_type": "llama", **COMMON}, name="llama")
    whole = learner_memory(size, activations=1000.0, reference=True, shards=1)
    assert whole.weights == 2 * size.weight_bytes
    assert whole.optimizer == 2 * whole.gradients == 2 * size.weight_bytes
    quarter = learner_memory(size, activations=1000.0, reference=True, shards=4)
    assert quarter.fixed - 1000 == pytest.approx((whole.fixed - 1000) / 4)
    usable = 10.0 * size.weight_bytes
    both = engine_memory(size, usable=usable, devices_per_replica=1, beside=whole)
    assert both.fixed + both.cache == pytest.approx(usable)
    assert both.cache == pytest.approx(usable - whole.fixed - size.weight_bytes)
    assert engine_memory(size, usable=10.0, devices_per_replica=1, beside=whole).cache == 0


def test_a_token_s_keys_and_values() -> None:
    size = model_size({"model_type": "llama", **COMMON}, name="llama")
    model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**COMMON)).to(torch.bfloat16)
    cache = model(torch.zeros(1, 7, dtype=torch.int64)).past_key_values
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert size.kv_bytes * 7 == held


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "got no JSON"),
        ("[]", "got a list; need a config.json"),
        ("{}", "got no model_type; need a config.json"),
        ('{"model_type": "llama"}', "hidden_size: got None; need a whole number above 0"),
        ('{"model_type": "none"}', "got 'none', which Transformers builds no decoder of"),
        (json.dumps({"model_type": "llama", **COMMON, "dtype": "int4"}), "dtype: got 'int4'; need one of float64"),
    ],
)
def test_a_wrong_configuration(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        read_model(tmp_path)
    with pytest.raises(ConfigError, match=r"need a config\.json of Hugging Face"):
        read_model(tmp_path / "nothing.json")
