"""The files of a model on a hub: weights in safetensors, config, tokenizer and chat template, and no code."""

import re
from collections.abc import Mapping
from pathlib import Path

from bough.hub import HubRepo, hub_repo
from bough.policy.folder import ADAPTERS, INDEX, check_complete

FIELD = "Pretrained.path"

CONFIG = "config.json"
WHOLE = "model.safetensors"
SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
ALONGSIDE = re.compile(
    r"(generation_config|added_tokens|special_tokens_map|tokenizer\w*|vocab|chat_template|tekken)\.json"
    r"|merges\.txt|vocab\.txt|[\w.]+\.model|chat_template\.jinja|additional_chat_templates/[\w-]+\.jinja"
)
"""Files besides config and weights that loading a model or its tokenizer reads."""


def model_repo(path: str) -> HubRepo | None:
    """The model of a hub that `Pretrained.path` names; None for a path."""
    return hub_repo(path, "model", FIELD)


def model_files(listing: Mapping[str, int]) -> list[str]:
    """The files of a model to download.

    Raises:
        ValueError: when there are no weights that Bough reads; the message has what there is instead.
    """
    shards = [name for name in listing if SHARD.fullmatch(name)]
    weights = [WHOLE] if WHOLE in listing else [INDEX, *shards] if shards and INDEX in listing else []
    if not weights or CONFIG not in listing:
        raise ValueError(_instead(listing))
    return [CONFIG, *(name for name in listing if ALONGSIDE.fullmatch(name)), *weights]


def config_file(listing: Mapping[str, int]) -> list[str]:
    """The config of a model alone, where there are weights that Bough reads."""
    model_files(listing)
    return [CONFIG]


def is_complete(folder: Path) -> bool:
    """Whether a folder has all files of a model, as far as they can be known without a list."""
    try:
        check_complete(folder, str(folder))
    except OSError:
        return False
    return True


def _instead(listing: Mapping[str, int]) -> str:
    """What a repository has in place of weights in safetensors, and what to do."""
    names = [*listing]
    if ADAPTERS in listing:
        return "which has adapters alone; need whole weights: merge them by merge_and_unload of peft, and save a folder"
    if gguf := [name for name in names if name.endswith(".gguf")]:
        return f"which has GGUF files alone; need the path of one: download {gguf[0]} by hf download, and give its path"
    if pickled := [name for name in names if name.endswith((".bin", ".pt", ".pth"))]:
        return (
            f"which has weights as {pickled[0]} alone, a format that can hold code; need safetensors: take a revision "
            "or another model that has them"
        )
    return f"which has no {CONFIG} with {WHOLE} or {INDEX}; need a causal model in the format of transformers"
