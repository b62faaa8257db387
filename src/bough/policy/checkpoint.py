"""Loads and saves a model and a tokenizer in the format of transformers."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download  # pyright: ignore[reportUnknownVariableType]
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from bough.policy.gguf import PACKAGE, package_folder, unpacked

WEIGHTS = ("*.safetensors", "*.bin")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """The tokenizer of the model at `path`, a folder or the hub id of a downloaded model.

    Raises:
        OSError: when the folder, its config, weights or tokenizer is missing or can't be read.
    """
    return _load("tokenizer", _find(path), AutoTokenizer)


def load_model(path: str, dtype: str, device: str) -> PreTrainedModel:
    """The causal language model at `path`, a folder or the hub id of a downloaded model.

    Raises:
        OSError: when a file is missing or can't be read.
        ValueError: when weights are missing, or their shapes differ from the config's.
    """
    options = {"dtype": getattr(torch, dtype), "attn_implementation": "sdpa", "output_loading_info": True}
    model, report = _load("model", _find(path), AutoModelForCausalLM, **options)
    missing = sorted(report["missing_keys"])
    if missing:
        raise ValueError(
            f"model at {path!r}: got weights that lack {len(missing)} the config asks for, first {missing[0]!r}; "
            "need a complete checkpoint of this config"
        )
    return model.to(device)


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Write model and tokenizer to `directory`, which is created if missing."""
    parts: list[Any] = [model, tokenizer]
    with _quiet():
        for part in parts:
            part.save_pretrained(directory)


@contextmanager
def _quiet() -> Generator[None]:
    """Turn off progress bars: a run has its own."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _find(path: str) -> str:
    """The complete folder of the model at `path`, or of the hub id `path` in the local cache; no network access."""
    folder = package_folder(path) if path.startswith(PACKAGE) else Path(path).expanduser()
    if not folder.exists():
        folder = _cached(path)
    with _quiet():
        folder = unpacked(folder)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"Pretrained.path: got a file, {path!r}; need the folder with config.json, weights and tokenizer"
        )
    for what, patterns in (("config", ("config.json",)), ("weights", WEIGHTS), ("tokenizer", TOKENIZERS)):
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            raise FileNotFoundError(
                f"Pretrained.path: got no {what} in {path!r}; need {' or '.join(patterns)}, as save_pretrained writes"
            )
    return str(folder)


def _cached(path: str) -> Path:
    """The folder of the model with the hub id `path` in the local cache.

    Raises:
        FileNotFoundError: when it is not cached; the message has the command that downloads it.
    """
    try:
        return Path(snapshot_download(path, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        is_id = isinstance(error, LocalEntryNotFoundError) and "/" in path
        remedy = f"a folder with a model; to download a model with this hub id first, do: hf download {path}"
        raise FileNotFoundError(
            f"Pretrained.path: got {path!r}, which is no folder; need {remedy if is_id else 'a folder with a model'}"
        ) from error


def _load(what: str, path: str, kind: Any, **options: object) -> Any:
    try:
        with _quiet():
            return kind.from_pretrained(path, **options)
    # Parsers of broken files raise errors of many types.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise OSError(
            f"Pretrained.path: can't read the {what} at {path!r}: {lines[0]}; need a complete folder"
        ) from error
