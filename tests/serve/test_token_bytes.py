from collections.abc import Callable

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from bough.policy.chat import ChatRenderer
from bough.policy.vocabulary import small_tokenizer
from bough.serve.token_bytes import piece_bytes, token_bytes

CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKS = [AddedToken(mark, special=True, normalized=False) for mark in ("<|im_start|>", "<|im_end|>")]


def byte_level() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        ["go left 日本 日本"],
        trainers.BpeTrainer(vocab_size=270, initial_alphabet=alphabet, show_progress=False, special_tokens=MARKS),
    )
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", chat_template=CHAT)


def byte_fallback() -> PreTrainedTokenizerFast:
    texts = [f"<0x{byte:02X}>" for byte in range(256)] + ["\u2581", *"abcdefghijklmnopqrstuvwxyzé\n|<>_"]
    raw = Tokenizer(models.BPE(vocab={text: at for at, text in enumerate(texts)}, merges=[], byte_fallback=True))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    raw.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    raw.add_special_tokens(MARKS)
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", chat_template=CHAT)


TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "bytes": byte_level,
    "fallback": byte_fallback,
    "small": lambda: small_tokenizer(["go left é"], 300, None),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", ["go left", "ok é", "日本 🙂", "a\n b", "éé 本🙂🙂x", "\ufffd", ""])
def test_the_bytes_of_tokens_are_those_of_the_text(name: str, text: str) -> None:
    renderer = ChatRenderer(TOKENIZERS[name](), template={})
    tokens = renderer.write(text)
    each = token_bytes(renderer, tokens)
    assert len(each) == len(tokens)
    assert b"".join(each) == text.encode() == renderer.text(tokens).encode()
    alone = [piece_bytes(renderer, token) for token in tokens]
    assert text == "\ufffd" or "\ufffd".encode() not in (*each, *alone)


def test_a_character_that_is_cut_off_has_its_bytes() -> None:
    renderer = ChatRenderer(byte_fallback(), template={})
    tokens = renderer.write("a🙂")[:-3]
    assert [each for each in token_bytes(renderer, tokens) if each] == [b"a", b"\xf0", b"\x9f"]
