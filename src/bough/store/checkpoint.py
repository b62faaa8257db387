"""Checkpoints: folders with the complete state of a run, verified by checksums."""

import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from bough.piece import AtLeast, piece
from bough.store.atomic import StoreError, digest, explain_full_disk, sync
from bough.usercode.json_file import json_text

if TYPE_CHECKING:
    import torch

FORMAT = "bough-checkpoint-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint whose files have been verified.

    Attributes:
        step: The step after which it was saved.
        path: Its folder.
    """

    step: int
    path: Path

    def tensors(self, group: str) -> "dict[str, torch.Tensor]":
        """The tensors of a group by name, on the CPU, bit for bit as saved.

        Raises:
            StoreError: when there is no such group.
        """
        from safetensors.torch import load_file  # pyright: ignore[reportUnknownVariableType]

        file = self.path / f"{group}.safetensors"
        if not file.is_file():
            there = sorted(other.stem for other in self.path.glob("*.safetensors"))
            raise StoreError(f"{self.path}: got no group {group!r}; it holds {there}")
        return load_file(file)

    def state(self) -> dict[str, object]:
        """The state saved as JSON."""
        return json.loads((self.path / "state.json").read_text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """The result of a search for the newest complete checkpoint.

    Attributes:
        checkpoint: The newest one with matching checksums; None without one.
        skipped: Newer damaged ones, newest first, each with the reason.
    """

    checkpoint: Checkpoint | None
    skipped: tuple[tuple[Path, str], ...]


@piece
class Checkpoints:
    """The checkpoints of a run, one folder a step.

        checkpoints/step_000040/
            policy.safetensors      one file for each group of tensors
            optimizer.safetensors
            state.json
            manifest.json           the size and BLAKE2b checksum of each file above (`b2sum` prints the same)

    A folder is written under another name, synced, and renamed, so a killed process leaves the earlier checkpoints
    intact. Only one process may save at a time; any number may load, also during a save.

    Attributes:
        directory: `checkpoints/` of a run directory.
        keep: Number of newest checkpoints to keep.

    Raises:
        ValueError: when `keep` is less than 1.
    """

    directory: Path
    keep: Annotated[int, AtLeast(1)] = 2

    def save(
        self,
        step: int,
        tensors: "Mapping[str, Mapping[str, torch.Tensor]]",
        state: Mapping[str, object],
        pinned: Collection[int] = (),
    ) -> Path:
        """Write the checkpoint of a step, then remove checkpoints that are neither among the newest nor pinned.

        Checkpoints of later steps, left by a run that has since continued from an earlier one, are removed as well.

        Args:
            step: Number of finished steps.
            tensors: Tensors by name, in groups: "policy", "optimizer". A group's name becomes a file's name.
            state: The rest of the state; values that JSON can write. A number that is not finite is written as null.
            pinned: Steps to keep besides the newest, such as the best one so far.

        Returns:
            The folder of the checkpoint.

        Raises:
            StoreError: when the disk is full; earlier data is intact.
            ValueError: when a group's name cannot be a file's name.
        """
        if bad := [group for group in tensors if not re.fullmatch(r"[A-Za-z0-9_-]+", group)]:
            raise ValueError(f"Checkpoints.save: got groups named {bad}; need letters, digits, '_' and '-' only")
        self.directory.mkdir(parents=True, exist_ok=True)
        for leftover in self.directory.glob("*.tmp-*"):
            shutil.rmtree(leftover)
        text = json_text(state, indent=2)
        home = self.directory / f"step_{step:06d}"
        temporary = self.directory / f"{home.name}.tmp-{os.getpid()}"
        needed_bytes = len(text) + sum(each.nbytes for group in tensors.values() for each in group.values())
        with explain_full_disk(home, needed_bytes, self._advice):
            try:
                temporary.mkdir()
                _write(temporary, step, tensors, text)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
        self._put(temporary, home)
        self._retain(step, pinned)
        return home

    def latest(self) -> Latest:
        """The newest complete checkpoint, and the damaged ones after it with their reasons."""
        skipped: list[tuple[Path, str]] = []
        for step, path in self._folders():
            problem = _problem(path, step)
            if problem is None:
                return Latest(checkpoint=Checkpoint(step=step, path=path), skipped=tuple(skipped))
            skipped.append((path, problem))
        return Latest(checkpoint=None, skipped=tuple(skipped))

    def at(self, step: int) -> Checkpoint:
        """The checkpoint of a step.

        Raises:
            StoreError: when there is none, or it is damaged.
        """
        there = self._folders()
        for path in (path for found, path in there if found == step):
            if problem := _problem(path, step):
                raise StoreError(f"checkpoint {path} is damaged: {problem}")
            return Checkpoint(step=step, path=path)
        steps = sorted({found for found, _ in there})
        raise StoreError(f"{self.directory}: got no checkpoint of step {step}; there are those of steps {steps}")

    def steps(self) -> list[int]:
        """The steps with a checkpoint, ascending; their files are not verified."""
        return sorted({step for step, _ in self._folders()})

    def _folders(self) -> list[tuple[int, Path]]:
        """Step and folder, newest first. An `.old` folder is left by an interrupted save of the same step."""
        paths = list(self.directory.iterdir()) if self.directory.is_dir() else []
        matches = [(re.fullmatch(r"step_(\d+)(\.old)?", path.name), path) for path in paths]
        found = [(int(match[1]), match[2] is None, path) for match, path in matches if match]
        return [(step, path) for step, _, path in sorted(found, reverse=True)]

    def _put(self, temporary: Path, home: Path) -> None:
        """Rename a finished folder into place; an earlier checkpoint of the step exists until the new one does."""
        old = home.with_name(f"{home.name}.old")
        if home.exists():
            shutil.rmtree(old, ignore_errors=True)
            home.rename(old)
        temporary.rename(home)
        sync(self.directory)
        shutil.rmtree(old, ignore_errors=True)

    def _retain(self, step: int, pinned: Collection[int]) -> None:
        past = [found for found in self.steps() if found <= step]
        kept = {*past[-self.keep :], *pinned} & {*past}
        for found, path in self._folders():
            if found not in kept:
                # Renamed first, so that an interrupted removal leaves no damaged checkpoint.
                shutil.rmtree(path.rename(path.with_name(f"{path.name}.tmp-{os.getpid()}")))

    def _advice(self) -> str:
        newest = self.latest().checkpoint
        return f"Free some space and continue with `bough resume {self.directory.parent}`; " + (
            f"the newest good checkpoint is {newest.path}." if newest else "there is no checkpoint yet."
        )


def _write(folder: Path, step: int, tensors: "Mapping[str, Mapping[str, torch.Tensor]]", state: str) -> None:
    from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]

    for group, named in tensors.items():
        save_file(_apart(named), folder / f"{group}.safetensors")
    (folder / "state.json").write_text(state)
    files = sorted(folder.iterdir())
    listed = {file.name: {"bytes": file.stat().st_size, "blake2b": digest(file)} for file in files}
    # Without a newline at the end, any truncation of the manifest is invalid JSON.
    (folder / "manifest.json").write_text(json_text({"format": FORMAT, "step": step, "files": listed}, indent=2))
    for each in (*files, folder / "manifest.json", folder):
        sync(each)


def _apart(named: "Mapping[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    """The tensors on the CPU, each with its own memory: safetensors does not support tied weights."""
    plain: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in named.items():
        here = tensor.detach().cpu().contiguous()
        place = here.untyped_storage().data_ptr()
        plain[name] = here.clone() if place in seen else here
        seen.add(place)
    return plain


def _problem(folder: Path, step: int) -> str | None:
    """The damage of a checkpoint; None when every file has its checksum."""
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        if (manifest["format"], manifest["step"]) != (FORMAT, step):
            return f"manifest.json is of {manifest['format']!r}, step {manifest['step']}; need {FORMAT!r}, step {step}"
        listed = cast("Mapping[str, Mapping[str, object]]", manifest["files"])
        return next(_differences(folder, listed), None)
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (ValueError, KeyError, TypeError):
        return "manifest.json is cut off or altered"
    except OSError as error:
        return f"cannot be read: {error}"


def _differences(folder: Path, listed: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    for name, wrote in listed.items():
        size = (folder / name).stat().st_size
        if size != wrote["bytes"]:
            yield f"{name} has {size:,} bytes; need {wrote['bytes']:,}"
        elif digest(folder / name) != wrote["blake2b"]:
            yield f"{name} does not have the checksum it was written with"
