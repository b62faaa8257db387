"""The policy: a model with gradients, its tokenizer, and its chat renderer."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from bough.policy.adapters import adapt
from bough.policy.calls import CallFormat
from bough.policy.chat import ChatRenderer
from bough.policy.check_architecture import AttentionShape, check_architecture
from bough.policy.checkpoint import save
from bough.policy.limits import context_limit
from bough.policy.lora import Lora
from bough.policy.model import CausalModel
from bough.policy.policy_model import PolicyModel


class Policy(PolicyModel):
    """A trainable causal language model. Built by `Tiny.build` and `Pretrained.build`.

    Attributes:
        renderer: Turns text into tokens in the model's own format.
        context_tokens: Most positions of a sequence.
    """

    def __init__(
        self,
        *,
        model: CausalModel,
        shape: AttentionShape | None,
        tokenizer: PreTrainedTokenizerBase,
        renderer: ChatRenderer,
        context_tokens: int,
    ) -> None:
        super().__init__(model=model, shape=shape, context_tokens=context_tokens)
        self._tokenizer = tokenizer
        self.renderer = renderer

    @staticmethod
    def assemble(
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        context_tokens: int | None = None,
        template: Mapping[str, object] | None = None,
        lora: Lora | None = None,
        date: datetime | None = None,
        call_format: CallFormat | None = None,
    ) -> "Policy":
        """Make a policy of a transformers model and its tokenizer. The policy owns the model.

        Args:
            model: On its device, in its dtype.
            tokenizer: With a chat template.
            context_tokens: Most positions of a sequence; None is the model's limit.
            template: Arguments of the chat template besides the messages.
            lora: Adapters to train; None trains every weight.
            date: The date that the template writes, if it writes one; None for the present one.
            call_format: The format of calls of tools; None for the one that is found from the template.

        Raises:
            ValueError: when Bough can't train the architecture, the tokenizer does not fit the model or has no usable
                chat template, or the context is longer than the model's.
        """
        causal_model = CausalModel(model)
        if len(tokenizer) > causal_model.vocab_tokens:
            raise ValueError(
                f"got a tokenizer of {len(tokenizer)} tokens for a model of {causal_model.vocab_tokens}; need the "
                "model's own"
            )
        limit = context_limit(model.config, context_tokens)
        ends = _end_tokens(model)
        renderer = ChatRenderer(
            tokenizer,
            template=template or {},
            end_tokens=ends,
            date=date,
            context_tokens=limit,
            call_format=call_format,
        )
        shape = check_architecture(causal_model, limit)
        if lora is not None:
            adapt(model, lora)
        return Policy(model=causal_model, shape=shape, tokenizer=tokenizer, renderer=renderer, context_tokens=limit)

    @property
    def tokenizer(self) -> str | None:
        """The text of its `tokenizer.json`; None where the tokenizer is written in Python."""
        fast = getattr(self._tokenizer, "backend_tokenizer", None)
        return None if fast is None else fast.to_str()

    def save(self, directory: Path) -> None:
        """Write config, weights (adapters merged in) and tokenizer as transformers reads them, and `Pretrained` too.

        Args:
            directory: Created if missing; files of the same names are overwritten.
        """
        save(self._copy("cpu"), self._tokenizer, directory)

    def save_base(self, directory: Path) -> None:
        """Write what `save` writes, with the base weights: without the adapters.

        Args:
            directory: Created if missing; files of the same names are overwritten.
        """
        save(self._copy("cpu", merges=False), self._tokenizer, directory)


def _end_tokens(model: PreTrainedModel) -> tuple[int, ...]:
    ends = getattr(model.generation_config, "eos_token_id", None)
    return (ends,) if isinstance(ends, int) else tuple(ends or ())
