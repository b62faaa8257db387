"""Small checkpoints in the formats that people have, with random weights and real-looking chat templates."""

from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

# Models this small are slower on several threads.
torch.set_num_threads(1)

CHATML = (
    "{%- if messages[0]['role'] != 'system' -%}{{- '<|im_start|>system\nYou are helpful.<|im_end|>\n' -}}{%- endif -%}"
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
# As Qwen3's: what the assistant thought before the last user message is dropped.
THINKING = (
    "{%- for message in messages -%}"
    "{%- set content = message.content -%}"
    "{%- if message.role == 'assistant' and '</think>' in content and loop.index0 < messages|length - 1 -%}"
    "{%- set content = content.split('</think>')[-1].lstrip('\n') -%}"
    "{%- endif -%}"
    "{{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}"
    "{%- if enable_thinking is defined and not enable_thinking -%}{{- '<think>\n\n</think>\n\n' -}}{%- endif -%}"
    "{%- endif -%}"
)
LLAMA3 = (
    "{{- bos_token -}}{%- for message in messages -%}"
    "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content']|trim + '<|eot_id|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}"
)
GEMMA = (
    "{{- bos_token -}}"
    "{%- if messages[0]['role'] == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}"
    "{%- for message in messages -%}"
    "{%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}"
    "{{- '<start_of_turn>' + role + '\n' + message['content']|trim + '<end_of_turn>\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"
)
# Its marks of roles are plain text.
ZEPHYR = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
APPEND_ONLY = {"chatml": CHATML, "llama3": LLAMA3, "gemma": GEMMA}
TEMPLATES = {**APPEND_ONLY, "thinking": THINKING}

SPECIAL = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<start_of_turn>", "<end_of_turn>"),
]
TEXT = [
    "You walk on ice. Go left, right, up or down.\n<think>\nThe hole is near.\n</think>\n\n<action>go left</action>"
]


def tokenizer(template: str | None, special: list[str] = SPECIAL) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer as Llama 3 and Qwen have."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        TEXT * 4,
        trainers.BpeTrainer(
            vocab_size=340,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=[AddedToken(mark, special=True, normalized=False) for mark in special],
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|endoftext|>", bos_token="<|begin_of_text|>", chat_template=template
    )


SIZES = {
    "vocab_size": 384,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "attention_dropout": 0.5,
    "bos_token_id": None,
    "eos_token_id": 0,
}
CONFIGS: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(
        **SIZES, tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 1e4}
    ),
    "qwen2": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": Qwen3Config(**SIZES, tie_word_embeddings=True, head_dim=16),
}


def folder(where: Path, family: str = "llama", template: str | None = CHATML) -> Path:
    """Write a checkpoint and say where it is."""
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(CONFIGS[family]).save_pretrained(where)
    tokenizer(template).save_pretrained(where)
    return where
