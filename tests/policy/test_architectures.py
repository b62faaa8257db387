"""Each family of causal models: the learner and the engine compute what transformers' own forward pass computes."""

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.policy import folders
from tests.policy.architectures import ARCHITECTURES, config_of, made
from tests.trees import credited, random_tree
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, BertConfig

import bough
from bough.batch import Batch, PackedPrefixTree, pack
from bough.config.config import ConfigError
from bough.critics import ValueHead
from bough.engine import Completion, Local, Request, Sampling
from bough.learner import Learner, Optimizer
from bough.learner.attention_maps import attention_maps
from bough.learner.memory_forecast import measure_chunk_memory
from bough.learner.token_outputs import read, token_outputs, values_of
from bough.objective import Normalizer, PpoClip
from bough.policy import Lora, Pretrained
from bough.policy.model import CausalModel
from bough.policy.policy import Policy
from bough.policy.policy_model import PolicyModel

TEMPERATURE = 0.8
MICRO_TOKENS = 24


def some_batch() -> Batch:
    rng = np.random.default_rng(0)
    return pack([credited(random_tree(rng, vocab=60, turns=5, task=str(i)), rng) for i in range(3)])


def own_logprobs(model: Any, given: Batch) -> Tensor:
    """[M]: one forward pass of transformers for each row."""
    found = list[Tensor]()
    for first, last in zip(given.row[:-1].tolist(), given.row[1:].tolist(), strict=True):
        at = given.at[(given.at >= first) & (given.at < last)]
        logits = model(input_ids=given.tokens[None, first:last], use_cache=False).logits[0, at - first - 1]
        found.append((logits / TEMPERATURE).log_softmax(-1).gather(-1, given.tokens[at][:, None])[:, 0])
    return torch.cat(found)


def generated(policy: Policy, requests: list[Request], **settings: Any) -> list[Completion]:
    """The completions of an engine, for requests that begin together."""
    engine = Local(slots=3, **settings).build(policy)

    async def run() -> list[Completion]:
        return [*await asyncio.gather(*(engine.generate(each) for each in requests))]

    return asyncio.run(run())


def requests() -> list[Request]:
    """Two prompts of one length, whose completions end at different times, and others."""
    prompts = [(5, 9, 17, 30, 4), (8, 2, 40, 11, 6), tuple(range(20, 33)), (5, 9, 17, 30, 4)]
    return [
        Request(
            prompt_tokens=prompt,
            stop_tokens=(),
            seed=i,
            sampling=Sampling(max_tokens=3 + 3 * i, temperature=TEMPERATURE),
        )
        for i, prompt in enumerate(prompts)
    ]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_learner_and_engine_equal_the_models_own_forward_pass(name: str, tmp_path: Path) -> None:
    model, policy = made(config_of(name))
    reason = ARCHITECTURES[name][0]
    assert policy.packs == (not reason)
    assert reason in policy.how_it_runs
    given, close = some_batch(), {"rtol": 1e-4, "atol": 1e-4}
    learner = Learner(policy, Optimizer(micro_tokens=MICRO_TOKENS), total_updates=1, temperature=TEMPERATURE)
    theirs = own_logprobs(model, given)
    torch.testing.assert_close(learner.logprobs(given), theirs, **close)

    pull = torch.linspace(-1, 1, len(theirs))
    (theirs * pull).sum().backward()
    for chunk in read(policy, given.prefix_tree(), MICRO_TOKENS).backward():
        logprob = token_outputs(policy, chunk, given, temperature=TEMPERATURE).logprob
        (logprob * pull[chunk.trained]).sum().backward()
    wanted = {each: weight.grad for each, weight in model.named_parameters() if weight.grad is not None}
    for each, weight in policy.parameters().items():
        torch.testing.assert_close(weight.grad, wanted[each], rtol=1e-4, atol=1e-4 * float(wanted[each].abs().max()))

    with torch.no_grad():
        for request, completion in zip(requests(), generated(policy, requests()), strict=True):
            text = torch.tensor([request.prompt_tokens + completion.tokens])
            logits = model(input_ids=text, use_cache=False).logits[0, len(request.prompt_tokens) - 1 : -1]
            theirs = (logits / TEMPERATURE).log_softmax(-1).gather(-1, torch.tensor(completion.tokens)[:, None])[:, 0]
            torch.testing.assert_close(torch.tensor(completion.logprobs), theirs, **close)

    policy.save(tmp_path)
    again = Pretrained(path=str(tmp_path), device="cpu", context_tokens=96).build()
    assert again.how_it_runs == policy.how_it_runs
    loaded = Learner(again, Optimizer(micro_tokens=MICRO_TOKENS), total_updates=1, temperature=TEMPERATURE)
    torch.testing.assert_close(loaded.logprobs(given), learner.logprobs(given), rtol=1e-6, atol=1e-6)


def test_a_model_that_reads_later_tokens_is_refused() -> None:
    sizes = {key: value for key, value in folders.SIZES.items() if key != "attention_dropout"}
    with pytest.raises(ValueError, match=r"BertLMHeadModel can't be trained .*: its logits differ by .* after them"):
        made(BertConfig(**sizes))


def gradient(policy: Policy, given: Batch, **settings: Any) -> Tensor:
    """Of PPO's loss, end to end."""
    learner = Learner(policy, Optimizer(**settings), total_updates=1, temperature=TEMPERATURE)
    metrics = learner.backward(given, PpoClip(), Normalizer())
    assert metrics["update/tokens"] == len(given.prefix_tree().separate())
    assert metrics["update/saving"] == 1
    return torch.cat([weight.grad.flatten() for weight in policy.parameters().values() if weight.grad is not None])


def test_every_share_and_recomputation_has_the_same_gradient() -> None:
    given = some_batch()
    whole = gradient(made(config_of("LFM2"))[1], given)
    shared = gradient(made(config_of("LFM2"))[1], given, micro_tokens=MICRO_TOKENS, cpu_workers=2)
    again = made(config_of("LFM2"))[1]
    again.recompute(True)
    for each in (shared, gradient(again, given, micro_tokens=1)):
        torch.testing.assert_close(each, whole, rtol=1e-4, atol=1e-4 * float(whole.abs().max()))


@pytest.mark.parametrize("name", ["LFM2", "GLM-4.6", "Qwen3-Next"])
def test_adapters_train_and_the_engine_has_them_merged(name: str) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config_of(name))
    policy = Policy.assemble(model, folders.tokenizer(folders.CHATML), context_tokens=96, lora=Lora(rank=4))
    given = some_batch()
    learner = Learner(policy, Optimizer(learning_rate=0.1), total_updates=1, temperature=TEMPERATURE)
    before = learner.logprobs(given)
    metrics = learner.learn(given, PpoClip(), Normalizer(), seed=0)
    assert metrics["optimizer/gradient_norm"] > 0
    after = learner.logprobs(given)
    assert float((after - before).abs().max()) > 1e-3
    merged = Learner(replace_model(policy), Optimizer(), total_updates=1, temperature=TEMPERATURE)
    torch.testing.assert_close(merged.logprobs(given), after, rtol=1e-4, atol=1e-4)


def replace_model(policy: Policy) -> Any:
    """The engine's copy of a policy, as a policy."""
    replica = policy.replica()
    return PolicyModel(model=replica._model, shape=None, context_tokens=96)  # type: ignore[attr-defined]


def test_a_value_head_reads_the_models_own_states() -> None:
    model, policy = made(config_of("gpt-oss"))
    critic = ValueHead().build(32)
    text = np.arange(3, 20, dtype=np.int64)
    packed = PackedPrefixTree.pack([text, text[:5]], np.asarray([0, 1]), np.asarray([17, 5]))
    with torch.no_grad():
        states = model.model(input_ids=torch.as_tensor(text)[None], use_cache=False).last_hidden_state[0]
        wanted = critic(states[[16, 4]])
    (name,) = wanted
    torch.testing.assert_close(values_of(policy, critic, packed, 8)[name], wanted[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("family", "method"), [("Granite 3", "hidden"), ("LFM2", "decode")])
def test_a_device_without_memory_is_not_blamed_on_the_architecture(
    family: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(CausalModel, method, full)
    with pytest.raises(ValueError, match="got too little memory on cpu for the check of architecture"):
        made(config_of(family))


def test_what_needs_the_attention_of_the_caller_is_refused() -> None:
    _, policy = made(config_of("LFM2"))
    with pytest.raises(ValueError, match="got a policy that runs path by path; need one whose attention"):
        attention_maps(policy, [np.arange(4, dtype=np.int32)])
    with pytest.raises(ConfigError, match="memory_gib: got a number with a policy that runs path by path"):
        measure_chunk_memory(policy)


def test_layers_with_dropout_are_not_recomputed() -> None:
    _, policy = made(config_of("LFM2"))
    for layer in policy._model.layers:
        layer.register_forward_hook(dropout)
    with pytest.raises(ValueError, match="recompute: got layers that compute something else in training mode"):
        policy.recompute(True)
    assert not any(layer.training for layer in policy._model.layers)


def dropout(layer: nn.Module, given: object, hidden: Tensor) -> Tensor:
    """A forward hook, as a layer would drop out its own states."""
    del given
    return nn.functional.dropout(hidden, 0.1, training=layer.training)


def test_the_table_of_the_docs_is_true() -> None:
    page = (Path(bough.__file__).parents[2] / "docs" / "policies.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+?) \| (packed|path by path) \|", page, re.MULTILINE))
    assert rows == {name: "path by path" if reason else "packed" for name, (reason, _, _) in ARCHITECTURES.items()}
