"""Each family of causal models: the learner and the engine compute what transformers' own forward pass computes."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.policy import folders
from tests.policy.architectures import ARCHITECTURES, NO_ATTENTION, config_of
from tests.trees import credited, random_tree
from torch import Tensor
from transformers import AutoModelForCausalLM, BertConfig, PreTrainedConfig

from bough.batch import Batch, pack
from bough.engine import Completion, Local, Request, Sampling
from bough.learner import Learner, Optimizer
from bough.learner.token_outputs import read, token_outputs
from bough.policy import Lora, Pretrained
from bough.policy.policy import Policy

TEMPERATURE = 0.8
MICRO_TOKENS = 24


def made(config: PreTrainedConfig) -> tuple[Any, Policy]:
    """A model of transformers, and a policy of a copy of it."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    return model, Policy.assemble(copy.deepcopy(model), folders.tokenizer(folders.CHATML), context_tokens=96)


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
            prompt_tokens=prompt, stop_tokens=(), seed=i, sampling=Sampling(max_tokens=3 + 3 * i, temperature=TEMPERATURE)
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
    with pytest.raises(ValueError, match="BertLMHeadModel can't be trained by Bough: its logits differ by .* after them"):
        made(BertConfig(**sizes))


def test_every_share_and_recomputation_has_the_same_gradient() -> None:
    given = some_batch()
    gradients = list[Tensor]()
    for workers, micro, recompute in ((1, 4096, False), (2, MICRO_TOKENS, False), (1, 1, True)):
        _, policy = made(config_of("LFM2"))
        policy.recompute(recompute)
        settings = Optimizer(micro_tokens=micro, cpu_workers=workers)
        learner = Learner(policy, settings, total_updates=1, temperature=TEMPERATURE)
        from bough.objective import Normalizer, PpoClip

        metrics = learner.backward(given, PpoClip(), Normalizer())
        assert metrics["update/tokens"] == given.prefix_tree().separate().path_tokens == len(given.prefix_tree().separate())
        assert metrics["update/saving"] == 1
        gradients.append(torch.cat([weight.grad.flatten() for weight in policy.parameters().values() if weight.grad is not None]))
    for each in gradients[1:]:
        torch.testing.assert_close(each, gradients[0], rtol=1e-4, atol=1e-6)
