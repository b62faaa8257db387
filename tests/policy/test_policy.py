import copy
import re
from pathlib import Path

import folders
import pytest
import torch
from peft import PeftModel
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Cohere2Config,
    Gemma3TextConfig,
    GPT2Config,
    MistralConfig,
    Qwen2Config,
)

from bough.context import conversation
from bough.critics import ValueHead
from bough.critics.module_state import Network
from bough.engine.model import Model
from bough.engine.vllm_adapters import VllmAdapters
from bough.policy import Lora, Pretrained, Tiny
from bough.policy.check_architecture import windows
from bough.policy.model import causal
from bough.policy.policy import Policy

LORA = Lora(rank=4, alpha=8.0, targets=("q_proj", "v_proj", "down_proj"))


def tokens(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 300, (count,), generator=torch.Generator().manual_seed(seed))


def logits(model: Policy, read: torch.Tensor) -> torch.Tensor:
    hidden = model.hidden(read, torch.arange(len(read)), causal)
    return torch.nn.functional.linear(hidden, *model.head())


def shake(policy: Policy, seed: int = 1) -> None:
    """Move everything that is trained."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters().values():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=draw))


@pytest.fixture(params=["llama", "qwen2", "qwen3"])
def family(request: pytest.FixtureRequest) -> str:
    return request.param


def test_logits_are_those_of_transformers(family: str, tmp_path: Path) -> None:
    folder = folders.folder(tmp_path, family)
    policy = Pretrained(path=str(folder), device="cpu").build()
    stock = AutoModelForCausalLM.from_pretrained(folder).eval()
    read = tokens(23)
    torch.testing.assert_close(logits(policy, read), stock(read[None]).logits[0], rtol=1e-5, atol=1e-5)
    assert (policy.vocab_tokens, policy.context_tokens, policy.dtype) == (384, 256, torch.float32)


def test_sequences_laid_end_to_end_do_not_see_each_other(tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path)), device="cpu").build()
    first, second = tokens(7), tokens(11, seed=1)

    def apart(
        layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, *, window: None
    ) -> torch.Tensor:
        assert window is None
        parts = [[part[:, :7], part[:, 7:]] for part in (query, key, value)]
        return torch.cat([causal(layer, *trio, scale) for trio in zip(*parts, strict=True)], dim=1)

    positions = torch.cat([torch.arange(7), torch.arange(11)])
    together = policy.hidden(torch.cat([first, second]), positions, apart)
    alone = policy.hidden(second, torch.arange(11), causal)
    torch.testing.assert_close(together[7:], alone, rtol=1e-5, atol=1e-6)


def test_every_trained_weight_gets_a_gradient_and_nothing_is_dropped_out(family: str, tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path, family)), device="cpu").build()
    # The config asks for dropout: two passes would differ.
    assert torch.equal(logits(policy, tokens(9)), logits(policy, tokens(9)))
    logits(policy, tokens(9)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in policy.parameters().values())


def test_only_adapters_are_trained_with_lora(family: str, tmp_path: Path) -> None:
    folder = folders.folder(tmp_path, family)
    plain, policy = (Pretrained(path=str(folder), device="cpu", lora=lora).build() for lora in (None, LORA))
    torch.testing.assert_close(logits(policy, tokens(9)), logits(plain, tokens(9)))
    assert all("lora_" in name for name in policy.parameters())
    # Two matrices for each of three layers in each of two blocks.
    assert len(policy.parameters()) == 12
    assert policy.state().keys() == policy.parameters().keys()
    assert policy.weights().keys() == plain.weights().keys()
    shake(policy)
    assert (logits(policy, tokens(9)) - logits(plain, tokens(9))).abs().max() > 1e-2


def test_adapters_in_a_bfloat16_model_are_float32(tmp_path: Path) -> None:
    folder = str(folders.folder(tmp_path))
    policy = Pretrained(path=folder, device="cpu", dtype="bfloat16", lora=Lora()).build()
    assert policy.dtype == torch.bfloat16
    assert {parameter.dtype for parameter in policy.parameters().values()} == {torch.float32}
    assert {tensor.dtype for tensor in policy.weights().values()} == {torch.bfloat16}
    logits(policy, tokens(9)).float().sum().backward()
    # All linear layers of a block: q, k, v, o, gate, up, down.
    assert len(policy.parameters()) == 2 * 7 * 2


def test_value_heads_take_their_own_weights_alone() -> None:
    critic = ValueHead(heads=("value", "other")).build(8)
    for name, message in (
        ({**critic.state(), "extra": torch.ones(1)}, "got 'extra', which the model does not have"),
        ({"linear.weight": torch.ones(1, 8), "linear.bias": torch.ones(2)}, r"of shape \(1, 8\); need \(2, 8\)"),
        ({"linear.weight": torch.ones(2, 8)}, "got no 'linear.bias'"),
    ):
        with pytest.raises(ValueError, match=f"Critic.load_state: .*{message}"):
            critic.load_state(name)


def test_a_network_takes_its_own_weights_alone() -> None:
    network = Network(torch.nn.Linear(3, 2))
    state = network.state()
    with pytest.raises(ValueError, match="load_state: got 'weights/extra', which the model does not have"):
        network.load_state({**state, "weights/extra": state["weights/bias"]})
    with pytest.raises(ValueError, match=r"load_state: got 'weights/bias' of shape \(1,\); need \(2,\)"):
        network.load_state({**state, "weights/bias": state["weights/bias"][:1]})


@pytest.mark.parametrize("lora", [None, LORA], ids=["full", "lora"])
def test_weights_are_those_of_the_merged_model(family: str, lora: Lora | None, tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path, family)), device="cpu", lora=lora).build()
    shake(policy)
    before = {name: tensor.clone() for name, tensor in policy.state().items()}
    plain = AutoModelForCausalLM.from_config(folders.CONFIGS[family]).eval()
    report = plain.load_state_dict(policy.weights(), strict=False)
    tied = folders.CONFIGS[family].tie_word_embeddings
    assert (report.missing_keys, report.unexpected_keys) == (["lm_head.weight"] if tied else [], [])
    torch.testing.assert_close(plain(tokens(9)[None]).logits[0], logits(policy, tokens(9)), rtol=1e-4, atol=1e-4)
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state().items())


@pytest.mark.parametrize("lora", [None, LORA], ids=["full", "lora"])
def test_a_replica_follows_only_when_told(family: str, lora: Lora | None, tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path, family)), device="cpu", lora=lora).build()
    shake(policy)
    replica: Model = policy.replica()
    read, positions = tokens(9), torch.arange(9)

    def sampled() -> torch.Tensor:
        return replica.logits(replica.hidden(read, positions, causal))

    old = logits(policy, read).detach()
    torch.testing.assert_close(sampled(), old, rtol=1e-4, atol=1e-4)
    frozen = sampled()
    assert not frozen.requires_grad
    shake(policy, seed=2)
    assert torch.equal(sampled(), frozen)
    replica.load(policy.weights())
    torch.testing.assert_close(sampled(), logits(policy, read), rtol=1e-4, atol=1e-4)
    assert (sampled() - frozen).abs().max() > 1e-2
    shake(policy, seed=3)
    assert (sampled() - logits(policy, read)).abs().max() > 1e-2
    assert (replica.layers, replica.kv_heads) == (2, 2)
    assert replica.head_width == (16 if family == "qwen3" else 8)
    assert (replica.vocab_tokens, replica.context_tokens, replica.dtype) == (384, 256, torch.float32)


def test_a_replica_in_bfloat16_takes_float32_weights(tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path)), device="cpu").build()
    replica = policy.replica(torch.bfloat16)
    seen = []

    def attend(*call: object, **settings: object) -> torch.Tensor:
        seen.append(call[2].dtype)
        return causal(*call, **settings)

    hidden = replica.hidden(tokens(9), torch.arange(9), attend)
    assert (replica.dtype, seen[0], replica.logits(hidden).dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)
    shake(policy)
    replica.load(policy.weights())
    near = replica.logits(replica.hidden(tokens(9), torch.arange(9), causal))
    far = logits(policy, tokens(9))
    assert (near - far).norm() < 0.05 * far.norm()
    assert policy.dtype == torch.float32


def test_load_names_what_does_not_fit_and_takes_nothing(tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path, "qwen2")), device="cpu").build()
    replica = policy.replica()
    kept = replica.logits(replica.hidden(tokens(9), torch.arange(9), causal))
    shake(policy)
    weights = policy.weights()
    name = "model.layers.1.mlp.up_proj.weight"
    cases = {
        f"got no '{name}'; need \\(48, 32\\)": {key: value for key, value in weights.items() if key != name},
        f"got '{name}' of shape \\(32, 48\\); need \\(48, 32\\)": {**weights, name: weights[name].T},
        "got 'extra', which the model does not have": {**weights, "extra": weights[name]},
    }
    for message, wrong in cases.items():
        with pytest.raises(ValueError, match=message):
            replica.load(wrong)
    assert torch.equal(replica.logits(replica.hidden(tokens(9), torch.arange(9), causal)), kept)


@pytest.mark.parametrize("lora", [None, LORA], ids=["full", "lora"])
def test_state_comes_back_bit_for_bit(lora: Lora | None, tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path)), device="cpu", lora=lora).build()
    shake(policy)
    state, then = policy.state(), logits(policy, tokens(9))
    shake(policy, seed=2)
    assert not torch.equal(logits(policy, tokens(9)), then)
    policy.load_state(copy.deepcopy(state))
    assert torch.equal(logits(policy, tokens(9)), then)
    first = next(iter(state))
    with pytest.raises(ValueError, match=f"Policy.load_state: got no '{first}'"):
        policy.load_state({name: tensor for name, tensor in state.items() if name != first})
    with pytest.raises(ValueError, match=f"Policy.load_state: got '{first}' of shape"):
        policy.load_state({**state, first: state[first][:1]})


def test_peft_reads_the_base_and_the_adapters(tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path / "from")), device="cpu", lora=LORA).build()
    shake(policy)
    policy.save_base(tmp_path / "base")
    adapters = policy.adapters()
    assert adapters is not None
    VllmAdapters(tmp_path, adapters)
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tmp_path / "base"), tmp_path / "adapters-1")
    read = tokens(15)
    torch.testing.assert_close(logits(policy, read), model(read[None]).logits[0], rtol=1e-5, atol=1e-5)
    assert Pretrained(path=str(tmp_path / "base"), device="cpu").build().adapters() is None


@pytest.mark.parametrize("lora", [None, LORA], ids=["full", "lora"])
def test_what_is_saved_is_an_ordinary_checkpoint(family: str, lora: Lora | None, tmp_path: Path) -> None:
    policy = Pretrained(path=str(folders.folder(tmp_path / "from", family)), device="cpu", lora=lora).build()
    shake(policy)
    policy.save(tmp_path / "to")
    read = tokens(9)
    stock = AutoModelForCausalLM.from_pretrained(tmp_path / "to")
    again = Pretrained(path=str(tmp_path / "to"), device="cpu").build()
    torch.testing.assert_close(stock(read[None]).logits[0], logits(policy, read), rtol=1e-4, atol=1e-4)
    assert all(torch.equal(tensor, again.weights()[name]) for name, tensor in policy.weights().items())
    asked = ("Walk.", [], "P _ O")
    assert again.renderer.render(conversation(*asked)) == policy.renderer.render(conversation(*asked))
    chat = [{"role": "system", "content": "Walk."}, {"role": "user", "content": "P _ O"}]
    text = AutoTokenizer.from_pretrained(tmp_path / "to").apply_chat_template(
        chat, add_generation_prompt=True, return_dict=False
    )
    assert tuple(text) == policy.renderer.render(conversation(*asked))
    # The policy is still the one that trains, and its attention is still the caller's.
    assert policy.parameters()
    torch.testing.assert_close(logits(policy, read), logits(again, read), rtol=1e-4, atol=1e-4)


SIZES = {key: value for key, value in folders.SIZES.items() if key not in ("attention_dropout", "initializer_range")}
SMALL = {**SIZES, "head_dim": 8}
WIDE = {**SMALL, "initializer_range": 0.2, "sliding_window": 20}
WINDOWS = {
    "gemma3": Gemma3TextConfig(**WIDE, layer_types=["sliding_attention", "full_attention"]),
    "mistral": MistralConfig(**WIDE),
    "qwen2": Qwen2Config(**WIDE, use_sliding_window=True, max_window_layers=1),
    "cohere2": Cohere2Config(**WIDE, logit_scale=1.0),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_attention_is_compared_beyond_the_window(name: str) -> None:
    model = AutoModelForCausalLM.from_config(WINDOWS[name])
    Policy.assemble(copy.deepcopy(model), folders.tokenizer(folders.CHATML))
    if name == "mistral":
        return  # its layers read the config
    # Layers that do not pass their window on differ behind it alone.
    for layer in model.model.layers:
        layer.self_attn.sliding_window = None
    within = Policy.assemble(copy.deepcopy(model), folders.tokenizer(folders.CHATML), context_tokens=20)
    assert within.packs
    beyond = Policy.assemble(model, folders.tokenizer(folders.CHATML), context_tokens=64)
    assert re.search(r"its hidden states differ by .* beyond its windows, {'sliding_window': 20}", beyond.how_it_runs)


def test_the_windows_of_a_config_are_its_numbers_of_tokens() -> None:
    inner = {"attention_chunk_size": 8192, "sliding_window": None, "hidden_size": 64}
    config = {"text_config": inner, "sliding_window": 512, "use_sliding_window": True, "max_window_layers": 28}
    assert windows(config) == {"attention_chunk_size": 8192, "sliding_window": 512}


def test_learned_positions_are_fine() -> None:
    config = GPT2Config(vocab_size=384, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    policy = Policy.assemble(AutoModelForCausalLM.from_config(config), folders.tokenizer(folders.CHATML))
    assert policy.context_tokens == 64


def test_a_context_longer_than_the_models_is_refused(tmp_path: Path) -> None:
    folder = str(folders.folder(tmp_path))
    assert Pretrained(path=folder, device="cpu", context_tokens=100).build().context_tokens == 100
    with pytest.raises(ValueError, match="context_tokens: got 300; need at least 1 and at most 256"):
        Pretrained(path=folder, device="cpu", context_tokens=300).build()


def test_float64_is_exact_to_the_norms() -> None:
    policy = Tiny(width=32, dtype="float64", device="cpu").build(["a b c"])
    assert policy.dtype == torch.float64
    replica = policy.replica()
    read = tokens(9) % policy.vocab_tokens
    assert torch.equal(replica.logits(replica.hidden(read, torch.arange(9), causal)), logits(policy, read))
