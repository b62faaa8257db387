"""Loads and saves a model and a tokenizer in the format of transformers."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from bough.policy.folder import check_complete, locate
from bough.policy.gguf import PACKAGE, package_folder, unpacked


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
    with quiet():
        for part in parts:
            part.save_pretrained(directory)


@contextmanager
def quiet() -> Generator[None]:
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
    folder = package_folder(path) if path.startswith(PACKAGE) else locate(path)
    with quiet():
        folder = unpacked(folder)
    check_complete(folder, path)
    return str(folder)


def _load(what: str, path: str, kind: Any, **options: object) -> Any:
    try:
        with quiet():
            return kind.from_pretrained(path, **options)
    # Parsers of broken files raise errors of many types.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise OSError(
            f"Pretrained.path: can't read the {what} at {path!r}: {lines[0]}; need a complete folder"
        ) from error
