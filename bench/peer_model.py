"""The model of bench/peers.py as a folder that every library reads: random weights, and a word for every token."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils.logging import disable_progress_bar

from peer_shapes import MARKS, SIZES

TEMPLATE = "{% for message in messages %}{{ message['content'] }}<end>{% endfor %}"


def write_model(folder: Path) -> None:
    """Write the same model every time."""
    torch.manual_seed(0)
    disable_progress_bar()
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=SIZES.vocab_tokens,
            hidden_size=SIZES.width,
            intermediate_size=SIZES.inner,
            num_hidden_layers=SIZES.layers,
            num_attention_heads=SIZES.heads,
            num_key_value_heads=SIZES.kv_heads,
            head_dim=SIZES.head_width,
            max_position_embeddings=SIZES.context_tokens,
            tie_word_embeddings=True,
            eos_token_id=None,
            bos_token_id=None,
        )
    )
    model.save_pretrained(folder)
    pad, end = MARKS
    words = [*MARKS, *(f"w{token}" for token in range(len(MARKS), SIZES.vocab_tokens))]
    # A Unigram or BPE model would merge words; here a text has as many tokens as words.
    plain = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token=pad))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token=pad, eos_token=end, unk_token=pad, chat_template=TEMPLATE
    )
    tokenizer.save_pretrained(folder)
