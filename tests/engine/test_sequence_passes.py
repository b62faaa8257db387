"""Generation by a model's own forward pass: texts of one length share a batch, and leave it alone."""

import asyncio
import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.toys import ask, run
from tests.policy.architectures import config_of
from transformers import AutoModelForCausalLM

from bough.engine import Completion, EngineFault, Local, Request
from bough.engine.generation import LocalEngine
from bough.policy.check_architecture import check_architecture
from bough.policy.model import CausalModel
from bough.policy.replica import Replica

SHORT, LONG = (5, 9, 17, 30, 4), (8, 2, 40, 11, 6, 7, 7, 1)


def model(name: str) -> CausalModel:
    torch.manual_seed(0)
    found = CausalModel(AutoModelForCausalLM.from_config(config_of(name)))
    assert check_architecture(found) is None
    return found


MODELS = {"LFM2": model("LFM2"), "MiniMax-Text-01": model("MiniMax-Text-01")}
"""One whose cache decodes, and one that computes whole texts."""


def engine(name: str = "LFM2", **settings: Any) -> LocalEngine:
    given = MODELS[name]
    own = CausalModel(copy.deepcopy(given.model), given.traits)
    return LocalEngine(Local(**{"slots": 4, **settings}), Replica(own, None, 64))


def together(built: LocalEngine, requests: list[Request]) -> list[Completion]:
    async def main() -> list[Completion]:
        return [*await asyncio.gather(*(built.generate(each) for each in requests))]

    return run(main())


def requests(count: int = 6) -> list[Request]:
    """Their completions end one after the other."""
    return [ask(LONG if i % 3 == 2 else SHORT, max_tokens=2 + i, seed=i) for i in range(count)]


def same(one: list[Completion], other: list[Completion]) -> None:
    assert [each.tokens for each in one] == [each.tokens for each in other]
    for left, right in zip(one, other, strict=True):
        assert left.logprobs == pytest.approx(right.logprobs, abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_company_changes_nothing(name: str) -> None:
    single, exact = engine(name, slots=1), engine(name, deterministic=True)
    alone = [together(single, [each])[0] for each in requests(4)]
    same(together(engine(name), requests(4)), alone)
    assert together(exact, requests(4)) == together(exact, requests(4)[::-1])[::-1]


def test_prompts_of_one_length_are_one_batch() -> None:
    built, batches = engine(), list[tuple[int, ...]]()
    plain = built._decoder._model.decode  # type: ignore[attr-defined]

    def decode(tokens: torch.Tensor, cache: object) -> Any:
        batches.append(tuple(tokens.shape))
        return plain(tokens, cache)

    built._decoder._model.decode = decode  # type: ignore[attr-defined]
    together(built, requests(4))
    # The first pass has two prompt lengths. The shortest completions leave first.
    assert batches == [(3, 5), (1, 8), (3, 1), (1, 1), (2, 1), (1, 1), (1, 1), (1, 1), (1, 1)]
    assert built.stats.passes == 5


@pytest.mark.parametrize("name", MODELS)
def test_scores_beside_completions(name: str) -> None:
    built = engine(name)
    (whole,) = together(built, [ask(SHORT, max_tokens=6, seed=3)])

    async def main() -> tuple[tuple[float, ...], Completion]:
        return await asyncio.gather(built.score(SHORT, whole.tokens), built.generate(ask(SHORT, max_tokens=6, seed=3)))

    scored, again = run(main())
    assert scored == pytest.approx(whole.logprobs, abs=1e-5)
    assert again.tokens == whole.tokens
    assert built.cached_tokens == 0, "what has left holds no memory"


def test_requests_wait_for_the_cache_and_for_prefill() -> None:
    alone = together(engine(slots=1), requests())
    narrow = engine(cache_tokens=64, prefill_tokens=6)
    most = 0
    plain = narrow._decoder.step

    def step() -> None:
        nonlocal most
        plain()
        most = max(most, narrow.cached_tokens)

    narrow._decoder.step = step  # type: ignore[method-assign]
    same(together(narrow, requests()), alone)
    assert 13 < most <= 64


def test_a_cancelled_request_leaves_the_others() -> None:
    built = engine()
    (alone,) = together(engine(), [ask(SHORT, max_tokens=9, seed=1)])

    async def main() -> Completion:
        gone = asyncio.create_task(built.generate(ask(SHORT, max_tokens=30, seed=0)))
        stays = asyncio.create_task(built.generate(ask(SHORT, max_tokens=9, seed=1)))
        while built.passes < 3:
            await asyncio.sleep(0)
        gone.cancel()
        return await stays

    same([run(main())], [alone])


def test_weights_that_have_diverged_are_a_fault() -> None:
    built = engine()
    (before,) = together(built, [ask(SHORT, max_tokens=4, seed=1)])
    weights = {name: weight.clone() for name, weight in MODELS["LFM2"].model.state_dict().items()}
    weights = {name: weight for name, weight in weights.items() if name != "lm_head.weight"}
    built.load_weights({name: weight * torch.nan for name, weight in weights.items()}, 1)
    with pytest.raises(EngineFault, match="not finite"):
        together(built, [ask(SHORT, max_tokens=4, seed=1)])
    built.load_weights(weights, 2)
    (after,) = together(built, [ask(SHORT, max_tokens=4, seed=1)])
    assert after == replace(before, policy_version=2)
