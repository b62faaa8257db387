"""Tiny configs of the causal models of transformers, each with how it must run."""

import copy
from typing import Any

import torch
from tests.policy import folders
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

from bough.policy.policy import Policy

SIZES: dict[str, Any] = {
    "vocab_size": 384,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "initializer_range": 0.15,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": 0,
}
HEADS = {**SIZES, "head_dim": 8}
ROUTED = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
EXPERTS = {**ROUTED, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1}
LOCAL_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
MULTIPLIERS = {
    "attention_multiplier": 0.3,
    "logits_scaling": 6.0,
    "residual_multiplier": 0.5,
    "embedding_multiplier": 3.0,
}
WINDOWS = {"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]}
DELTA = {
    **HEADS,
    "head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
LATENT = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 12,
}
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_expand": 2}
NO_ATTENTION = "1 of its 2 layers mix tokens without attention"
WIDTHS = "value (1, 4, 12, 12)"

ARCHITECTURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Granite 3": ("", "granite", {**SIZES, **MULTIPLIERS}),
    "Granite 3 MoE": ("", "granitemoe", {**SIZES, **MULTIPLIERS, **LOCAL_EXPERTS}),
    "Gemma 3": ("", "gemma3_text", {**HEADS, **WINDOWS, "query_pre_attn_scalar": 8}),
    "Phi-4-mini": ("", "phi3", {**SIZES, "partial_rotary_factor": 0.75, "pad_token_id": 0}),
    "GLM-4.6": ("", "glm4_moe", {**HEADS, **EXPERTS, "partial_rotary_factor": 0.5, "use_qk_norm": True}),
    "MiniMax-M2": ("", "minimax_m2", {**HEADS, **LOCAL_EXPERTS}),
    "Cohere": ("", "cohere", {**SIZES, "logit_scale": 0.25}),
    "Granite 4": (
        NO_ATTENTION,
        "granitemoehybrid",
        {
            **SIZES,
            **MULTIPLIERS,
            **LOCAL_EXPERTS,
            **MAMBA,
            "layer_types": ["mamba", "attention"],
            "shared_intermediate_size": 32,
        },
    ),
    "gpt-oss": ("got attention with s_aux", "gpt_oss", {**HEADS, **WINDOWS, **LOCAL_EXPERTS, "rope_parameters": None}),
    "DeepSeek-V3, Kimi-K2": (WIDTHS, "deepseek_v3", {**HEADS, **EXPERTS, **LATENT, "n_shared_experts": 1}),
    "Qwen3.5": (NO_ATTENTION, "qwen3_5_text", DELTA),
    "Qwen3-Next": (
        NO_ATTENTION,
        "qwen3_next",
        {**DELTA, **ROUTED, "num_experts": 4, "shared_expert_intermediate_size": 16},
    ),
    "LFM2": (NO_ATTENTION, "lfm2", {**SIZES, "layer_types": ["conv", "full_attention"], "conv_L_cache": 3}),
    "Nemotron-H": (
        NO_ATTENTION,
        "nemotron_h",
        {
            **HEADS,
            "layers_block_type": ["mamba", "attention"],
            "mamba_num_heads": 4,
            "mamba_head_dim": 16,
            "ssm_state_size": 8,
            "n_groups": 1,
            "expand": 2,
        },
    ),
    "Gemma 2": ("got attention with softcap", "gemma2", {**HEADS, **WINDOWS, "final_logit_softcapping": 2.0}),
    "Gemma 4": (
        "its layers have different (query heads, key heads, head widths)",
        "gemma4_text",
        {
            **HEADS,
            **WINDOWS,
            "final_logit_softcapping": 2.0,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 384,
            "num_kv_shared_layers": 0,
            "global_head_dim": 16,
        },
    ),
    "Llama 4": (
        "its logits differ by",
        "llama4_text",
        {
            **HEADS,
            "attention_chunk_size": 6,
            "num_local_experts": 2,
            "intermediate_size_mlp": 48,
            "layer_types": ["chunked_attention", "full_attention"],
            "no_rope_layers": [1, 0],
        },
    ),
    "MiniMax-Text-01": (
        "its cache gives other logits, so each token computes its whole text",
        "minimax",
        {**HEADS, **LOCAL_EXPERTS, "layer_types": ["linear_attention", "full_attention"], "block_size": 4},
    ),
    "Mamba 2": (
        "2 of its 2 layers mix tokens without attention",
        "mamba2",
        {
            "vocab_size": 384,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "num_heads": 4,
            "head_dim": 16,
            "n_groups": 1,
            "expand": 2,
            "max_position_embeddings": 96,
            "initializer_range": 0.15,
        },
    ),
}
"""By name: a part of the reason for which it runs path by path, "" for packed; its type in transformers; its config."""


def config_of(name: str) -> PreTrainedConfig:
    """The tiny config of an architecture."""
    _, kind, sizes = ARCHITECTURES[name]
    # None is no value of some fields.
    given = {key: value for key, value in sizes.items() if value is not None or key in ("bos_token_id", "pad_token_id")}
    return AutoConfig.for_model(kind, **given)


def made(config: PreTrainedConfig) -> tuple[Any, Policy]:
    """A model of transformers, and a policy of a copy of it."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    return model, Policy.assemble(copy.deepcopy(model), folders.tokenizer(folders.CHATML), context_tokens=96)
