"""Loads and saves a model and a tokenizer in the format of transformers."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from bough.policy.folder import check_complete, check_names
from bough.policy.gguf import PACKAGE, package_folder, unpacked
from bough.policy.literal import encode
from bough.policy.locate import locate


def load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """The tokenizer of the model at `path`, a folder or the id of one on the hub.

    Raises:
        OSError: when the folder, its config, weights or tokenizer is missing or can't be read.
        ValueError: when its vocabulary loses letters, digits or blanks, and has no token for the unknown.
    """
    tokenizer = _load("tokenizer", _find(path), AutoTokenizer)
    text = f"{ascii_letters} {digits}"
    tokens = encode(tokenizer, text)
    kept = tokenizer.decode(tokens).lower()
    lost = [each for each in dict.fromkeys(text.lower()) if each not in kept]
    # A vocabulary of words marks what it does not know.
    if lost and tokenizer.unk_token_id not in tokens:
        raise ValueError(
            f"tokenizer at {path!r}: got a vocabulary of {len(tokenizer)} tokens that loses {len(lost)} of the "
            f"characters of {text!r}, first {lost[0]!r}; need the complete tokenizer.json of the model"
        )
    return tokenizer


def load_model(path: str, dtype: str, device: str) -> PreTrainedModel:
    """The causal language model at `path`, a folder or the id of one on the hub.

    Raises:
        OSError: when a file is missing or can't be read.
        ValueError: when files and config do not have the same weights, or a weight is not finite.
    """
    return _load_weights(path, _find(path), AutoModelForCausalLM, dtype).to(device)


def load_trunk(folder: Path) -> PreTrainedModel:
    """The causal language model in a folder without its output layer, in float32; errors as of `load_model`."""
    return _load_weights(str(folder), str(folder), AutoModel, "float32", leftover="lm_head.", use_cache=False)


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


def _load_weights(path: str, folder: str, kind: Any, dtype: str, leftover: str | None = None, **options: object) -> Any:
    """Load the model in a folder; weights whose names begin with `leftover` may stay unused."""
    options |= {"dtype": getattr(torch, dtype), "output_loading_info": True}
    model, report = _load("model", folder, kind, **options)
    unused = {name for name in report["unexpected_keys"] if leftover is None or not name.startswith(leftover)}
    check_names(path, report["missing_keys"], unused)
    broken = sorted(name for name, weight in model.named_parameters() if not weight.isfinite().all())
    if broken:
        raise ValueError(
            f"model at {path!r}: got weights that are nan or infinite in {dtype} in {len(broken)} tensors, first "
            f"{broken[0]!r}; need a checkpoint of finite weights"
        )
    if not model.get_input_embeddings().weight.any():
        raise ValueError(f"model at {path!r}: got embeddings that are all 0; need the weights of a trained model")
    return model


def _find(path: str) -> str:
    """The complete folder of the model at `path`, or of the hub id `path`, which is downloaded if need be."""
    folder = package_folder(path) if path.startswith(PACKAGE) else locate(path)
    with quiet():
        folder = unpacked(folder)
    check_complete(folder, path)
    return str(folder)


def _load(what: str, path: str, kind: Any, **options: object) -> Any:
    try:
        with quiet():
            return kind.from_pretrained(path, trust_remote_code=False, **options)
    # Parsers of broken files raise errors of many types.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if "trust_remote_code" in str(error):
            raise OSError(
                f"Pretrained.path: got a {what} at {path!r} that needs code of its own folder, which Bough does not "
                "run; need one of an architecture that transformers has"
            ) from error
        raise OSError(
            f"Pretrained.path: can't read the {what} at {path!r}: {lines[0]}; need a complete folder"
        ) from error
