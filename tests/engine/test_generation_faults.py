import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from toys import Toy, ask, engine, run, together

from bough.engine import EngineFault, Local
from bough.engine.attention import TorchAttention
from bough.engine.model import Attend


class Breaking(Toy):
    """Breaks in the given pass, once."""

    def __init__(self, at: int, error: BaseException) -> None:
        super().__init__()
        self.at, self.error = at, error

    def hidden(
        self,
        tokens: Tensor,
        positions: Tensor,
        attend: Attend,
        rows: Tensor | None = None,
        attend_last: Attend | None = None,
    ) -> Tensor:
        hidden = super().hidden(tokens, positions, attend, rows, attend_last)
        if len(self.passes) == self.at:
            raise self.error
        return hidden


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("kaboom"), "broke with 2 requests decoding and 1 waiting: RuntimeError: kaboom"),
        (torch.OutOfMemoryError("no memory"), r"out of memory .* lower Local.slots \(now 2\)"),
    ],
)
def test_a_broken_pass_fails_everyone_and_the_engine_goes_on(error: BaseException, message: str) -> None:
    built = engine(Breaking(3, error), slots=2)

    async def main() -> list[Any]:
        asked = (built.generate(ask((i,), max_tokens=9)) for i in range(3))
        return await asyncio.gather(*asked, return_exceptions=True)

    for fault in run(main()):
        assert isinstance(fault, EngineFault)
        assert fault.__cause__ is error
        with pytest.raises(EngineFault, match=message):
            raise fault
    # Nothing that was cached in the broken state is used again.
    asked = [ask((i,), max_tokens=9) for i in range(3)]
    assert together(built, asked) == together(engine(slots=2), asked)


class Poisoned(Toy):
    """Computes nan for every token that follows token 7, also in its keys and values."""

    def hidden(
        self,
        tokens: Tensor,
        positions: Tensor,
        attend: Attend,
        rows: Tensor | None = None,
        attend_last: Attend | None = None,
    ) -> Tensor:
        self.embed.weight[7] = torch.nan
        return super().hidden(tokens, positions, attend, rows, attend_last)


def test_a_request_whose_logits_are_nan_fails_alone() -> None:
    built = engine(Poisoned(), slots=2)
    others = [ask((i,), max_tokens=9, seed=1) for i in (1, 2, 3)]

    async def main() -> list[Any]:
        asked = [ask((7, 1), max_tokens=9), *others]
        scored = built.score((1, 2), (7, 3))
        return await asyncio.gather(*map(built.generate, asked), scored, return_exceptions=True)

    broken, *answers, score = run(main())
    for fault in (broken, score):
        assert isinstance(fault, EngineFault)
        assert "not finite" in str(fault)
    known = [each.tokens for each in together(engine(slots=2), others)]
    assert [each.tokens for each in answers] == known


def test_no_request_gets_the_keys_of_one_that_failed() -> None:
    built, fine = engine(Poisoned(), slots=1), ask((1, 2), max_tokens=3)
    # Masked keys and values are multiplied by zero.
    built._decoder._passes._make_attention = TorchAttention  # type: ignore[attr-defined]
    with pytest.raises(EngineFault, match="not finite"):
        run(built.generate(ask((1, 2, 3, 4, 7), max_tokens=3)))
    assert run(built.generate(fine)).tokens == run(engine().generate(fine)).tokens


def test_a_cancelled_request_gives_its_slot_back() -> None:
    built = engine(slots=1)

    async def main() -> Any:
        endless = asyncio.create_task(built.generate(ask((1,), max_tokens=400)))
        queued = asyncio.create_task(built.generate(ask((2,), max_tokens=400)))
        after = asyncio.create_task(built.generate(ask((3,), max_tokens=3)))
        for _ in range(10):
            await asyncio.sleep(0)
        endless.cancel()
        queued.cancel()
        completion = await after
        assert endless.cancelled()
        assert queued.cancelled()
        return completion

    assert run(main()) == run(engine().generate(ask((3,), max_tokens=3)))
    assert built.stats.generated_tokens < 30


def test_no_one_waits_for_a_prompt_whose_reader_was_cancelled() -> None:
    built = engine(prefill_tokens=4)

    async def main() -> Any:
        reader = asyncio.create_task(built.generate(ask((1,) * 100, max_tokens=3)))
        sibling = asyncio.create_task(built.generate(ask((1,) * 100, max_tokens=3)))
        for _ in range(5):
            await asyncio.sleep(0)
        reader.cancel()
        return await sibling

    completion = run(main())
    assert completion.tokens == run(engine().generate(ask((1,) * 100, max_tokens=3))).tokens
    assert 0 < built.stats.cached_prompt_tokens < 50


def test_a_deadline_is_the_callers_business() -> None:
    built = engine()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(built.generate(ask((1,), max_tokens=511)), timeout=0.02)
        built.load_weights(Toy(seed=1).state_dict(), 1)

    run(main())


def test_interrupting_the_event_loop_leaves_the_engine_usable() -> None:
    built = engine()

    async def leave() -> None:
        task = asyncio.create_task(built.generate(ask((1,), max_tokens=400)))
        await asyncio.sleep(0.01)
        assert not task.done()

    asyncio.run(leave())
    asked = ask((2,), max_tokens=4)
    assert run(built.generate(asked)) == run(engine().generate(asked))


def test_new_weights_drop_old_keys_and_values() -> None:
    built, other = engine(), Toy(seed=1)
    asked = ask(range(20), max_tokens=10)
    before = run(built.generate(asked))
    built.load_weights(other.state_dict(), 7)
    after = run(built.generate(asked))
    assert (before.policy_version, after.policy_version, built.policy_version) == (0, 7, 7)
    fresh = run(engine(other).generate(asked))
    assert (after.tokens, after.logprobs) == (fresh.tokens, fresh.logprobs)
    assert before.tokens != after.tokens


def test_reset_cache_drops_keys_and_values() -> None:
    built = engine()
    asked = ask(range(20), max_tokens=4)
    answers = [run(built.generate(asked)) for _ in range(2)]
    cached = built.stats.cached_prompt_tokens
    assert cached
    built.reset_cache()
    answers.append(run(built.generate(asked)))
    assert built.stats.cached_prompt_tokens == cached
    assert answers[0] == answers[2]
    assert answers[0].tokens == answers[1].tokens


def test_sync_copies_weights() -> None:
    built, other = engine(), Toy(seed=1)
    built.load_weights(other.state_dict(), 1)
    before = run(built.score((1,), (2, 3)))
    other.head.weight.zero_()
    assert run(built.score((1,), (2, 3))) == before


def test_sync_refuses_while_requests_are_in_flight() -> None:
    built = engine()

    async def main() -> None:
        task = asyncio.create_task(built.generate(ask((1,), max_tokens=50)))
        for passes in (1, 3):
            for _ in range(passes):
                await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="version 3 with 1 requests in flight; need none; await or cancel"):
                built.load_weights({}, 3)
            with pytest.raises(RuntimeError, match="reset_cache: called with 1 requests in flight; need none"):
                built.reset_cache()
        await task

    run(main())
    assert built.policy_version == 0


def test_sync_passes_the_models_refusal_on() -> None:
    built = engine()
    weights: Mapping[str, Tensor] = {"nonsense": torch.zeros(1)}
    with pytest.raises(ValueError, match="nonsense"):
        built.load_weights(weights, 1)
    assert built.policy_version == 0


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ((), "generate: got an empty prompt; need at least one token"),
        ((1,) * 16, "got a prompt of 16 tokens; need fewer than the context of 16 tokens; read less .a Window context"),
        ((1, 29), "got prompt tokens from 1 to 29; need 0 to 28, the model's vocabulary"),
        ((-1, 2), "got prompt tokens from -1 to 2; need 0 to 28"),
    ],
)
def test_prompts_that_cannot_be_completed(prompt: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(engine(context_tokens=16).generate(ask(prompt)))


@pytest.mark.parametrize(
    ("prompt", "continuation", "temperature", "message"),
    [
        ((1,) * 10, (1,) * 7, 1.0, "prompt of 10 and a continuation of 7 tokens; need at most 16 together"),
        ((1,), (), 1.0, "score: got an empty continuation; need at least one token"),
        ((1,), (99,), 1.0, "got continuation tokens from 99 to 99; need 0 to 28"),
        ((1,), (1,), 0.0, "score: got temperature 0.0; need at least 1e-05"),
    ],
)
def test_what_cannot_be_scored(
    prompt: tuple[int, ...], continuation: tuple[int, ...], temperature: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(engine(context_tokens=16).score(prompt, continuation, temperature))


def test_a_text_as_long_as_the_context_is_scored() -> None:
    assert len(run(engine(context_tokens=16).score((1,) * 9, (1,) * 7))) == 7


def test_closing_fails_what_is_in_flight_and_what_comes_later() -> None:
    built = engine()

    async def main() -> None:
        task = asyncio.create_task(built.generate(ask((1,), max_tokens=100)))
        await asyncio.sleep(0.01)
        await built.close()
        await built.close()
        with pytest.raises(EngineFault, match="was closed"):
            await task
        with pytest.raises(EngineFault, match="the engine is closed; build a new one"):
            await built.generate(ask((1,)))

    run(main())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"slots": 0}, "Local.slots: got 0; need at least 1"),
        ({"context_tokens": 1}, "Local.context_tokens: got 1; need at least 2"),
        ({"prefill_tokens": 0}, "Local.prefill_tokens: got 0; need at least 1"),
    ],
)
def test_settings_that_make_no_sense(config: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Local(**config)


def test_generation_without_a_compiler_says_so_and_writes_the_same(request: pytest.FixtureRequest) -> None:
    requests = [ask([1, 2, 3, 4] * 20, seed=seed) for seed in range(4)]
    wanted = together(engine(), requests)
    request.getfixturevalue("no_compiler")
    with pytest.warns(UserWarning, match=r"found no C\+\+ compiler \(no-such-compiler\); install"):
        got = together(engine(), requests)
    assert [completion.tokens for completion in got] == [completion.tokens for completion in wanted]
