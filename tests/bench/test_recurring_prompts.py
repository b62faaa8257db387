import asyncio

import pytest

from bough.engine import Local, Request, Sampling
from bough.policy import Tiny
from recurring_prompts import RecurringPrompts


def test_completions_are_those_of_the_local_engine_before_and_after_an_update() -> None:
    policy = Tiny(layers=1, width=32, heads=2, vocab_tokens=280, context_tokens=64).build(["ash bay red"])
    other = Tiny(layers=1, width=32, heads=2, vocab_tokens=280, context_tokens=64, seed=1).build(["ash bay red"])
    requests = [
        Request(prompt_tokens=(3, 5 + seed % 4), sampling=Sampling(max_tokens=3), stop_tokens=(9,), seed=seed)
        for seed in range(40)
    ]

    async def completed(engine: object) -> list[object]:
        return list(await asyncio.gather(*(engine.generate(each) for each in requests)))  # type: ignore[attr-defined]

    async def main() -> None:
        plain, memo = (recipe.build(policy) for recipe in (Local(), RecurringPrompts()))
        for version in (0, 1):
            if version:
                for engine in (plain, memo):
                    engine.load_weights(other.weights(), version)
            for expected, found in zip(await completed(plain), await completed(memo), strict=True):
                assert (found.tokens, found.finish, found.policy_version) == (
                    expected.tokens,
                    expected.finish,
                    expected.policy_version,
                )
                assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-5)
                assert found.entropies == pytest.approx(expected.entropies, abs=1e-5)
        await plain.close()
        await memo.close()

    asyncio.run(main())
