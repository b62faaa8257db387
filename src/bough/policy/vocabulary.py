"""A tokenizer trained on the text of a small environment: one token per word or symbol, blanks included."""

import os
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END = "<|end|>"
MARKS = ("<|system|>", "<|user|>", "<|assistant|>", END)

TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role not in ['system', 'user', 'assistant'] -%}"
    "{{- raise_exception('the role of a message is system, user or assistant') -}}"
    "{%- endif -%}"
    "{{- '<|' + message.role + '|>' + message.content -}}"
    "{%- if message.role == 'assistant' -%}{{- '<|end|>' -}}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)
"""A chat template that adds one token to a message, and the end of turn to the assistant's."""

PIECES = r" ?\n| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]|[^\S\n]"
"""A line break, a word, a digit, a symbol (each with the blank before it), or any other blank."""

ZERO = "\u0100"
"""How a byte-level vocabulary writes the zero byte."""

BLANKS = (("\n", " "), *((mark, after) for after in ("\0 ", "\0") for mark in MARKS))
"""Pairs: a text, and the text that decoding removes after it."""

FILE = "tokenizer.json"


def small_tokenizer(texts: Iterable[str], vocab_tokens: int, assets: Path | None) -> PreTrainedTokenizerFast:
    """The tokenizer in the folder `assets`, or, when there is none, one trained on `texts` and then written there.

    Raises:
        ValueError: when the tokenizer in `assets` can't be read, or is not of this kind; the message has the file.
    """
    file = None if assets is None else assets / FILE
    if file is not None and file.exists():
        tokenizer = _read(file)
    else:
        tokenizer = train(texts, vocab_tokens)
        if file is not None:
            _write(tokenizer, file)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END,
        extra_special_tokens=list(MARKS),
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def train(texts: Iterable[str], vocab_tokens: int) -> Tokenizer:
    """Learn a byte-level BPE vocabulary of at most `vocab_tokens` tokens; the same texts give the same one.

    Decoding restores every text exactly. A word or a symbol between blanks is one token at every position in a line:
    the tokenizer adds a blank before the text and after each line break, and decoding removes it. The same holds
    after a mark. Decoding appends a zero byte to each mark, which distinguishes a mark from equal text.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(" "), normalizers.Replace("\n", "\n ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            *(decoders.Replace(mark, f"{mark}{ZERO}") for mark in MARKS),
            decoders.ByteLevel(),
            *(decoders.Replace(f"{before}{after}", before) for before, after in BLANKS),
            decoders.Strip(" ", 1, 0),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(mark, special=True, normalized=False) for mark in MARKS],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _read(file: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises plain exceptions
        raise ValueError(f"{file}: got {error}; need a tokenizer: delete the file to train it again") from error
    missing = [mark for mark in MARKS if tokenizer.token_to_id(mark) is None]
    if missing:
        raise ValueError(f"{file}: got no token {missing[0]}; need Tiny's tokenizer: delete the file to train it again")
    return tokenizer


def _write(tokenizer: Tokenizer, file: Path) -> None:
    """Write the file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    tokenizer.save(str(partial))
    partial.replace(file)
