"""Checks that the folder of a pretrained model is complete, without PyTorch."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import cast

from bough.nearest import close, suggest
from bough.usercode.json_file import parse_object, read_object

WEIGHTS = ("*.safetensors", "*.bin")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
INDEX = "model.safetensors.index.json"
LAYERS = re.compile(r"(^|_)(n|num)_.*layers?$")
"""The names of a config's numbers of layers."""

MOST_BYTES = 100_000_000
"""The largest header of a safetensors file, as its readers have it."""

ADAPTERS = "adapter_config.json"
FINAL = "final"
"""The folder of the trained policy in a run's directory."""


def check_complete(folder: Path, path: str) -> None:
    """Check that a folder has the files of a model in the format of transformers.

    Args:
        folder: The folder.
        path: The user's text, for messages.

    Raises:
        OSError: when it is a file, when config, weights or tokenizer are missing, or when the folder has adapters or
            two sets of weights.
    """
    if not folder.is_dir():
        raise NotADirectoryError(
            f"Pretrained.path: got a file, {path!r}; need the folder with config.json, weights and tokenizer"
        )
    if (folder / ADAPTERS).exists():
        raise OSError(
            f"Pretrained.path: got adapters, {ADAPTERS!r}, in {path!r}; need whole weights: merge them by "
            "merge_and_unload of peft, and save the result in another folder"
        )
    for what, patterns in (("config", ("config.json",)), ("weights", WEIGHTS), ("tokenizer", TOKENIZERS)):
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            trained = folder / FINAL
            hint = f"; this is a run, whose trained policy is {str(trained)!r}" if trained.is_dir() else ""
            raise FileNotFoundError(
                f"Pretrained.path: got no {what} in {path!r}; need {' or '.join(patterns)}, as save_pretrained writes"
                f"{hint}"
            )
    _check_shards(folder, path)
    _check_layers(folder, path)


def check_names(path: str, missing: Collection[str], unused: Collection[str]) -> None:
    """Check that a model and its files have the same weights.

    Args:
        path: The user's text, for messages.
        missing: Names of the model's weights that are in no file.
        unused: Names of the files' tensors that are not in the model.

    Raises:
        ValueError: when there is one; names the first.
    """
    if missing:
        raise ValueError(
            f"model at {path!r}: got weights that lack {len(missing)} of the config, first {min(missing)!r}; "
            "need a complete checkpoint of this config"
        )
    if unused:
        raise ValueError(
            f"model at {path!r}: got {len(unused)} weights that the config does not use, first {min(unused)!r}; "
            "need the config that was saved with these weights"
        )


def _check_shards(folder: Path, path: str) -> None:
    """Check that a folder has exactly the weights files that its index lists, if there is an index."""
    index = folder / INDEX
    if not index.exists():
        return
    try:
        listed = set(read_object(index)["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OSError(f"Pretrained.path: can't read {INDEX} in {path!r}: {error}; need a complete folder") from error
    found = {file.name for file in folder.glob("model*.safetensors")}
    if listed - found:
        raise FileNotFoundError(f"Pretrained.path: got no {min(listed - found)} in {path!r}; {INDEX} lists it")
    if found - listed:
        raise OSError(
            f"Pretrained.path: got {min(found - listed)} in {path!r}, which {INDEX} does not list; need one set of "
            "weights: remove the older files"
        )


def _check_layers(folder: Path, path: str) -> None:
    """Check that a config has no more layers than its files have tensors, since building millions takes hours."""
    tensors = sum(map(_tensors, folder.glob("*.safetensors")))
    try:
        most = max(_layers(read_object(folder / "config.json", infinite=True)), default=0)
    except ValueError as error:
        raise OSError(f"Pretrained.path: can't read the config at {path!r}: {error}; need a complete folder") from error
    if 0 < tensors < most:
        raise OSError(
            f"Pretrained.path: got {most:,} layers in {path!r}, with {tensors:,} tensors; need its own config"
        )


def _layers(config: Mapping[str, object]) -> Iterator[int]:
    """The numbers of layers of a config, nested configs included."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _layers(cast("Mapping[str, object]", value))
        elif isinstance(value, int) and LAYERS.search(name):
            yield value


def _tensors(file: Path) -> int:
    """The number of tensors in the header of a safetensors file; 0 for another file."""
    with file.open("rb") as data:
        size = int.from_bytes(data.read(8), "little")
        try:
            return len(parse_object(data.read(min(size, MOST_BYTES)).decode(), str(file), "a header"))
        except ValueError:
            return 0


def similar_folder(path: str) -> str:
    """A question with the folder beside `path` that has a similar name; "" without one."""
    folder = Path(path).expanduser()
    beside = [each for each in folder.parent.iterdir() if each.is_dir()] if folder.parent.is_dir() else []
    near = close(folder.name, [each.name for each in beside])
    return f"; {suggest(str(folder.parent / each) for each in near)}" if near else ""
