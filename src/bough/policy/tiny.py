"""Settings of a small model with random weights and its own tokenizer."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bough.piece import AtLeast, piece
from bough.policy.placement import Dtype, pick_device

if TYPE_CHECKING:
    import bough.policy.chat
    import bough.policy.policy


MOST_WEIGHTS = 10**9
MOST_LAYERS = 1000


@piece
class Tiny:
    """A Qwen3-style causal model with random weights, and a tokenizer trained on the environment's own text.

    Attributes:
        layers: >= 1.
        width: Elements of a hidden state, a multiple of 2 * `heads`.
        heads: Query heads.
        kv_heads: Key heads, a divisor of `heads`; None is `heads`.
        vocab_tokens: Most tokens of the vocabulary, >= 260: the bytes and the marks of a chat.
        context_tokens: Most positions of the model.
        seed: The seed of the weights.
        device: "auto", "cpu", "cuda", ...
        dtype: The dtype of the weights.
    """

    layers: Annotated[int, AtLeast(1)] = 2
    width: Annotated[int, AtLeast(1)] = 128
    heads: Annotated[int, AtLeast(1)] = 4
    kv_heads: Annotated[int | None, AtLeast(1)] = None
    vocab_tokens: Annotated[int, AtLeast(260)] = 1024
    context_tokens: Annotated[int, AtLeast(1)] = 2048
    seed: int = 0
    device: str = "auto"
    dtype: Dtype = "float32"

    def __post_init__(self) -> None:
        if self.width % (2 * self.heads):
            raise ValueError(f"Tiny.width: got {self.width}; need a multiple of {2 * self.heads}, twice the heads")
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"Tiny.kv_heads: got {self.kv_heads}; need a divisor of the {self.heads} heads")
        # Four matrices of attention and three of four widths in a layer, and the embeddings.
        weights = self.width * (16 * self.width * self.layers + 2 * self.vocab_tokens)
        if weights > MOST_WEIGHTS or self.layers > MOST_LAYERS:
            raise ValueError(
                f"Tiny: got layers={self.layers}, width={self.width}, vocab_tokens={self.vocab_tokens}, about "
                f"{weights:.1e} weights; need at most {MOST_WEIGHTS:.0e} and {MOST_LAYERS} layers: lower them, or take "
                "policy=Pretrained(path=...) for a large model"
            )

    def renderer(self, assets: Path) -> "bough.policy.chat.ChatRenderer":
        """The chat renderer, without the model.

        Raises:
            ValueError: when there is no tokenizer in `assets`, or it can't be read.
        """
        from bough.policy.chat import ChatRenderer
        from bough.policy.vocabulary import FILE, small_tokenizer

        if not (assets / FILE).is_file():
            raise ValueError(f"{assets / FILE}: got no file; need the tokenizer that the run has trained")
        return ChatRenderer(small_tokenizer((), self.vocab_tokens, assets), template={})

    def build(self, texts: Iterable[str], assets: Path | None = None) -> "bough.policy.policy.Policy":
        """Build the model; the same settings and texts give the same weights and tokenizer.

        Args:
            texts: Observations and actions of the environment; they should contain every frequent word and symbol.
            assets: A folder. The tokenizer in it is used instead of training one; a trained one is written there.

        Raises:
            ValueError: when `assets` holds a tokenizer that can't be read, or the device does not exist.
        """
        import torch
        from transformers import AutoModelForCausalLM, Qwen3Config

        from bough.policy.policy import Policy
        from bough.policy.seeding import seeded
        from bough.policy.vocabulary import END, small_tokenizer

        tokenizer = small_tokenizer(texts, self.vocab_tokens, assets)
        config = Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=self.width,
            intermediate_size=3 * self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads or self.heads,
            head_dim=self.width // self.heads,
            max_position_embeddings=self.context_tokens,
            tie_word_embeddings=True,
            initializer_range=self.width**-0.5 / 2,
            eos_token_id=tokenizer.convert_tokens_to_ids(END),
            pad_token_id=None,
        )
        models: Any = AutoModelForCausalLM
        with seeded(self.seed):
            model = models.from_config(config, dtype=getattr(torch, self.dtype))
        return Policy.assemble(model.to(pick_device(self.device)), tokenizer)
