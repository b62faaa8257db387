"""A model that someone trained."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bough.policy.lora import Lora
from bough.policy.placement import Dtype, pick_device

if TYPE_CHECKING:
    import bough.policy.chat
    import bough.policy.policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrained:
    """A causal language model with a chat template, in the format of transformers.

    Attributes:
        path: A folder with config.json, weights and tokenizer (as `Policy.save` writes), or the Hugging Face id of a
            model in the local cache (`hf download`). Nothing is downloaded.
        lora: Adapters to train; None trains every weight, for which float32 is advised: the steps of policy
            optimization are smaller than what bfloat16 weights can take.
        dtype: Of the weights.
        device: "auto", "cpu", "cuda", ...
        context_tokens: Most positions to read; None means as many as the model can.
        template: What the chat template is told besides the messages, such as {"enable_thinking": False}.
    """

    path: str
    lora: Lora | None = None
    dtype: Dtype = "float32"
    device: str = "auto"
    context_tokens: int | None = None
    template: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("Pretrained.path: got an empty string; need a folder with a model, or the hub id of one")

    def renderer(self, assets: Path) -> "bough.policy.chat.ChatRenderer":
        """How it writes and reads, without the model; `assets` is not needed.

        Raises:
            OSError: when there is no tokenizer at `path`.
            ValueError: when it has no usable chat template.
        """
        del assets
        from bough.policy.chat import ChatRenderer
        from bough.policy.checkpoint import load_tokenizer

        return ChatRenderer(load_tokenizer(self.path), template=self.template)

    def build(self, texts: Iterable[str] = (), assets: Path | None = None) -> "bough.policy.policy.Policy":
        """Load the model.

        Args:
            texts: Not needed: the model has its tokenizer. Here so that `Tiny` and `Pretrained` are built alike.
            assets: Not needed either; nothing is kept.

        Raises:
            OSError: when there is nothing to load at `path`, or it can't be read; says what is missing.
            ValueError: when what is there does not fit together, has no usable chat template, or is of an architecture
                that Bough can't train; see `Policy.assemble`.
            ImportError: when `lora` is given and peft is not installed.
        """
        del texts, assets
        from bough.policy.checkpoint import load_model, load_tokenizer
        from bough.policy.policy import Policy

        tokenizer = load_tokenizer(self.path)
        model = load_model(self.path, self.dtype, pick_device(self.device))
        try:
            return Policy.assemble(
                model, tokenizer, context_tokens=self.context_tokens, template=self.template, lora=self.lora
            )
        except ValueError as error:
            raise ValueError(f"Pretrained {self.path!r}: {error}") from error
