"""The files of a data set on a hub by configuration and split: as its card lists them, else by their names."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from bough.env.row_files import SUFFIXES

CARD = "README.md"

TRAIN, VALIDATION, TEST = "train", "validation", "test"

WORDS = {
    TRAIN: ("train", "training"),
    VALIDATION: ("validation", "valid", "val", "dev"),
    TEST: ("test", "testing", "eval", "evaluation"),
}
"""The words in names of files and folders that mean a split, as the package datasets has them."""

SHARD = re.compile(r"(?:.*/)?(\w[\w.]*)-\d{5}-of-\d{5}[\w.-]*")
"""A part of a split, such as "data/train-00000-of-00002.parquet"."""

Splits = dict[str, list[str]]
"""The files of each split, by the data set's name of the split."""


def split_files(names: Iterable[str], card: Mapping[str, Any], config: str) -> Splits:
    """The files of each split of a configuration.

    Args:
        names: All files of the data set.
        card: The metadata of its card; `configs` lists the configurations.
        config: The configuration; "" for the only or the default one.

    Raises:
        ValueError: when there are no files of rows or no such configuration, or several and none is chosen. The message
            has the ones that exist.
    """
    every = sorted(name for name in names if not any(part[0] in "._" for part in name.split("/") if part))
    files = [name for name in every if name.lower().endswith(SUFFIXES) and name != "dataset_infos.json"]
    if not files:
        raise ValueError(
            f"which has no files of rows ({', '.join(SUFFIXES)}); need some: the hub's own conversion to Parquet is "
            "the revision @refs/convert/parquet"
        )
    listed = _configs(card)
    if listed:
        return _listed(files, listed, config)
    return _by_name(_of_folder(files, config))


def _configs(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The configurations of a card that name files."""
    found: object = card.get("configs")
    every = cast("list[object]", found) if isinstance(found, list) else []
    maps = [cast("Mapping[str, Any]", each) for each in every if isinstance(each, Mapping)]
    return [each for each in maps if each.get("data_files") or each.get("data_dir")]


def _listed(files: Sequence[str], configs: Sequence[Mapping[str, Any]], config: str) -> Splits:
    """The files of a configuration of the card."""
    named = {str(each.get("config_name", "default")): each for each in configs}
    preferred = [name for name, each in named.items() if each.get("default") is True or name == "default"]
    name = config or (next(iter(named)) if len(named) == 1 else next(iter(preferred), ""))
    if name not in named:
        got = f"no config {config!r}" if config else "several configs"
        raise ValueError(f"which has {got}; need one of them: config={' or config='.join(named)}")
    chosen = named[name]
    folder = str(chosen.get("data_dir") or "").strip("/.")
    inside = [each for each in files if not folder or each.startswith(f"{folder}/")]
    if not (patterns := chosen.get("data_files")):
        if not inside:
            raise ValueError(
                f"whose card has the folder {folder} for the config {name}, in which no file has a format that Bough "
                "reads; need another config, or the revision @refs/convert/parquet"
            )
        return _by_name(inside)
    found = {split: _matching(inside, each, folder) for split, each in _patterns(patterns).items()}
    if empty := [split for split, each in found.items() if not each]:
        raise ValueError(
            f"whose card has files for the split {empty[0]} of the config {name} that are not there, or not of a "
            f"format that Bough reads; need another config, or the revision @refs/convert/parquet"
        )
    return found


def _patterns(written: object) -> dict[str, list[str]]:
    """The patterns of each split; those without a split are for training."""
    if isinstance(written, Mapping):
        return {str(split): _texts(each) for split, each in cast("Mapping[object, object]", written).items()}
    items = cast("list[object]", written) if isinstance(written, list) else [written]
    found: dict[str, list[str]] = {}
    for item in items:
        each = cast("Mapping[str, object]", item) if isinstance(item, Mapping) else {"path": item}
        found.setdefault(str(each.get("split", TRAIN)), []).extend(_texts(each.get("path")))
    return found


def _texts(written: object) -> list[str]:
    return [str(each) for each in cast("list[object]", written)] if isinstance(written, list) else [str(written)]


def _matching(files: Sequence[str], patterns: Sequence[str], folder: str) -> list[str]:
    forms = [_regex(f"{folder}/{each}" if folder else each) for each in patterns]
    return [file for file in files if any(form.fullmatch(file) for form in forms)]


def _regex(pattern: str) -> re.Pattern[str]:
    """A pattern of paths: `*` and `?` stand for characters of one name, `**` for any folders."""
    signs = {"**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    found = re.split(r"(\*\*/|\*\*|\*|\?|\[[\w-]+\])", pattern.removeprefix("./"))
    parts = (signs.get(each) or (each if re.fullmatch(r"\[[\w-]+\]", each) else re.escape(each)) for each in found)
    return re.compile("".join(parts))


def _of_folder(files: Sequence[str], config: str) -> Sequence[str]:
    """The files of a configuration of a data set without a list of them: those in the folder of this name."""
    if config:
        inside = [file for file in files if file.startswith(f"{config}/")]
        if not inside:
            folders = sorted({file.partition("/")[0] for file in files if "/" in file})
            known = f"one of its folders, {', '.join(folders)}, or no config" if folders else "no config"
            raise ValueError(f"which has no config {config!r} in its card, and no such folder of files; need {known}")
        return inside
    splits = {word for words in WORDS.values() for word in words} | {"data"}
    folders = sorted({file.partition("/")[0] for file in files if "/" in file} - splits)
    if len(folders) > 1:
        raise ValueError(f"which has the folders {', '.join(folders)}; need one of them: config={folders[0]}")
    return files


def _by_name(files: Sequence[str]) -> Splits:
    """The files of each split by their names, of one format.

    It is the format that most files with a split in their names have, else that most files have; Parquet if two are as
    many. So a `package.json` beside a `train.jsonl` is no data.
    """
    named = [file for file in files if SHARD.fullmatch(file) or _split_of(file)]
    suffixes = Counter(file.lower().rpartition(".")[2] for file in named or files)
    most = max(suffixes, key=lambda each: (suffixes[each], each == "parquet"))
    files = [file for file in files if file.lower().endswith(f".{most}")]
    shards = [SHARD.fullmatch(file) for file in files]
    found: Splits = {}
    if all(shards):
        for file, shard in zip(files, shards, strict=True):
            found.setdefault(shard[1] if shard else TRAIN, []).append(file)
        return found
    for file in files:
        if split := _split_of(file):
            found.setdefault(split, []).append(file)
    return found or {TRAIN: list(files)}


def _split_of(file: str) -> str:
    """The split that a word in a file's name means, else one in the name of a folder; "" without one."""
    for part in reversed(file.lower().split("/")):
        words = re.split(r"[-._ 0-9]+", part)
        for split, known in WORDS.items():
            if any(word in known for word in words):
                return split
    return ""
