"""The id of a model or a data set on a hub: `owner/name`, or `owner/name@REVISION`."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["model", "dataset"]

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")

FILES = (".gguf", ".safetensors", ".bin", ".py", ".json", ".jsonl", ".csv", ".parquet")
"""Suffixes of files: a text with one is a path, and never an id."""

MAIN = "main"
"""The default revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRepo:
    """A model or a data set on a hub, as a setting names it.

    Attributes:
        kind: Which of the two.
        name: "owner/name".
        revision: A branch, a tag or a commit.
        field: The setting, for messages.
    """

    kind: Kind
    name: str
    revision: str = MAIN
    field: str

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit, so that the files never change."""
        return COMMIT.fullmatch(self.revision) is not None

    @property
    def noun(self) -> str:
        """What it is, in words."""
        return "model" if self.kind == "model" else "data set"

    def at(self, commit: str) -> str:
        """The id with a commit."""
        return f"{self.name}@{commit}"

    @property
    def title(self) -> str:
        """The beginning of a message."""
        text = self.name if self.revision == MAIN else f"{self.name}@{self.revision}"
        return f"{self.field}: got {text!r}, taken for the hub id of a {self.noun}"


def hub_repo(text: str, kind: Kind, field: str) -> HubRepo | None:
    """The repository with an id; None where the text is a path.

    A path is what exists, what has another form than `owner/name`, the name of a file by its suffix, and, without a
    revision, a name in a folder that exists, such as "runs/first".
    """
    is_path = os.path.exists(text) or ("@" not in text and may_be_path(text))
    return None if is_path else repo_of(text, kind, field)


def repo_of(text: str, kind: Kind, field: str) -> HubRepo | None:
    """The repository with an id, whatever paths there are; None where the text is no id by its form."""
    name, at, revision = text.partition("@")
    if not NAME.fullmatch(name) or name.endswith(FILES) or (at and not revision):
        return None
    return HubRepo(kind=kind, name=name, revision=revision or MAIN, field=field)


def may_be_path(text: str) -> bool:
    """Whether a text of the form `owner/name` is a path on this machine, since its folder exists."""
    return Path(text).parent.is_dir()
