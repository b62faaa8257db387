"""The alternatives of an answer."""

from bough.engine import Completion, FinishReason
from bough.serve.choice import Choice, TokenTexts
from bough.serve.dialects.chat.answer import chat_choice


class Letters:
    """A renderer that counts how often it decodes."""

    def __init__(self) -> None:
        self.decoded = 0

    def text(self, tokens: "list[int] | tuple[int, ...]") -> str:
        self.decoded += 1
        return "".join(chr(97 + token) for token in tokens)


def test_each_alternative_is_decoded_once() -> None:
    tokens = tuple(range(20)) * 5
    top = tuple(tuple((other, 0.05) for other in range(20)) for _ in tokens)
    completion = Completion(
        tokens=tokens,
        logprobs=(0.0,) * len(tokens),
        entropies=None,
        finish=FinishReason.STOP,
        policy_version=0,
        top_probs=top,
    )
    renderer = Letters()
    texts = TokenTexts(renderer)  # type: ignore[arg-type]
    for index in range(4):
        choice = Choice(prompt_tokens=(1,), completion=completion)
        found = chat_choice(texts, index, choice, logprobs=True, token_ids=False)
        entry = found["logprobs"]["content"][3]
        assert entry["token"] == "d"
        assert [each["token"] for each in entry["top_logprobs"]] == list("abcdefghijklmnopqrst")
        assert entry["top_logprobs"][1]["bytes"] == [98]
    # 4 x 100 tokens with 20 alternatives each: decoding every one would be 8,000 calls.
    assert renderer.decoded < 4000
