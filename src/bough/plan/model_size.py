"""The size of a decoder: parameters, operations and bytes, from its `config.json`.

The parameters of the families in `FAMILIES` are computed from the configuration. Transformers builds any other decoder
on the meta device, without weights, which takes seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bough.config.config import ConfigError
from bough.policy.arithmetic import Arithmetic
from bough.policy.hub_model import model_repo
from bough.policy.locate import config_folder
from bough.usercode.json_file import read_object

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a family of decoders has besides the products of a layer.

    Attributes:
        qkv_bias: Biases of queries, keys and values, where the configuration does not set `attention_bias`.
        qk_norm: Norm weights of queries and keys: "" for none, "head" by head width, "all" over all heads.
        norms: Norms of a layer.
    """

    qkv_bias: bool = False
    qk_norm: str = ""
    norms: int = 2


FAMILIES = {
    "llama": Family(),
    "mistral": Family(),
    "mixtral": Family(),
    "smollm3": Family(),
    "qwen2": Family(qkv_bias=True),
    "qwen3": Family(qk_norm="head"),
    "qwen3_moe": Family(qk_norm="head"),
    "olmo2": Family(qk_norm="all"),
    "gemma2": Family(norms=4),
    "gemma3_text": Family(qk_norm="head", norms=4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """The size of a decoder.

    Attributes:
        name: Shown in tables.
        parameters: All weights; tied ones count once.
        trunk: Weights of the layers that a token passes through: of a mixture only the routed experts.
        expert: Weights of all routed experts, 0 for a dense model.
        expert_share: Share of the experts that a token passes through.
        layers: Number of layers.
        width: Hidden size.
        inner: Hidden size of a layer's MLP for a token: of a mixture, over the routed experts.
        query_width: Query heads times head width.
        kv_width: Key heads times head width.
        vocab: Vocabulary size.
        number_bytes: Bytes of a weight.
    """

    name: str
    parameters: int
    trunk: int
    expert: int
    expert_share: float
    layers: int
    width: int
    inner: int
    query_width: int
    kv_width: int
    vocab: int
    number_bytes: int

    def in_dtype(self, name: str) -> "ModelSize":
        """The same model in a data type of `BYTES`."""
        return replace(self, number_bytes=BYTES[name])

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return self.parameters * self.number_bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes of the keys and values of a token."""
        return 2 * self.layers * self.kv_width * self.number_bytes

    @property
    def arithmetic(self) -> Arithmetic:
        """The operations of an update. A sliding window counts as full attention."""
        return Arithmetic(
            weights=self.trunk, after=0, head=self.vocab * self.width, attention=self.layers * self.query_width
        )

    def forward_operations(self, *, tokens: int, heads: int, pairs: int) -> int:
        """The operations of a forward pass.

        Args:
            tokens: Tokens of the pass.
            heads: Tokens whose logits are computed.
            pairs: Pairs of a query and a visible key.
        """
        return (
            2 * self.trunk * tokens + 2 * self.vocab * self.width * heads + 4 * self.layers * self.query_width * pairs
        )

    def read_bytes(self, tokens: int) -> float:
        """Weight bytes that a pass of some tokens reads: of a mixture, of the expected number of routed experts."""
        unread = self.expert * (1 - self.expert_share) ** tokens if self.expert else 0
        return self.number_bytes * (self.parameters - unread)


def read_model(path: Path) -> ModelSize:
    """The size of the model of a `config.json`, of a folder with one, or of a hub id.

    Raises:
        ConfigError: when there is no such file, or it is not the configuration of a decoder.
        HubError: when the model of a hub id can't be had.
    """
    if (repo := model_repo(str(path))) is not None:
        path = config_folder(str(path))
    file = path / "config.json" if path.is_dir() else path
    try:
        config = read_object(file, "a config.json of Hugging Face", infinite=True)
    except OSError as error:
        raise ConfigError(f"--model: got {path}; need a config.json of Hugging Face, or a folder with one") from error
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if "model_type" not in config:
        raise ConfigError(f"{file}: got no model_type; need a config.json of Hugging Face; name the model's own file")
    return model_size(config, name=repo.name if repo is not None else file.parent.name or file.stem)


def model_size(config: Mapping[str, Any], *, name: str) -> ModelSize:
    """The size of the decoder with that configuration.

    Raises:
        ConfigError: when a needed field is missing, or Transformers cannot build the model.
    """
    kind = str(config["model_type"])
    family = FAMILIES.get(kind)
    return _built(config, name) if family is None else _computed(config, family, name)


def _field(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise ConfigError(
            f"config.json, {key}: got {value!r}; need a whole number above 0; name the model's complete config.json"
        )
    return value


def _optional(config: Mapping[str, Any], key: str, default: int) -> int:
    return default if config.get(key) in (None, 0) else _field(config, key)


def _number_bytes(config: Mapping[str, Any]) -> int:
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    if dtype not in BYTES:
        raise ConfigError(f"config.json, dtype: got {dtype!r}; need one of {', '.join(BYTES)}; correct the file")
    return BYTES[dtype]


def _computed(config: Mapping[str, Any], family: Family, name: str) -> ModelSize:
    width, layers, vocab = (_field(config, key) for key in ("hidden_size", "num_hidden_layers", "vocab_size"))
    heads = _field(config, "num_attention_heads")
    head = _optional(config, "head_dim", width // heads)
    queries, pairs = heads * head, _optional(config, "num_key_value_heads", heads) * head
    attention = width * (2 * queries + 2 * pairs)
    if bool(config.get("attention_bias", family.qkv_bias)):
        # Qwen2 has no bias at the output product.
        attention += queries + 2 * pairs + (0 if family.qkv_bias else width)
    attention += {"": 0, "head": 2 * head, "all": queries + pairs}[family.qk_norm]
    experts = _optional(config, "num_experts", _optional(config, "num_local_experts", 0))
    routed = _optional(config, "num_experts_per_tok", 1)
    inner = _optional(config, "moe_intermediate_size", 0) if experts else 0
    inner = inner or _field(config, "intermediate_size")
    mlp = 3 * width * inner
    expert = layers * experts * mlp
    norms = family.norms * width
    common = layers * (attention + norms + experts * width) + width
    heads_count = 1 if config.get("tie_word_embeddings", _tied_by_default(str(config["model_type"]))) else 2
    return ModelSize(
        name=name,
        parameters=common + (expert or layers * mlp) + heads_count * vocab * width,
        trunk=common + layers * mlp * (routed if experts else 1),
        expert=expert,
        expert_share=min(1.0, routed / experts) if experts else 1.0,
        layers=layers,
        width=width,
        inner=inner * (routed if experts else 1),
        query_width=queries,
        kv_width=pairs,
        vocab=vocab,
        number_bytes=_number_bytes(config),
    )


def _tied_by_default(kind: str) -> bool:
    """Files without `tie_word_embeddings` have their family's default."""
    return kind in ("gemma2", "gemma3_text", "smollm3")


def _built(config: Mapping[str, Any], name: str) -> ModelSize:
    """The size of a decoder that Transformers builds on the meta device."""
    import torch
    import transformers

    library: Any = transformers
    kind = str(config["model_type"])
    try:
        settings = library.AutoConfig.for_model(kind, **{key: config[key] for key in config if key != "model_type"})
        with torch.device("meta"):
            model = library.AutoModelForCausalLM.from_config(settings, trust_remote_code=False)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"config.json, model_type: got {kind!r}, which Transformers builds no decoder of ({error}); need a decoder"
        ) from error
    text = settings.get_text_config()
    named: dict[str, Any] = dict(model.named_parameters())
    parameters = sum(weight.numel() for weight in named.values())
    expert = sum(weight.numel() for key, weight in named.items() if ".experts." in key)
    experts = int(getattr(text, "num_experts", None) or getattr(text, "num_local_experts", None) or 0)
    routed = int(getattr(text, "num_experts_per_tok", 1)) if experts and expert else 1
    share = min(1.0, routed / experts) if experts and expert else 1.0
    matrices = [each.weight for each in (model.get_input_embeddings(), model.get_output_embeddings()) if each]
    embeddings = {id(weight): int(weight.numel()) for weight in matrices}
    width, heads = int(text.hidden_size), int(text.num_attention_heads)
    head = int(getattr(text, "head_dim", None) or width // heads)
    inner: int = getattr(text, "intermediate_size", None) or getattr(text, "n_inner", None) or 4 * width
    inner = (getattr(text, "moe_intermediate_size", None) if experts else None) or inner
    return ModelSize(
        name=name,
        parameters=parameters,
        trunk=round(parameters - sum(embeddings.values()) - expert * (1 - share)),
        expert=expert,
        expert_share=share,
        layers=int(text.num_hidden_layers),
        width=width,
        inner=inner * routed,
        query_width=heads * head,
        kv_width=int(getattr(text, "num_key_value_heads", None) or heads) * head,
        vocab=int(text.vocab_size),
        number_bytes=_number_bytes(config),
    )
