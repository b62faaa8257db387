"""Settings of a pretrained model."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from bough.hub import HubRepo
from bough.piece import NotEmpty, piece
from bough.policy.calls.format import CallFormat
from bough.policy.folder import check_complete
from bough.policy.hub_model import model_repo
from bough.policy.locate import locate
from bough.policy.lora import Lora
from bough.policy.placement import Dtype, pick_device

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    import bough.policy.chat
    import bough.policy.policy


@piece
class Pretrained:
    """A causal language model with a chat template, in the format of transformers.

    Attributes:
        path: A folder with config.json, weights and tokenizer (as `Policy.save` writes), a GGUF file, "package:NAME",
            or the id of a model on the Hugging Face hub, "owner/name" or "owner/name@REVISION". What the hub's cache
            lacks of it is downloaded: weights in safetensors, and no code.
        lora: Adapters to train; None trains every weight. Use float32 then: the updates of policy optimization are
            smaller than the precision of bfloat16 weights.
        dtype: The dtype of the weights.
        device: "auto", "cpu", "cuda", ...
        context_tokens: Most positions of a sequence; None is the model's limit.
        template: Arguments of the chat template besides the messages, such as {"enable_thinking": False}.
        call_format: The format of the model's calls of tools, such as `Hermes()` or one of your own; None for the one
            that the chat template has.
    """

    path: Annotated[str, NotEmpty("a folder with a model, or the id of one on the hub")]
    lora: Lora | None = None
    dtype: Dtype = "float32"
    device: str = "auto"
    context_tokens: int | None = None
    template: Mapping[str, object] = field(default_factory=dict[str, object])
    call_format: CallFormat | None = None

    def check_files(self) -> None:
        """Check that the model's folder exists and is complete, without loading it; a model of the hub is downloaded.

        `build` checks the files of a package, and a GGUF file.

        Raises:
            OSError: when the folder or a file in it is missing, or a model of the hub can't be had.
        """
        if self.path.startswith("package:"):
            return
        folder = locate(self.path)
        if folder.suffix != ".gguf" and not any(folder.glob("*.gguf")):
            check_complete(folder, self.path)

    def hub_repo(self) -> HubRepo | None:
        """The model of the hub that `path` names; None for another one."""
        return model_repo(self.path)

    def pinned_settings(self) -> Mapping[str, str]:
        """Download a model of the hub; returns `path` with its commit, and for another model nothing.

        Raises:
            OSError: when the model can't be had.
        """
        repo = self.hub_repo()
        return {} if repo is None else {"path": repo.at(locate(self.path).name)}

    def renderer(self, assets: Path) -> "bough.policy.chat.ChatRenderer":
        """The chat renderer, without the model; `assets` keeps the date that the template writes.

        Raises:
            OSError: when there is no tokenizer at `path`.
            ValueError: when it has no usable chat template.
        """
        from bough.policy.chat import ChatRenderer
        from bough.policy.checkpoint import load_tokenizer

        tokenizer = load_tokenizer(self.path)
        return ChatRenderer(
            tokenizer, template=self.template, date=_date(tokenizer, assets), call_format=self.call_format
        )

    def build(self, texts: Iterable[str] = (), assets: Path | None = None) -> "bough.policy.policy.Policy":
        """Load the model.

        Args:
            texts: Not used: the model has its tokenizer. `Tiny.build` has the same arguments.
            assets: The folder that keeps the date of the run's start, where the chat template writes a date.

        Raises:
            OSError: when the model at `path` is missing, incomplete or can't be read; the message has the missing part.
            ValueError: when model and tokenizer do not fit, there is no usable chat template, or Bough can't train the
                architecture; see `Policy.assemble`.
            ImportError: when `lora` is given and peft is not installed.
        """
        del texts
        from bough.policy.checkpoint import load_model, load_tokenizer
        from bough.policy.policy import Policy

        tokenizer = load_tokenizer(self.path)
        model = load_model(self.path, self.dtype, pick_device(self.device))
        try:
            return Policy.assemble(
                model,
                tokenizer,
                context_tokens=self.context_tokens,
                template=self.template,
                lora=self.lora,
                date=_date(tokenizer, assets),
                call_format=self.call_format,
            )
        except ValueError as error:
            raise ValueError(f"Pretrained {self.path!r}: {error}") from error


def _date(tokenizer: "PreTrainedTokenizerBase", assets: Path | None) -> datetime | None:
    """The date of a run, for a chat template that writes one."""
    from bough.policy.template_date import CLOCK, date_of

    return date_of(assets) if CLOCK in str(cast("Any", tokenizer).chat_template) else None
