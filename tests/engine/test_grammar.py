"""A grammar while sampling: which tokens, and with which log-probability."""

import asyncio
import json
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from toys import plain

from bough.context import AdmissibleAction, ToolCalls
from bough.engine import Completion, FinishReason, Local, Request, Sampling
from bough.engine.generation import LocalEngine
from bough.engine.messages import Messages
from bough.grammar import Grammar
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.tree import Tool

COMMANDS = ("go left", "go right", "look")
SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["buy", "sell"]}, "count": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["name", "count"],
    "additionalProperties": False,
}


@cache
def policy() -> Policy:
    texts = [*COMMANDS, '{"name":"buy","count":12}', '{"name":"sell","count":3}']
    return Tiny(layers=1, width=16, heads=2, vocab_tokens=300, context_tokens=128, dtype="float64").build(texts * 3)


def request(grammar: Grammar | None, seed: int = 0, **sampling: float) -> Request:
    return Request(
        prompt_tokens=tuple(range(20, 30)),
        sampling=Sampling(**{"max_tokens": 60, **sampling}),  # type: ignore[arg-type]
        stop_tokens=policy().renderer.stop_tokens,
        seed=seed,
        grammar=grammar,
    )


def generate(requests: Sequence[Request], **settings: int) -> list[Completion]:
    async def main() -> list[Completion]:
        engine = Local(**settings).build(policy())  # type: ignore[arg-type]
        try:
            return await asyncio.gather(*map(engine.generate, requests))
        finally:
            await engine.close()

    return asyncio.run(main())


def members(packed: bytes | None) -> np.ndarray:
    assert packed is not None
    return np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").astype(np.bool_)[:VOCAB]


VOCAB = len(policy().head()[0])


def logits(tokens: Sequence[int]) -> torch.Tensor:
    """[n, V] of the model itself, after each token."""
    model, text = policy().replica(), torch.tensor(tokens)

    def attend(
        layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, **_: object
    ) -> torch.Tensor:
        return plain(layer, query, key, value, scale)

    return model.logits(model.hidden(text, torch.arange(len(text)), attend))


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.6}, {"top_p": 0.7}, {"temperature": 0.0}])
def test_log_probabilities_are_those_among_the_allowed_tokens(sampling: dict[str, float]) -> None:
    asked = [request(Grammar.of_texts(COMMANDS), seed, **sampling) for seed in range(12)]
    for each, found in zip(asked, generate(asked), strict=True):
        assert policy().renderer.text(found.tokens) in COMMANDS
        assert found.finish is FinishReason.STOP
        assert found.allowed is not None
        assert found.logprobs is not None
        assert found.entropies is not None
        rows = logits((*each.prompt_tokens, *found.tokens))[len(each.prompt_tokens) - 1 :]
        for at, token in enumerate(found.tokens):
            inside = torch.as_tensor(members(found.allowed[at]))
            assert inside[token]
            assert 0 < int(inside.sum()) < VOCAB
            exact = (rows[at] / (sampling.get("temperature") or 1.0)).masked_fill(~inside, -torch.inf).softmax(-1)
            if (most := sampling.get("top_p", 1.0)) < 1:
                ordered, order = exact.sort(descending=True, stable=True)
                exact[order[ordered.cumsum(0) - ordered >= most]] = 0.0
                exact = exact / exact.sum()
            greedy = sampling.get("temperature") == 0
            assert found.logprobs[at] == pytest.approx(0.0 if greedy else float(exact[token].log()), abs=1e-6)
            nats = 0.0 if greedy else float(torch.special.entr(exact).sum())
            assert found.entropies[at] == pytest.approx(nats, abs=1e-6)


def test_each_text_has_its_probability_among_the_texts() -> None:
    """Two texts of one token each: what is sampled, counted, against the two logits."""
    grammar = Grammar.of_texts(["a", "b"])
    asked = [request(grammar, seed) for seed in range(300)]
    found = generate(asked, slots=300)
    sums = dict[tuple[int, ...], float]()
    for each in found:
        assert each.logprobs is not None
        sums[each.tokens] = float(np.exp(sum(each.logprobs)))
    # Each way to write one of the texts in tokens, and nothing else.
    assert {policy().renderer.text(tokens) for tokens in sums} == {"a", "b"}
    assert sum(sums.values()) == pytest.approx(1.0, abs=1e-6)
    share = sum(policy().renderer.text(each.tokens) == "a" for each in found) / len(found)
    exact = sum(value for tokens, value in sums.items() if policy().renderer.text(tokens) == "a")
    assert abs(share - exact) < 5 * (exact * (1 - exact) / len(found)) ** 0.5


def test_a_schema() -> None:
    found = generate([request(Grammar.of_schema(SCHEMA), seed) for seed in range(20)])
    read = [json.loads(policy().renderer.text(each.tokens)) for each in found]
    assert {row["name"] for row in read} == {"buy", "sell"}
    assert all(1 <= row["count"] <= 99 for row in read)


def test_requests_with_and_without_a_grammar_share_a_pass() -> None:
    asked = [request(Grammar.of_texts(COMMANDS) if seed % 2 else None, seed) for seed in range(8)]
    together, alone = generate(asked), [generate([each])[0] for each in asked]
    for each, one, other in zip(asked, together, alone, strict=True):
        assert one.tokens == other.tokens
        assert (one.allowed is None) == (each.grammar is None)


def test_a_completion_goes_on_from_what_has_begun() -> None:
    begun = policy().renderer.write("go left")[:1]
    asked = [
        replace(each, prompt_tokens=(*each.prompt_tokens, *begun), begun_tokens=len(begun))
        for each in (request(Grammar.of_texts(COMMANDS), seed) for seed in range(6))
    ]
    texts = {policy().renderer.text((*begun, *each.tokens)) for each in generate(asked)}
    assert texts == {"go left", "go right"}
    wrong = policy().renderer.write("sell")
    with pytest.raises(ValueError, match=r"got \d+ begun tokens that the grammar does not allow at the beginning"):
        generate([replace(asked[0], prompt_tokens=(20, *wrong), begun_tokens=len(wrong))])


def test_a_model_in_another_process() -> None:
    """What processes send each other: the model with its tokenizer, a request, a completion."""
    asked = [request(Grammar.of_texts(COMMANDS), seed) for seed in range(4)]
    wanted = generate(asked)

    async def main() -> list[Completion]:
        engine = LocalEngine(Local(), pickle.loads(pickle.dumps(policy().replica())))
        return await asyncio.gather(*map(engine.generate, pickle.loads(pickle.dumps(asked))))

    assert pickle.loads(pickle.dumps(asyncio.run(main()))) == wanted


@pytest.mark.parametrize(
    ("grammar", "stops", "message"),
    [
        (Grammar("start: ("), True, r"got the grammar 'start: \(', which can't be read"),
        (Grammar.of_texts(COMMANDS), False, "got a grammar without stop tokens"),
    ],
)
def test_what_can_not_be_followed_is_refused(grammar: Grammar, stops: bool, message: str) -> None:
    asked = request(grammar)
    with pytest.raises(ValueError, match=message):
        generate([asked if stops else replace(asked, stop_tokens=())])


def test_more_texts_than_the_library_has_alternatives() -> None:
    texts = [f"take item {at} from shelf {at % 13}" for at in range(2500)]
    (found,) = generate([request(Grammar.of_texts(texts))])
    assert policy().renderer.text(found.tokens) in texts


def test_a_grammar_that_grows_too_large_fails_its_own_request_alone() -> None:
    large = Grammar(f"start: {' | '.join(json.dumps(f'go {at}') for at in range(2500))}\n")

    async def main() -> list[Completion | BaseException]:
        engine = Local().build(policy())
        asked = [request(Grammar.of_texts(COMMANDS)), request(large), request(None)]
        try:
            return await asyncio.gather(*map(engine.generate, asked), return_exceptions=True)
        finally:
            await engine.close()

    followed, refused, free = asyncio.run(main())
    assert [followed, free] == generate([request(Grammar.of_texts(COMMANDS)), request(None)])
    assert isinstance(refused, ValueError)
    assert "got a schema or grammar that can't be followed" in str(refused)


def test_without_llguidance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'bough-rl\[grammar\]'"):
        generate([request(Grammar.of_texts(COMMANDS))])


def test_what_is_no_grammar_is_named() -> None:
    tool = Tool(name="find", description="", schema={})
    for made, message in (
        (lambda: Grammar.of_texts([]), r"of_texts: got \[\]; need a list of at least one text"),
        (lambda: Grammar.of_texts("left"), "of_texts: got 'left'; need a list"),
        (lambda: Grammar.of_texts([1]), "of_texts: got 1 among the texts; need texts alone"),  # type: ignore[list-item]
        (lambda: Grammar.of_schema("x"), "got the schema 'x'; need a JSON schema as a mapping"),  # type: ignore[arg-type]
        (lambda: Grammar.of_schema({"a": {1}}), "got a schema that JSON can't write"),
        (lambda: AdmissibleAction().restrict(policy().renderer, (), ["go "]), "got the valid action 'go '; need"),
        (
            lambda: ToolCalls(grammar=True).restrict(Messages(), (tool,), ()),
            r"ToolCalls.grammar: got a chat server, .*=f",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            made()
