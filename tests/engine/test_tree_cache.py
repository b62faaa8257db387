"""The cache as a tree: what a fork costs, what a budget holds, and that neither changes a number."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jaxtyping import Float
from torch import Tensor
from toys import Toy, ask, engine, run, teacher_forced, together

from bough.engine import Completion, Local, Request
from bough.engine.attention import KernelAttention, PagedAttention, TorchAttention
from bough.engine.generation import LocalEngine
from bough.engine.kv_cache import KVCache
from bough.engine.pages import PAGE_TOKENS

TOY = Toy()


@dataclass
class Seen:
    """Counts of every cache: tokens written to the first layer, and the most tokens reserved."""

    written: int = 0
    reserved: int = 0


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen()
    reserve = KVCache.reserve

    def counting(kind: type[PagedAttention]) -> Callable[..., None]:
        write = kind._write

        def counted(
            self: PagedAttention, layer: int, key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]
        ) -> None:
            found.written += key.shape[1] * (layer == 0)
            write(self, layer, key, value)

        return counted

    def measured(self: KVCache, tokens: int) -> None:
        reserve(self, tokens)
        found.reserved = max(found.reserved, self.tokens)

    for kind in (KernelAttention, TorchAttention):
        monkeypatch.setattr(kind, "_write", counting(kind))
    monkeypatch.setattr(KVCache, "reserve", measured)
    return found


def _check(completion: Completion, request: Request, tolerance: float = 1e-10) -> None:
    rows = teacher_forced(TOY, request.prompt_tokens, completion.tokens)
    wanted = rows.gather(-1, torch.tensor(completion.tokens)[:, None])[:, 0]
    assert completion.logprobs == pytest.approx(wanted.tolist(), abs=tolerance)


def test_a_fork_writes_its_new_tokens_and_nothing_else(seen: Seen) -> None:
    built = engine(TOY)
    prompt = tuple(range(20)) * 8
    first = run(built.generate(ask(prompt, max_tokens=10)))
    # The last sampled token of a completion is not read.
    assert seen.written == 160 + 9
    text = (*prompt, *first.tokens)
    together(built, [ask((*text, i), max_tokens=4, seed=i) for i in range(8)])
    assert seen.written == 169 + 8 * (1 + 1 + 3)
    # From the middle of a page, of a fork.
    together(built, [ask((*text[:100], i, i), max_tokens=4, seed=i) for i in range(20, 28)])
    assert seen.written == 209 + 8 * (2 + 3)


def test_siblings_share_memory(seen: Seen) -> None:
    together(engine(TOY), [ask(tuple(range(25)) * 16, max_tokens=20, seed=i) for i in range(32)])
    # 400 tokens once, and a page for each; not 32 times 420.
    assert seen.reserved <= 2 * (400 + 32 * PAGE_TOKENS)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6), st.sampled_from([None, 4, 5, 9]), st.integers(1, 7), st.sampled_from([5, 2048]))
@example(120403, None, 3, 5)  # goes on, in the middle of a page, to its next
def test_any_growth_under_any_budget(seen: Seen, seed: int, pages: int | None, slots: int, prefill_tokens: int) -> None:
    """Forks anywhere, of forks, while their parents go on; cancelled ones; more than fits."""
    draw, most = random.Random(seed), None if pages is None else pages * PAGE_TOKENS + 7
    seen.reserved = 0
    built = engine(TOY, slots=slots, cache_tokens=most, prefill_tokens=prefill_tokens)
    texts: list[tuple[int, ...]] = [tuple(draw.choices(range(29), k=draw.randint(1, 120)))]
    answers: list[tuple[Request, Completion]] = []

    async def one(number: int) -> None:
        for _ in range(draw.randint(0, 8)):
            await asyncio.sleep(0)
        text = draw.choice(texts)[:200]
        fork = draw.choice([1, len(text), draw.randint(1, len(text)), draw.randint(1, len(text))])
        new = tuple(draw.choices(range(29), k=draw.randint(0, 20)))
        request = ask((*text[:fork], *new), max_tokens=draw.randint(1, 20), stop=(3,), seed=number)
        call = asyncio.create_task(built.generate(request))
        if draw.random() < 0.2:
            await asyncio.sleep(0)
            call.cancel()
            return
        completion = await call
        answers.append((request, completion))
        texts.append((*request.prompt_tokens, *completion.tokens))

    async def main() -> None:
        for turn in range(3):
            await asyncio.gather(*(one(turn * 100 + i) for i in range(6)))

    run(main())
    for request, completion in answers:
        _check(completion, request)
    assert most is None or seen.reserved <= most


@pytest.mark.parametrize("pages", [None, 40, 14])
def test_chains_that_take_turns_keep_their_texts(seen: Seen, pages: int | None) -> None:
    built = engine(TOY, slots=8, cache_tokens=None if pages is None else pages * PAGE_TOKENS)
    prompt = tuple(range(20)) * 4
    asked: list[tuple[Request, Completion]] = []

    async def chain(number: int) -> None:
        text = (*prompt[: 80 - number % 2], number)
        for turn in range(6):
            request = ask(text, max_tokens=4, seed=10 * number + turn)
            completion = await built.generate(request)
            asked.append((request, completion))
            text = (*text, *completion.tokens, *((number + turn + i) % 29 for i in range(40 + number)))

    async def main() -> None:
        await asyncio.gather(*(chain(number) for number in range(8)))

    run(main())
    assert pages is None or seen.reserved <= pages * PAGE_TOKENS
    for request, completion in asked:
        _check(completion, request)


def test_a_budget_for_one_serves_many_one_after_the_other(seen: Seen) -> None:
    asked = [ask((i,) * 100, max_tokens=28, seed=i) for i in range(4)]
    wanted = [run(engine(TOY).generate(one)).tokens for one in asked]
    seen.reserved = 0
    model = Toy()
    built = engine(model, cache_tokens=2 * PAGE_TOKENS)
    completions = together(built, asked)
    assert [c.tokens for c in completions] == wanted
    assert max(model.passes) == 100
    assert seen.reserved <= 2 * PAGE_TOKENS


def test_a_large_request_is_not_overtaken_for_ever() -> None:
    built = engine(TOY, cache_tokens=4 * PAGE_TOKENS)
    done: list[str] = []

    async def call(name: str, request: Request) -> None:
        await built.generate(request)
        done.append(name)

    async def main() -> None:
        small = [call(f"small {i}", ask((i,), max_tokens=5 + i, seed=i)) for i in range(4)]
        large = call("large", ask((7,) * 200, max_tokens=5))
        later = [call(f"later {i}", ask((i, i), max_tokens=40, seed=i)) for i in range(4)]
        await asyncio.gather(*small, large, *later)

    run(main())
    assert done.index("large") == 4


def test_the_oldest_that_no_one_needs_goes_first() -> None:
    built = engine(TOY, cache_tokens=6 * PAGE_TOKENS)
    texts = [tuple(random.Random(i).choices(range(29), k=100)) for i in range(4)]

    def go_on(which: int) -> int:
        """One more turn of a text; tells how much of it was still there."""
        before = built.stats.cached_prompt_tokens
        completion = run(built.generate(ask(texts[which], max_tokens=4)))
        texts[which] += (*completion.tokens, which)
        return built.stats.cached_prompt_tokens - before

    assert [go_on(which) for which in (0, 1, 2, 0)] == [0, 0, 0, 103]
    # Each holds two pages of six; the second is now the oldest.
    assert [go_on(which) for which in (3, 2, 0, 3)] == [0, 103, 108, 103]
    assert go_on(1) == 0


def test_what_was_evicted_is_read_anew_with_the_same_result() -> None:
    asked = [ask((i,) * 90, max_tokens=9, seed=i) for i in range(6)]
    built = engine(TOY, cache_tokens=3 * PAGE_TOKENS)
    for one in (*asked, *asked):
        _check(run(built.generate(one)), one)
    assert built.stats.cached_prompt_tokens < 90


def _refused(built: LocalEngine, request: Request, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(built.generate(request))


def test_what_the_cache_could_never_hold_is_refused() -> None:
    built = engine(TOY, cache_tokens=2 * PAGE_TOKENS + 1)
    message = "got up to 129 tokens of prompt and completion; need at most 128, .*; raise Local.cache_tokens"
    _refused(built, ask((1,) * 99, max_tokens=30), "generate: " + message)
    assert len(run(built.generate(ask((1,) * 99, max_tokens=29))).tokens) == 29
    with pytest.raises(ValueError, match="score: " + message):
        run(built.score((1,) * 99, (2,) * 31))
    # The context ends a completion before the cache does.
    short = engine(TOY, cache_tokens=2 * PAGE_TOKENS, context_tokens=128)
    assert len(run(short.generate(ask((1,) * 99, max_tokens=400))).tokens) == 29
    with pytest.raises(ValueError, match=f"Local.cache_tokens: got 3; need at least {PAGE_TOKENS}, or None"):
        Local(cache_tokens=3)
