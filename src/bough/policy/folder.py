"""Finds the folder of a pretrained model and checks that it is complete, without PyTorch."""

from pathlib import Path

from bough.nearest import close, suggest

WEIGHTS = ("*.safetensors", "*.bin")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
FINAL = "final"
"""The folder of the trained policy in a run's directory."""


def locate(path: str) -> Path:
    """The folder or file at `path`, or the folder of the hub id `path` in the local cache; no network access.

    Raises:
        FileNotFoundError: when there is none; the message has a similar folder, or the command that downloads a model.
    """
    folder = Path(path).expanduser()
    return folder if folder.exists() else _cached(path)


def check_complete(folder: Path, path: str) -> None:
    """Check that a folder has the files of a model in the format of transformers.

    Args:
        folder: The folder.
        path: The user's text, for messages.

    Raises:
        OSError: when it is a file, or when config, weights or tokenizer are missing.
    """
    if not folder.is_dir():
        raise NotADirectoryError(
            f"Pretrained.path: got a file, {path!r}; need the folder with config.json, weights and tokenizer"
        )
    for what, patterns in (("config", ("config.json",)), ("weights", WEIGHTS), ("tokenizer", TOKENIZERS)):
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            trained = folder / FINAL
            hint = f"; this is a run, whose trained policy is {str(trained)!r}" if trained.is_dir() else ""
            raise FileNotFoundError(
                f"Pretrained.path: got no {what} in {path!r}; need {' or '.join(patterns)}, as save_pretrained writes"
                f"{hint}"
            )


def similar_folder(path: str) -> str:
    """A question with the folder beside `path` that has a similar name; "" without one."""
    folder = Path(path).expanduser()
    beside = [each for each in folder.parent.iterdir() if each.is_dir()] if folder.parent.is_dir() else []
    near = close(folder.name, [each.name for each in beside])
    return f"; {suggest(str(folder.parent / each) for each in near)}" if near else ""


def _cached(path: str) -> Path:
    """The folder of the model with the hub id `path` in the local cache.

    Raises:
        FileNotFoundError: when it is not cached; the message has the command that downloads it.
    """
    from huggingface_hub import snapshot_download  # pyright: ignore[reportUnknownVariableType]
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(path, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        is_id = isinstance(error, LocalEntryNotFoundError) and "/" in path
        similar = similar_folder(path)
        download = f"; to download a model with this hub id first, do: hf download {path}" if is_id else ""
        raise FileNotFoundError(
            f"Pretrained.path: got {path!r}, which is no folder and no file; need a folder with a model, or a GGUF file"
            f"{similar or download}"
        ) from error
