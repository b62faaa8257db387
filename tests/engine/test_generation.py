import asyncio
import math
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import Toy, alone, ask, engine, run, teacher_forced, together
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from bough.engine import Completion, FinishReason, Request
from bough.engine.generation import LocalEngine
from bough.policy.check_architecture import check_architecture
from bough.policy.model import CausalModel
from bough.policy.replica import Replica

TOY = Toy()
SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


def _qwen() -> Qwen3ForCausalLM:
    config = Qwen3Config(vocab_size=31, num_key_value_heads=2, head_dim=16, max_position_embeddings=128, **SHAPE)
    return Qwen3ForCausalLM(config)


def _llama() -> LlamaForCausalLM:
    return LlamaForCausalLM(LlamaConfig(vocab_size=31, num_key_value_heads=4, max_position_embeddings=128, **SHAPE))


def _gpt2() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(vocab_size=31, n_positions=128, n_embd=32, n_layer=2, n_head=4))


def _prompts(count: int, low: int, high: int, seed: int = 0) -> list[tuple[int, ...]]:
    draw = random.Random(seed)
    return [tuple(draw.choices(range(29), k=draw.randint(low, high))) for _ in range(count)]


def _check(completion: Completion, request: Request, tolerance: float, model: Any = TOY) -> None:
    """Every number of a completion against one plain forward pass."""
    how = request.sampling
    rows = teacher_forced(model, request.prompt_tokens, completion.tokens, how.temperature, how.top_p)
    wanted = rows.gather(-1, torch.tensor(completion.tokens)[:, None])[:, 0]
    entropy = torch.special.entr(rows.exp()).sum(-1)
    got = torch.tensor([completion.logprobs, completion.entropies], dtype=torch.float64)
    torch.testing.assert_close(got, torch.stack([wanted, entropy]), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("make", [_qwen, _llama, _gpt2])
def test_greedy_equals_transformers_generate(make: Any) -> None:
    torch.manual_seed(0)
    model = make().double().eval()
    prompts = _prompts(6, 1, 40)
    wanted = [
        model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=24,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        for prompt in prompts
    ]
    causal = CausalModel(model)
    built = engine(Replica(causal, check_architecture(causal), 128))
    got = together(built, [ask(prompt, max_tokens=24, temperature=0.0) for prompt in prompts])
    assert [list(completion.tokens) for completion in got] == wanted
    assert got[0].logprobs == got[0].entropies == (0.0,) * 24


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 2), (4, 4), (3, 1)])
def test_numbers_equal_a_teacher_forced_pass(dtype: torch.dtype, tolerance: float, heads: int, kv_heads: int) -> None:
    model = Toy(dtype=dtype, heads=heads, kv_heads=kv_heads)
    how = [(1.0, 1.0), (0.7, 1.0), (1.0, 0.8), (1.4, 0.95)]
    requests = [
        ask(prompt, max_tokens=20, temperature=how[i % 4][0], top_p=how[i % 4][1], seed=i)
        for i, prompt in enumerate(_prompts(12, 1, 60))
    ]
    for completion, request in zip(together(engine(model), requests), requests, strict=True):
        _check(completion, request, tolerance, model)


def test_score_equals_what_generate_said() -> None:
    request = ask(_prompts(1, 40, 40)[0], max_tokens=30, temperature=0.7)
    for budget in (2048, 7):
        built = engine(TOY, prefill_tokens=budget)

        async def main(built: LocalEngine = built) -> tuple[Completion, tuple[float, ...], tuple[float, ...]]:
            first = await built.generate(request)
            score = built.score(request.prompt_tokens, first.tokens, 0.7)
            # Two scores and a completion in the same passes.
            again, plain, _ = await asyncio.gather(
                score, built.score(request.prompt_tokens, first.tokens), built.generate(request)
            )
            return first, again, plain

        completion, again, plain = run(main())
        assert again == pytest.approx(completion.logprobs, abs=1e-10)
        rows = teacher_forced(TOY, request.prompt_tokens, completion.tokens)
        wanted = rows.gather(-1, torch.tensor(completion.tokens)[:, None])[:, 0]
        assert plain == pytest.approx(wanted.tolist(), abs=1e-10)


def test_one_token_is_scored_after_one_token() -> None:
    one, two = run(engine(TOY).score_each((3,), ((4,), (5, 6))))
    assert one == pytest.approx(run(engine(TOY).score((3,), (4,))))
    assert two == pytest.approx(run(engine(TOY).score((3,), (5, 6))))
    assert run(engine(TOY).score((3,), (4,))) == pytest.approx((teacher_forced(TOY, (3,), (4,))[0, 4].item(),))


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 12), st.integers(0, 25)), min_size=1, max_size=14),
    st.integers(1, 6),
    st.integers(1, 40),
)
def test_joining_and_leaving_changes_nothing(
    schedule: list[tuple[int, int, int]], slots: int, prefill_tokens: int
) -> None:
    prompts = _prompts(6, 1, 50, seed=slots)
    requests = [
        ask(prompts[which], max_tokens=most, temperature=(0.0, 1.0, 0.6)[i % 3], stop=(3,), seed=i)
        for i, (which, most, _) in enumerate(schedule)
    ]
    built = engine(TOY, slots=slots, prefill_tokens=prefill_tokens)

    async def join(request: Request, passes: int) -> Completion:
        for _ in range(passes):
            await asyncio.sleep(0)
        return await built.generate(request)

    async def main() -> list[Completion]:
        late = zip(requests, schedule, strict=True)
        return await asyncio.gather(*(join(request, passes) for request, (_, _, passes) in late))

    for joined, single in zip(run(main()), alone(lambda: engine(TOY), requests), strict=True):
        assert joined.tokens == single.tokens
        assert joined.finish == single.finish
        assert joined.logprobs == pytest.approx(single.logprobs, abs=1e-10)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.integers(2, 9))
def test_growing_trees_from_a_cache_changes_nothing(seed: int, slots: int) -> None:
    built = engine(TOY, slots=slots)

    async def grow(context: tuple[int, ...], path: int, depth: int, grown: list[tuple[Request, Completion]]) -> None:
        request = ask(context, max_tokens=6, stop=(3, 4), seed=path)
        completion = await built.generate(request)
        grown.append((request, completion))
        if depth:
            draw = random.Random(path)
            # The window sometimes forgets the beginning: the context is then no extension of the one before.
            start = draw.choice([0, 0, 0, len(context) // 2])
            text = (*context, *completion.tokens)[start:]
            observations = [tuple(draw.choices(range(29), k=draw.randint(1, 30))) for _ in range(draw.randint(1, 3))]
            children = (
                grow((*text, *seen), path * 4 + i, depth - 1, grown) for i, seen in enumerate(observations, start=1)
            )
            await asyncio.gather(*children)

    async def main() -> list[tuple[Request, Completion]]:
        grown: list[tuple[Request, Completion]] = []
        root = _prompts(1, 1, 40, seed=seed)[0]
        await asyncio.gather(*(grow(root, seed * 10 + i, 2, grown) for i in range(2)))
        return grown

    for request, completion in run(main()):
        _check(completion, request, 1e-9)
        expected = run(engine(TOY).generate(request))
        assert completion.tokens == expected.tokens


def test_siblings_read_their_prompt_once() -> None:
    model = Toy()
    built = engine(model)
    shared, other = (tuple(range(20)) * 5), (tuple(range(5, 25)) * 5)
    requests = [ask(prompt, max_tokens=4, seed=i) for i in range(8) for prompt in (shared, other)]
    together(built, requests)
    # Both prompts in one pass; then their last tokens for the seven siblings of each, beside two that decode.
    assert model.passes[:2] == [200, 16]
    assert (built.stats.prompt_tokens, built.stats.cached_prompt_tokens) == (1600, 14 * 99)
    assert built.stats.generated_tokens == 64
    assert built.stats.passes == len(model.passes) == 5


def test_the_next_turn_reads_only_what_is_new() -> None:
    model = Toy()
    built = engine(model)
    first = run(built.generate(ask(range(20), max_tokens=5)))
    model.passes.clear()
    run(built.generate(ask((*range(20), *first.tokens, 7, 7, 7), max_tokens=1)))
    # The last sampled token had not been read yet.
    assert model.passes == [4]


def test_branches_of_one_turn_share_it() -> None:
    model = Toy()
    built = engine(model)
    first = run(built.generate(ask(range(25), max_tokens=5)))
    model.passes.clear()
    text = (*range(25), *first.tokens)
    together(built, [ask((*text, 20 + i, i), max_tokens=1, seed=i) for i in range(4)])
    assert sum(model.passes) == 4 * 3


def test_a_common_beginning_of_different_prompts_is_read_once() -> None:
    model = Toy()
    together(engine(model), [ask((*range(20), i, i, i), max_tokens=1) for i in range(4)])
    assert model.passes == [23, 9]


def test_long_prompts_are_read_in_pieces_beside_those_that_decode() -> None:
    model = Toy()
    built = engine(model, prefill_tokens=16)
    requests = [ask((i,) * 50, max_tokens=6, seed=i) for i in range(2)]
    completions = together(built, requests)
    # The first prompt is read in 16 + 16 + 16 + 2; what is left of the fourth pass goes to the second prompt.
    assert model.passes == [16, 16, 16, 2 + 14, 1 + 16, 1 + 16, 1 + 4, 1 + 1, 1 + 1, 1, 1, 1]
    for completion, request in zip(completions, requests, strict=True):
        _check(completion, request, 1e-10)


def test_draws_depend_on_the_seed_and_the_prompt() -> None:
    requests = [ask((1, 2, 3), max_tokens=12, seed=seed) for seed in (0, 1, 2, 0, -1, 2**63)]
    tokens = [completion.tokens for completion in together(engine(TOY), requests)]
    assert tokens[0] == tokens[3]
    assert len(set(tokens)) == 5


def test_frequencies_of_first_tokens_match_the_model() -> None:
    built = engine(TOY, slots=256)
    n = 4000
    first = [c.tokens[0] for c in together(built, [ask((4, 9), max_tokens=1, seed=s) for s in range(n)])]
    wanted = teacher_forced(TOY, (4, 9), (0,))[0].exp()
    common = wanted * n >= 5
    seen = torch.tensor(first).bincount(minlength=29)
    chi_square = float(((seen - wanted * n) ** 2 / (wanted * n))[common].sum())
    freedom = int(common.sum()) - 1
    assert freedom >= 3
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)


def test_endings() -> None:
    free = run(engine(TOY).generate(ask((1, 2), max_tokens=20, seed=5)))
    assert free.finish is FinishReason.LENGTH
    assert len(free.tokens) == 20
    stop = free.tokens[7]
    stopped = run(engine(TOY).generate(ask((1, 2), max_tokens=20, seed=5, stop=(28, stop))))
    assert stopped.finish is FinishReason.STOP
    assert stopped.tokens == free.tokens[: free.tokens.index(stop) + 1]
    # A stop token drawn at the very end is a stop.
    last = ask((1, 2), max_tokens=free.tokens.index(stop) + 1, seed=5, stop=(stop,))
    assert run(engine(TOY).generate(last)).finish is FinishReason.STOP


def test_the_context_ends_a_completion() -> None:
    built = engine(TOY, context_tokens=10)
    assert built.context_tokens == 10
    for prompt_tokens in (1, 5, 9):
        completion = run(built.generate(ask(range(prompt_tokens), max_tokens=20)))
        assert len(completion.tokens) == 10 - prompt_tokens
        assert completion.finish is FinishReason.LENGTH
    whole = Toy(context_tokens=140)
    request = ask((1,) * 100, max_tokens=100)
    completion = run(engine(whole).generate(request))
    assert len(completion.tokens) == 40
    _check(completion, request, 1e-10, whole)


def test_entropies_only_when_asked_for() -> None:
    request = ask((1,))
    quiet = replace(request, sampling=replace(request.sampling, entropies=False))
    with_them, without = together(engine(TOY), [request, quiet])
    assert without == replace(with_them, entropies=None)


def test_more_requests_than_slots_all_finish() -> None:
    requests = [ask(prompt, max_tokens=5, seed=i) for i, prompt in enumerate(_prompts(40, 1, 30))]
    crowded = together(engine(TOY, slots=3), requests)
    assert [c.tokens for c in crowded] == [c.tokens for c in alone(lambda: engine(TOY), requests)]


@pytest.mark.parametrize("order", range(3))
def test_deterministic_mode_is_bit_equal_however_requests_come(order: int) -> None:
    model = Toy(dtype=torch.float32)
    prompts = _prompts(4, 1, 60)
    requests = [ask(prompts[i % 4], max_tokens=10, temperature=0.8, top_p=0.9, seed=i) for i in range(12)]
    wanted = alone(lambda: engine(model, deterministic=True), requests)
    shuffled = list(range(12))
    random.Random(order).shuffle(shuffled)
    built = engine(model, deterministic=True, slots=1 + 7 * order)
    got = together(built, [requests[i] for i in shuffled])
    assert got == [wanted[i] for i in shuffled]
    assert built.stats.cached_prompt_tokens == 0

    async def staggered() -> list[Completion]:
        async def late(i: int) -> Completion:
            for _ in range(i * order):
                await asyncio.sleep(0)
            return await built.generate(requests[i])

        return await asyncio.gather(*(late(i) for i in range(12)))

    assert run(staggered()) == wanted
    prompt = requests[0].prompt_tokens
    assert run(built.score(prompt, wanted[0].tokens)) == run(
        engine(model, deterministic=True).score(prompt, wanted[0].tokens)
    )


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_alternatives_are_the_likeliest_of_the_raw_distribution(temperature: float) -> None:
    """Beside a request that does not ask, and whatever the temperature and top-p."""
    model, prompt = Toy(), (3, 1, 4, 1, 5)
    plain = ask(prompt, temperature=temperature, top_p=0.8, seed=1)
    asking = replace(plain, sampling=replace(plain.sampling, top_probs=4))
    without, completion, other = together(engine(model), [plain, asking, ask((2, 7), seed=5)])
    assert without.top_probs is None
    assert other.top_probs is None
    assert completion.top_probs is not None
    assert without.tokens == completion.tokens
    rows = teacher_forced(model, prompt, completion.tokens).exp()
    assert len(completion.top_probs) == len(completion.tokens) == len(rows)
    for row, likely in zip(rows, completion.top_probs, strict=True):
        best = row.topk(4)
        assert [token for token, _ in likely] == best.indices.tolist()
        assert [chance for _, chance in likely] == pytest.approx(best.values.tolist(), abs=1e-9)


def test_there_are_no_more_alternatives_than_tokens() -> None:
    asking = ask((3, 1), seed=1, max_tokens=2)
    asking = replace(asking, sampling=replace(asking.sampling, top_probs=99))
    (completion,) = together(engine(), [asking])
    assert [len(likely) for likely in completion.top_probs] == [29, 29]
