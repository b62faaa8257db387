"""A small Llama as a GGUF file, in blocks of 8 bits, as llama.cpp writes it."""

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
from transformers import AutoModelForCausalLM, AutoTokenizer

BLOCKS = gguf.GGMLQuantizationType.Q8_0


def write(
    folder: Path,
    file: Path,
    chat_template: str | None = None,
    *,
    keeps: Callable[[str], bool] = lambda _: True,
    layers: int | None = None,
    parts: int = 1,
) -> Path:
    """Write the model in `folder` to `file`, and round the folder's weights to those that the file holds.

    `keeps` is false for the tensors to leave out; `layers` and `parts` are what the file's fields say.
    """
    model = AutoModelForCausalLM.from_pretrained(folder)
    config, state = model.config, model.state_dict()
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(layers or config.num_hidden_layers)
    writer.add_uint16("split.count", parts)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, folder, config.vocab_size, chat_template)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, tensor in state.items():
        weights = tensor.numpy()
        stem, _, kind = name.rpartition(".")
        quantised = weights.ndim == 2 and weights.shape[1] % 32 == 0
        if quantised:
            weights = gguf.dequantize(gguf.quantize(weights, BLOCKS), BLOCKS)
            tensor.copy_(tensor.new_tensor(weights))
        if count := heads.get(stem.rpartition(".")[2]):
            weights = _interleave(weights, count)
        target = f"{names.get_name(stem)}.{kind}"
        if not keeps(target):
            continue
        if quantised:
            writer.add_tensor(target, gguf.quantize(weights, BLOCKS), raw_dtype=BLOCKS)
        else:
            writer.add_tensor(target, weights)
    model.save_pretrained(folder)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path, vocab_tokens: int, chat_template: str | None) -> None:
    bpe = json.loads((folder / "tokenizer.json").read_text())
    special = {each["content"] for each in bpe["added_tokens"]}
    tokens = sorted(bpe["model"]["vocab"], key=bpe["model"]["vocab"].get)
    tokens += [f"[unused{place}]" for place in range(len(tokens), vocab_tokens)]
    kinds = [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in bpe["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_chat_template(chat_template or tokenizer.chat_template)


def _interleave(weights: np.ndarray, heads: int) -> np.ndarray:
    """The order of rows in which llama.cpp rotates neighbours instead of halves."""
    rows, columns = weights.shape
    return weights.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
