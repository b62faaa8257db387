"""Finds the files of a pretrained model by a path or a hub id, without PyTorch."""

import os
from contextlib import suppress
from pathlib import Path

from bough.hub import may_be_path, snapshot
from bough.policy.folder import similar_folder
from bough.policy.hub_model import CONFIG, FIELD, config_file, is_complete, model_files, model_repo
from bough.usercode.json_file import read_object

POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "context_length")
"""The names that configs of transformers have for the most positions; GPT-2 has the second."""


def locate(path: str) -> Path:
    """The folder or file at `path`; for a hub id the folder in the hub's cache, after a download of what it lacks.

    Raises:
        FileNotFoundError: when the text is a path, and nothing is there; the message has a similar folder.
        HubError: when it is a hub id, and the model can't be had.
    """
    folder = Path(path).expanduser()
    if os.path.exists(folder):
        return folder
    if (repo := model_repo(path)) is not None:
        return snapshot(repo, lambda listing, _: model_files(listing), is_complete)
    raise FileNotFoundError(
        f"{FIELD}: {not_there(path)}; need a folder with a model, a GGUF file, or a hub id, owner/name"
    )


def target_path(target: str) -> Path:
    """The path of a run or model, or a hub id as one. "./a/b" and "a/b/" become absolute: these are no hub ids."""
    path = Path(target)
    return path.absolute() if model_repo(str(path)) != model_repo(target) else path


def not_there(path: str) -> str:
    """What is wrong with a text that is taken for a path at which there is nothing, with similar ones."""
    why = ""
    if model_repo(f"{path}@main") is not None and may_be_path(path):
        why = f" in the folder {str(Path(path).parent)!r}; the hub's model of this name is '{path}@main'"
    return f"got {path!r}, which is no folder and no file{why}{similar_folder(path)}"


def config_folder(path: str) -> Path:
    """The folder with the config of a model; of a model of the hub that is not in the cache the config is downloaded.

    Raises:
        HubError: when the text is a hub id, and the model can't be had.
    """
    repo = model_repo(path)
    if repo is None:
        return Path(path).expanduser()
    return snapshot(repo, lambda listing, _: config_file(listing), is_complete)


def position_limit(path: str) -> int | None:
    """The most positions of a sequence in the config of a model; None where there is no such config.

    Raises:
        HubError: when the text is a hub id, and the model can't be had.
    """
    with suppress(ValueError, FileNotFoundError, NotADirectoryError):
        config = read_object(config_folder(path) / CONFIG, infinite=True)
        return next((config[name] for name in POSITIONS if isinstance(config.get(name), int)), None)
    return None
